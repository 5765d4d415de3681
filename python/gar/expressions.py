# SPDX-License-Identifier: Apache-2.0
"""Expressions: columns, values, and functions of them. Named functions are in _methods.py, made from the registry."""

from __future__ import annotations

from gar import _native
from gar._methods import ExpressionMethods  # made when the package is built
from gar.datatype import DataType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    IntoExpr = Any  # an Expression, or a plain value that becomes a literal


class Expression(ExpressionMethods):  # type: ignore[misc, unused-ignore]
    """A column made of other columns. Operators work with plain values from both sides."""

    __module__ = "gar"
    __slots__ = ()
    __array_ufunc__ = None  # numpy scalars on the left leave the operator to us

    def cast(self, dtype: DataType | str | type) -> Expression:
        """The values as another type; a value that does not fit fails the query."""
        made: Expression = self._cast(str(DataType._from(dtype)), False)
        return made

    def try_cast(self, dtype: DataType | str | type) -> Expression:
        """As cast, but null where a value does not fit."""
        made: Expression = self._cast(str(DataType._from(dtype)), True)
        return made

    def is_in(self, other: Iterable[Any]) -> Expression:
        """Is the value among others? A null among them matches nothing; a null value gives null (of an empty list: False)."""
        if isinstance(other, Expression):
            raise _native.GarTypeError("is_in takes a list of values, not an expression")
        if isinstance(other, (set, frozenset, dict, _range)) or not hasattr(other, "__len__"):
            other = list(other)
        array = getattr(other, "_array", other)
        if len(other) == 0:  # nothing is in it, not even a null
            nothing: Expression = self.is_null() & False
            return nothing
        made: Expression = self._is_in(array)
        return made

    def if_else(self, if_true: IntoExpr, if_false: IntoExpr) -> Expression:
        """One value where this condition is true, the other elsewhere."""
        return _native.call("when", self, if_true, if_false)

    def __iter__(self) -> Any:
        raise _native.GarTypeError(
            "an expression has no rows of its own; select it from a frame and collect that"
        )


_range = type(range(0))
_native.register(Expression)


class _AllColumns:
    """col("*"): every column where columns are chosen, every row where rows are counted."""

    __slots__ = ()

    def count(self, mode: object = None) -> Expression:
        made: Expression = _native.call("count").alias("count")
        return made

    def __repr__(self) -> str:
        return "col(*)"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"col('*') stands for all columns; it has no {name}")


ALL_COLUMNS = _AllColumns()


def col(name: str) -> Expression:
    """A column by its exact name; "*" stands for all columns."""
    if name == "*":
        return ALL_COLUMNS  # type: ignore[return-value]
    return _native.column(name)


def lit(value: Any) -> Expression:
    """A plain value: None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta or a numpy scalar."""
    return _native.literal(value)


def sql_expr(sql: str) -> Expression:
    """An expression in SQL's spelling."""
    return _native.parse(sql, None)


def coalesce(*args: IntoExpr) -> Expression:
    """The first value that is not null."""
    return _native.call("coalesce", *args)


def interval(
    *,
    years: int = 0,
    months: int = 0,
    days: int = 0,
    hours: int = 0,
    minutes: int = 0,
    seconds: int = 0,
    millis: int = 0,
    nanos: int = 0,
) -> Expression:
    """A span of the calendar, to be added to or subtracted from dates and timestamps."""
    nanoseconds = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + millis * 1_000_000 + nanos
    return _native.call("interval", years * 12 + months, days, nanoseconds)


class When:
    """when(...) without its otherwise: null where no condition holds."""

    __module__ = "gar"
    __slots__ = ("_branches",)

    def __init__(self, branches: tuple[Any, ...]) -> None:
        self._branches = branches

    def when(self, condition: Expression, then: IntoExpr) -> When:
        """A further branch."""
        return When((*self._branches, condition, then))

    def otherwise(self, value: IntoExpr) -> Expression:
        """The value where no condition is true."""
        return _native.call("when", *self._branches, value)

    def end(self) -> Expression:
        """Null where no condition is true."""
        return self.otherwise(None)

    def alias(self, name: str) -> Expression:
        made: Expression = self.end().alias(name)
        return made


def when(condition: Expression, then: IntoExpr) -> When:
    """The value where the condition is true; goes on with .when(...) and .otherwise(...)."""
    return When((condition, then))


def _as_column(item: Any) -> Any:
    """Where columns are chosen a text is a name."""
    if isinstance(item, str):
        return _native.column(item)
    return item.end() if isinstance(item, When) else item


def _flatten(items: Iterable[Any], names: list[str]) -> list[Any]:
    """Expressions of names, expressions and lists of them; "*" gives every column of `names`."""
    found: list[Any] = []
    for item in items:
        if item is ALL_COLUMNS or (isinstance(item, str) and item == "*" and "*" not in names):
            found += [_native.column(name) for name in names]
        elif isinstance(item, (list, tuple)):
            found += _flatten(item, names)
        else:
            found.append(_as_column(item))
    return found
