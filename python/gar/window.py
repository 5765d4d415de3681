# SPDX-License-Identifier: Apache-2.0
"""Windows: which rows an aggregate or window function looks at for each row."""

from __future__ import annotations

from gar import _checks, _native
from gar.expressions import Expression, col, lit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_FIRST, _OFFSET, _CURRENT, _LAST = range(4)
_ROWS, _RANGE, _GROUPS = 1, 2, 3
_EXCLUSIONS = ("no others", "current row", "group", "ties")


class _Bound:
    """A bound without an offset."""

    def __init__(self, kind: int, text: str) -> None:
        self.kind = kind
        self._text = text

    def __repr__(self) -> str:
        return self._text


class Window:
    """Rows around each row: its partition, their order, and which of them count.

    Every method gives a new window. Without a frame the whole partition counts, also when there is an order.

    >>> w = gar.Window().partition_by("shop").order_by("day").rows_between(-6, gar.Window.current_row)
    >>> df.with_column("week", col("sales").sum().over(w))
    """

    __module__ = "gar"
    unbounded_preceding = _Bound(_FIRST, "Window.unbounded_preceding")
    unbounded_following = _Bound(_LAST, "Window.unbounded_following")
    current_row = _Bound(_CURRENT, "Window.current_row")

    def __init__(self) -> None:
        self._partition: list[Any] = []
        self._order: list[Any] = []
        self._descending: list[bool] = []
        self._nulls_first: list[bool] = []
        self._frame: tuple[Any, ...] = (0, _FIRST, 0, _LAST, 0, None, None)
        self._min_periods = 0
        self._excluded = 0

    def _copy(self) -> Window:
        made = Window()
        made.__dict__.update(self.__dict__)
        return made

    def partition_by(self, *cols: Any) -> Window:
        """Rows of equal values belong together; null is a value."""
        made = self._copy()
        made._partition = [*self._partition, *_expressions("partition_by", cols)]
        return made

    def order_by(
        self,
        *cols: Any,
        desc: bool | Sequence[bool] = False,
        nulls_first: bool | Sequence[bool] | None = None,
    ) -> Window:
        """The order in a partition; nulls are the greatest values unless nulls_first says otherwise."""
        added = _expressions("order_by", cols)
        made = self._copy()
        down = _flags("desc", desc, len(added))
        made._order = [*self._order, *added]
        made._descending = [*self._descending, *down]
        first = down if nulls_first is None else _flags("nulls_first", nulls_first, len(added))
        made._nulls_first = [*self._nulls_first, *first]
        return made

    def rows_between(
        self,
        start: int | _Bound = unbounded_preceding,
        end: int | _Bound = unbounded_following,
        min_periods: int = 1,
    ) -> Window:
        """Rows from start to end, both included, counted from the row: -2 is two rows before, 1 the next one. Frames of fewer
        than min_periods rows give null."""
        made = self._copy()
        first, last = (_rows(name, bound) for name, bound in (("start", start), ("end", end)))
        made._frame = (_ROWS, *first, *last, None, None)
        made._min_periods = _checks.integer("min_periods", min_periods, 0)
        return made

    def range_between(
        self, start: Any = unbounded_preceding, end: Any = unbounded_following, min_periods: int = 1
    ) -> Window:
        """Rows whose key lies from start to end, both included, added to the row's key: numbers, timedeltas or intervals; negative
        is before the row. The current row stands for all rows of its key. Where the key is null, all rows with a null key count."""
        made = self._copy()
        (first, start_value), (last, end_value) = (_range(bound) for bound in (start, end))
        made._frame = (_RANGE, first, 0, last, 0, start_value, end_value)
        made._min_periods = _checks.integer("min_periods", min_periods, 0)
        return made

    def groups_between(
        self,
        start: int | _Bound = unbounded_preceding,
        end: int | _Bound = unbounded_following,
        min_periods: int = 1,
    ) -> Window:
        """As rows_between, but counted in groups of rows whose keys are equal: -1 is the group before that of the row, and the
        current row stands for its whole group. Needs an order."""
        made = self.rows_between(start, end, min_periods)
        made._frame = (_GROUPS, *made._frame[1:])
        return made

    def exclude(self, rows: str) -> Window:
        """Rows that do not count though they lie in the frame: "current row", "group" (the row and all with its keys), "ties"
        (the others with its keys), or "no others"."""
        if _checks.text("exclude", rows) not in _EXCLUSIONS:
            raise _native.GarValueError(
                f"exclude takes {', '.join(map(repr, _EXCLUSIONS))}, got {_checks.shown(rows)}"
            )
        made = self._copy()
        made._excluded = _EXCLUSIONS.index(rows)
        return made

    def _over(self, expression: Expression) -> Expression:
        frame, start, start_rows, end, end_rows, start_value, end_value = self._frame
        down, first = (
            sum(1 << i for i, flag in enumerate(flags) if flag)
            for flags in (self._descending, self._nulls_first)
        )
        if len(self._order) > 64:
            raise _native.GarValueError("a window is ordered by at most 64 expressions")
        made: Expression = _native.over(
            expression,
            self._partition,
            self._order,
            down,
            first,
            frame,
            start,
            start_rows,
            end,
            end_rows,
            start_value,
            end_value,
            self._min_periods,
            self._excluded,
        )
        return made


def monotonically_increasing_id() -> Expression:
    """The number of each row from 0 (uint64), in the order of the rows."""
    number: Expression = _native.call("row_number")
    number = number - lit(1)
    made: Expression = number.over(Window()).cast("uint64").alias("monotonically_increasing_id")
    return made


def _expressions(method: str, cols: Sequence[Any]) -> list[Any]:
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        cols = cols[0]
    made = []
    for item in cols:
        if isinstance(item, str):
            made.append(col(item))
        elif isinstance(item, Expression):
            made.append(item)
        else:
            raise _native.GarTypeError(
                f"{method} takes column names and expressions, got {_checks.shown(item)}"
            )
    if not made:
        raise _native.GarValueError(f"{method} needs at least one column")
    return made


def _flags(name: str, given: Any, count: int) -> list[bool]:
    if isinstance(given, bool):
        return [given] * count
    flags = list(_checks.items(name, given))
    if len(flags) != count or not all(isinstance(flag, bool) for flag in flags):
        raise _native.GarValueError(
            f"{name} takes True, False, or {count} of them, got {_checks.shown(given)}"
        )
    return flags


def _rows(name: str, bound: Any) -> tuple[int, int]:
    if isinstance(bound, _Bound):
        return bound.kind, 0
    offset = _checks.integer(name, bound, -(1 << 62))
    return _OFFSET, offset


def _range(bound: Any) -> tuple[int, Any]:
    if isinstance(bound, _Bound):
        return bound.kind, None
    return _OFFSET, bound if isinstance(bound, Expression) else lit(bound)
