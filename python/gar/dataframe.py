# SPDX-License-Identifier: Apache-2.0
"""DataFrame: a lazy table. Methods add to its plan; show, collect, write and to_* run it."""

from __future__ import annotations

import os

from gar import _checks, _native, context
from gar.expressions import ALL_COLUMNS, Expression, _flatten, lit
from gar.schema import Schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from gar.recordbatch import RecordBatch
    from gar.running import BatchStream, QueryHandle

    ColumnInput = str | Expression

_CELL_WIDTH = 30
_PLAIN_WIDTH = 120  # of tables that are not printed to a terminal


class DataFrame:
    """A lazy table of named, typed columns."""

    __module__ = "gar"
    __slots__ = ("__weakref__", "_batch_rows", "_frame", "_is_collected", "_preview_rows", "_profile")
    _batch_rows: int  # of results handed out; 0: as they come
    _frame: _native.Frame
    _is_collected: bool
    _preview_rows: int | None  # that repr shows; None: the setting's
    _profile: _native.Profile | None  # of the query that ran last

    def __init__(self, *args: object, **named: object) -> None:
        raise _native.GarTypeError("frames are made by gar.from_pydict, gar.read_parquet and the like")

    @classmethod
    def _of(cls, frame: _native.Frame, is_collected: bool = False) -> DataFrame:
        made = object.__new__(cls)
        made._frame = frame
        made._is_collected = is_collected
        made._batch_rows = 0
        made._preview_rows = None
        made._profile = None
        return made

    # ---- columns

    def __reduce__(self) -> Any:
        raise _native.GarTypeError(
            "a DataFrame cannot be pickled: it is a plan over files and memory of this process; send its rows, with "
            "to_arrow() or to_pydict(), or write them to a file"
        )

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return self._frame.column_names()

    @property
    def columns(self) -> list[Expression]:
        """The columns as expressions, in order."""
        return [_native.column(name) for name in self._frame.column_names()]

    def schema(self) -> Schema:
        """Names and types of the columns."""
        return Schema._of(self._frame)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._frame.column_names()

    def __getitem__(self, key: Any) -> Any:
        """A column by name or number, or a frame of several columns."""
        if isinstance(key, str):
            if key == "*":
                return ALL_COLUMNS
            column = _native.column(key)
            self._frame.expr_type(column)  # an unknown name is an error here
            return column
        if isinstance(key, Expression):
            self._frame.expr_type(key)
            return key
        if isinstance(key, slice):
            return self.select(*_checks.foreign(self.columns.__getitem__, key))
        if isinstance(key, (list, tuple)):
            return self.select(*(k if isinstance(k, (str, Expression)) else self._numbered(k) for k in key))
        return self._numbered(key)

    def _numbered(self, number: Any) -> Expression:
        """A column by its number, from the end when negative."""
        if not hasattr(type(number), "__index__"):
            raise _native.GarTypeError(f"a column is reached by name or number, got {_checks.shown(number)}")
        names = self._frame.column_names()
        i = _checks.integer("a column's number", number)
        if not -len(names) <= i < len(names):
            raise _native.GarIndexError(f"column {i} of a frame of {len(names)} columns")
        return _native.column(names[i])

    def _columns(self, items: Iterable[Any], named: dict[str, Any] | None = None) -> list[Any]:
        found = _flatten(items, self._frame.column_names())
        for name, value in (named or {}).items():
            found.append(_aliased(_native.column(value) if isinstance(value, str) else value, name))
        return found

    def select(self, *columns: Any, **projections: Any) -> DataFrame:
        """The columns given by names and expressions; name=expression names the result."""
        return DataFrame._of(self._frame.select(self._columns(columns, projections)))

    def with_column(self, column_name: str, expr: Any) -> DataFrame:
        """One column more, or another in place of the one of that name."""
        return self.with_columns({_checks.text("a column name", column_name): expr})

    def with_columns(self, columns: dict[str, Any]) -> DataFrame:
        """Several columns more, or others in place of those of the same names."""
        made = [_aliased(expr, name) for name, expr in _checks.pairs("with_columns", columns)]
        return DataFrame._of(self._frame.with_columns(made))

    def with_column_renamed(self, existing: str, new: str) -> DataFrame:
        """The same columns, one under another name."""
        return self.with_columns_renamed({_checks.text("a column name", existing): new})

    def with_columns_renamed(self, cols_map: dict[str, str]) -> DataFrame:
        """The same columns, some under other names."""
        pairs = _checks.pairs("with_columns_renamed", cols_map)
        for pair in pairs:
            for name in pair:
                _checks.text("a column name", name)
        return DataFrame._of(self._frame.rename([old for old, _ in pairs], [new for _, new in pairs]))

    def exclude(self, *names: str) -> DataFrame:
        """Without some columns."""
        return DataFrame._of(self._frame.exclude([name for item in names for name in _names(item)]))

    # ---- rows

    def where(self, predicate: Expression | str) -> DataFrame:
        """The rows where the predicate is true; a text is a SQL expression."""
        if isinstance(predicate, str):
            predicate = _native.parse(predicate, self._frame)
        return DataFrame._of(self._frame.where(predicate))

    filter = where

    def limit(self, num: int) -> DataFrame:
        """The first rows."""
        return DataFrame._of(self._frame.limit(0, _checks.integer("limit", num, 0)))

    def head(self, num: int = 8) -> DataFrame:
        """The first rows."""
        return self.limit(num)

    def offset(self, num: int) -> DataFrame:
        """Without the first rows."""
        return DataFrame._of(self._frame.limit(_checks.integer("offset", num, 0), -1))

    def sort(
        self,
        by: ColumnInput | list[ColumnInput],
        desc: bool | list[bool] = False,
        nulls_first: bool | list[bool] | None = None,
    ) -> DataFrame:
        """The rows in order. Null counts as the greatest value unless nulls_first says where nulls go."""
        keys = self._columns([by])
        if isinstance(desc, str):
            raise _native.GarTypeError(
                f"sort takes the columns as one list, as sort([{by!r}, {desc!r}]); desc is True, False or a list of them"
            )
        first = None if nulls_first is None else _flags("nulls_first", nulls_first, len(keys))
        return DataFrame._of(self._frame.sort(keys, _flags("desc", desc, len(keys)), first))

    def distinct(self, *on: ColumnInput) -> DataFrame:
        """One of each row, or one whole row for each value of `on`."""
        return DataFrame._of(self._frame.distinct(self._columns(on)))

    unique = distinct
    drop_duplicates = distinct

    def drop_null(self, *cols: ColumnInput) -> DataFrame:
        """The rows without nulls in some or all columns."""
        return self._keep(self._columns(cols or [ALL_COLUMNS]), lambda c: c.not_null())

    def drop_nan(self, *cols: ColumnInput) -> DataFrame:
        """The rows without NaN in some or all columns of floats; nulls stay."""
        columns = self._columns(cols or [ALL_COLUMNS])
        floats = [c for c in columns if self._frame.expr_type(c).startswith("float")]
        return self._keep(floats, lambda c: _native.call("coalesce", c.not_nan(), True))

    def _keep(self, columns: list[Any], test: Callable[[Any], Any]) -> DataFrame:
        predicate = None
        for column in columns:
            predicate = test(column) if predicate is None else predicate & test(column)
        return self if predicate is None else DataFrame._of(self._frame.where(predicate))

    def join(
        self,
        other: DataFrame,
        on: ColumnInput | list[ColumnInput] | None = None,
        left_on: ColumnInput | list[ColumnInput] | None = None,
        right_on: ColumnInput | list[ColumnInput] | None = None,
        how: str = "inner",
        strategy: str | None = None,
        prefix: str | None = None,
        suffix: str | None = None,
        *,
        condition: Expression | str | None = None,
        nulls_equal: bool = False,
    ) -> DataFrame:
        """Pairs of rows of this frame and the other whose keys are equal.

        on names keys of both sides, left_on and right_on those of one each; they may be expressions. how: "inner",
        "left", "right", "outer", "semi" (rows of this frame with a partner), "anti" (those without one), "cross" (every
        pair, without keys). Null keys match nothing unless nulls_equal; NaN equals NaN. Two keys of one name come out as
        one column; other columns of the right side whose name is taken get prefix and suffix ("right." in front by
        default). condition is what else must be true of a pair, over columns under the names they have in the
        result; with it no key is needed. The order of the result is not specified.
        """
        if not isinstance(other, DataFrame):
            raise _native.GarTypeError(f"join takes a DataFrame, got {type(other).__name__}")
        if on is not None and (left_on is not None or right_on is not None):
            raise _native.GarValueError("join takes either on, or left_on and right_on")
        if (left_on is None) != (right_on is None):
            raise _native.GarValueError("join: left_on and right_on come together")
        has_keys = on is not None or left_on is not None
        left = self._columns([on if left_on is None else left_on]) if has_keys else []
        right = other._columns([on if right_on is None else right_on]) if has_keys else []
        if isinstance(condition, str):
            condition = _native.parse(condition, None)
        if len(left) != len(right):
            raise _native.GarValueError(
                f"join: {len(left)} keys of the left side, but {len(right)} of the right one"
            )
        return DataFrame._of(
            self._frame.join(
                other._frame,
                left,
                right,
                _checks.text("how", how),
                _checks.flag("nulls_equal", nulls_equal),
                condition,
                _checks.optional_text("prefix", prefix),
                _checks.optional_text("suffix", suffix),
                _checks.optional_text("strategy", strategy),
            )
        )

    def join_asof(
        self,
        other: DataFrame,
        on: ColumnInput | None = None,
        left_on: ColumnInput | None = None,
        right_on: ColumnInput | None = None,
        by: ColumnInput | list[ColumnInput] | None = None,
        left_by: ColumnInput | list[ColumnInput] | None = None,
        right_by: ColumnInput | list[ColumnInput] | None = None,
        strategy: str = "backward",
        tolerance: Any = None,
        allow_exact_matches: bool = True,
        prefix: str | None = None,
        suffix: str | None = None,
    ) -> DataFrame:
        """Every row of this frame once, beside the row of the other with equal by keys whose on lies nearest, or beside nulls.

        on is one number, date, time, timestamp or duration of both sides, left_on and right_on that of one each;
        by, or left_by and right_by, are keys that must be equal besides. strategy: "backward" takes the greatest on of the
        other side that is not above this row's, "forward" the least that is not below it, "nearest" the nearer of both
        (the lesser of two that are equally near). tolerance is the greatest distance: a number, or a timedelta for dates
        and times. allow_exact_matches=False leaves equal values out. Of several rows with one on the last counts, forward
        the first. Null and NaN have no partner. Neither side needs to be sorted; the order of the result is not
        specified. Names come out as from join.
        """
        if not isinstance(other, DataFrame):
            raise _native.GarTypeError(f"join_asof takes a DataFrame, got {type(other).__name__}")
        left = self._asof_keys(self, ("on", on), ("left_on", left_on), ("by", by), ("left_by", left_by))
        right = self._asof_keys(other, ("on", on), ("right_on", right_on), ("by", by), ("right_by", right_by))
        if len(left) != len(right):
            raise _native.GarValueError(
                f"join_asof: {len(left) - 1} by keys of the left side, but {len(right) - 1} of the right one"
            )
        return DataFrame._of(
            self._frame.join_asof(
                other._frame,
                left,
                right,
                _checks.text("strategy", strategy),
                None if tolerance is None else lit(tolerance),
                not _checks.flag("allow_exact_matches", allow_exact_matches),
                _checks.optional_text("prefix", prefix),
                _checks.optional_text("suffix", suffix),
            )
        )

    @staticmethod
    def _asof_keys(
        df: DataFrame,
        on: tuple[str, Any],
        own_on: tuple[str, Any],
        by: tuple[str, Any],
        own_by: tuple[str, Any],
    ) -> list[Any]:
        """on, then the by keys of one side."""
        for (name, both), (own_name, own) in ((on, own_on), (by, own_by)):
            if both is not None and own is not None:
                raise _native.GarValueError(f"join_asof takes either {name}, or {own_name} and its like")
        (name, value) = on if own_on[1] is None else own_on
        if value is None:
            raise _native.GarValueError(f"join_asof: {own_on[0]} is missing; give it, or {on[0]}")
        keys = df._columns([value])
        if len(keys) != 1:
            raise _native.GarValueError(f"join_asof: {name} is one column, got {len(keys)}")
        given = by[1] if own_by[1] is None else own_by[1]
        return keys if given is None else [*keys, *df._columns([given])]

    def concat(self, other: DataFrame) -> DataFrame:
        """The rows of this frame, then those of the other; both have the same schema."""
        return concat([self, other])

    union_all = concat

    def union(self, other: DataFrame) -> DataFrame:
        """The rows that are in this frame or the other, one of each."""
        return self.concat(other).distinct()

    def intersect(self, other: DataFrame) -> DataFrame:
        """The rows that are in both frames, one of each; null equals null."""
        return self._compared("intersect", other, False, lambda some, every: some & ~every)

    def intersect_all(self, other: DataFrame) -> DataFrame:
        """The rows that are in both frames, each as often as in the frame that has fewer of it."""
        return self._compared("intersect_all", other, True, lambda some, every: some & ~every)

    def except_distinct(self, other: DataFrame) -> DataFrame:
        """The rows of this frame that are not in the other, one of each; null equals null."""
        return self._compared("except_distinct", other, False, lambda some, every: every)

    def except_all(self, other: DataFrame) -> DataFrame:
        """The rows of this frame, each less often by the times it is in the other."""
        return self._compared("except_all", other, True, lambda some, every: every)

    def _compared(
        self, what: str, other: DataFrame, is_all: bool, keep: Callable[[Expression, Expression], Expression]
    ) -> DataFrame:
        """Groups of equal rows of both frames, kept by whether some and every one of them is ours. With is_all the n-th of
        equal rows in one frame goes with the n-th in the other."""
        if not isinstance(other, DataFrame):
            raise _native.GarTypeError(f"{what} takes a frame, got {_checks.shown(other)}")
        names = self.column_names
        if not names:
            raise _native.GarValueError(f"{what} needs frames with columns")
        free = max((name for name in [*names, *other.column_names]), key=len) + "#"
        sides = []
        for frame, is_ours in ((self, True), (other, False)):
            columns = [_native.column(name) for name in frame.column_names]
            if is_all:
                number = _native.over(
                    _native.call("row_number"), columns, [], 0, 0, 0, 0, 0, 3, 0, None, None, 0, 0
                )
                columns = [*columns, number.alias(free)]
            sides.append(frame._frame.select([*columns, _native.literal(is_ours).alias(f"{free}#")]))
        ours = _native.column(f"{free}#")
        keys = [_native.column(name) for name in ([*names, free] if is_all else names)]
        some, every = (f"{free}###", f"{free}####")
        groups = _native.concat(sides).aggregate(
            keys, [_native.call("bool_or", ours).alias(some), _native.call("bool_and", ours).alias(every)]
        )
        kept = DataFrame._of(groups).where(keep(_native.column(some), _native.column(every)))
        return DataFrame._of(kept._frame.select([_native.column(name) for name in names]))

    def union_all_by_name(self, other: DataFrame) -> DataFrame:
        """The rows of this frame, then those of the other, columns matched by name; what one lacks is null there."""
        if not isinstance(other, DataFrame):
            raise _native.GarTypeError(f"union_all_by_name takes a frame, got {_checks.shown(other)}")
        types = dict(zip(other.column_names, other._frame.column_types(), strict=True))
        types |= dict(zip(self.column_names, self._frame.column_types(), strict=True))
        return self._widened(types).concat(other._widened(types))

    def union_by_name(self, other: DataFrame) -> DataFrame:
        """As union_all_by_name, one of each row."""
        return self.union_all_by_name(other).distinct()

    def _widened(self, types: dict[str, str]) -> DataFrame:
        own = set(self.column_names)
        null = _native.literal(None)
        columns = [
            _native.column(name) if name in own else null._cast(text, False).alias(name)
            for name, text in types.items()
        ]
        return DataFrame._of(self._frame.select(columns))

    def sample(
        self,
        fraction: float | None = None,
        size: int | None = None,
        with_replacement: bool = False,
        seed: int | None = None,
    ) -> DataFrame:
        """Rows chosen at random: each one with probability fraction (0 to 1), or exactly size of them (all, if there are fewer).

        Chosen rows keep their order. A seed makes the choice the same every time, whatever threads and batches are;
        without one every call of sample chooses anew. with_replacement may give a row several times, in no fixed order;
        it counts the rows first, at once.
        """
        made: DataFrame = _reshaped().sample(self, fraction, size, with_replacement, seed)
        return made

    def shuffle(self, seed: int | None = None) -> DataFrame:
        """All rows in random order; a seed makes it the same every time."""
        made: DataFrame = _reshaped().shuffle(self, seed)
        return made

    def unpivot(
        self,
        ids: ColumnInput | list[ColumnInput],
        values: ColumnInput | list[ColumnInput] | None = None,
        variable_name: str = "variable",
        value_name: str = "value",
    ) -> DataFrame:
        """For each row and each of the values columns (by default all that are not ids) a row: ids, the column's name, its value.

        Values come out in the type in which expressions meet: integers of any width as the widest of them, integers beside
        floats as float64, which rounds beyond 2**53."""
        made: DataFrame = _reshaped().unpivot(self, ids, values, variable_name, value_name)
        return made

    melt = unpivot

    def pivot(
        self,
        group_by: ColumnInput | list[ColumnInput],
        pivot_col: ColumnInput,
        value_col: ColumnInput,
        agg_fn: str,
        names: list[str] | None = None,
    ) -> DataFrame:
        """One row for each group, and a column for each value of pivot_col: agg_fn ("sum", "mean", "min", ...) of value_col
        over the rows of both, null where there is none. Without names the values are asked for at once, which runs a query."""
        made: DataFrame = _reshaped().pivot(self, group_by, pivot_col, value_col, agg_fn, names)
        return made

    def transform(self, func: Callable[..., DataFrame], *args: Any, **kwargs: Any) -> DataFrame:
        """func(frame, ...), which must give a frame."""
        made = _callable("transform", func)(self, *args, **kwargs)
        if not isinstance(made, DataFrame):
            raise _native.GarTypeError(
                f"transform: the function gave a {type(made).__name__}, not a DataFrame"
            )
        return made

    def pipe(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """function(frame, ...)"""
        return _callable("pipe", function)(self, *args, **kwargs)

    # ---- aggregates

    def groupby(self, *group_by: Any) -> GroupedDataFrame:
        """Groups of equal values; null is a value too."""
        keys = self._columns(group_by)
        if not keys:
            raise _native.GarValueError("groupby needs at least one column")
        return GroupedDataFrame(self, keys)

    def agg(self, *to_agg: Any) -> DataFrame:
        """Aggregates over all rows: one row."""
        return DataFrame._of(self._frame.aggregate([], self._aggregates(to_agg)))

    def _aggregates(self, items: Any) -> list[Any]:
        found = self._columns(items)
        if not found:
            raise _native.GarValueError("agg needs at least one aggregate")
        return found

    def _agg_each(self, keys: list[Any], cols: Any, function: str, *args: Any) -> DataFrame:
        """The same aggregate over several columns, under the columns' names."""
        chosen = cols
        if not cols:
            key_names = {key.name() for key in keys}
            chosen = [name for name in self._frame.column_names() if name not in key_names]
        columns = self._columns(chosen)
        aggs = [_native.call(function, column, *args).alias(column.name()) for column in columns]
        return DataFrame._of(self._frame.aggregate(keys, aggs))

    def sum(self, *cols: ColumnInput) -> DataFrame:
        """Sums of some or all columns."""
        return self._agg_each([], cols, "sum")

    def product(self, *cols: ColumnInput) -> DataFrame:
        return self._agg_each([], cols, "product")

    def mean(self, *cols: ColumnInput) -> DataFrame:
        """Means of some or all columns."""
        return self._agg_each([], cols, "mean")

    def min(self, *cols: ColumnInput) -> DataFrame:
        """Least values of some or all columns."""
        return self._agg_each([], cols, "min")

    def max(self, *cols: ColumnInput) -> DataFrame:
        """Greatest values of some or all columns."""
        return self._agg_each([], cols, "max")

    def stddev(self, *cols: ColumnInput, ddof: int = 1) -> DataFrame:
        """Standard deviations, divided by n - ddof."""
        return self._agg_each([], cols, "stddev", _checks.integer("ddof", ddof, 0))

    def var(self, *cols: ColumnInput, ddof: int = 1) -> DataFrame:
        """Variances, divided by n - ddof."""
        return self._agg_each([], cols, "var", _checks.integer("ddof", ddof, 0))

    def skew(self, *cols: ColumnInput) -> DataFrame:
        """Skewness of the population of each column."""
        return self._agg_each([], cols, "skew")

    def median(self, *cols: ColumnInput) -> DataFrame:
        """Middle values, exact."""
        return self._agg_each([], cols, "median")

    def approx_count_distinct(self, *cols: ColumnInput) -> DataFrame:
        """Different values of each column, estimated."""
        return self._agg_each([], cols, "approx_count_distinct")

    def any_value(self, *cols: ColumnInput) -> DataFrame:
        """Some value of each column."""
        return self._agg_each([], cols, "any_value")

    def count_distinct(self, *cols: ColumnInput) -> DataFrame:
        """Different values of each column, nulls not counted."""
        return self._agg_each([], cols, "count_distinct")

    def count(self, *cols: ColumnInput) -> DataFrame:
        """Values that are not null in some columns; without columns, or with "*", the rows, as column "count"."""
        if not cols or (len(cols) == 1 and (_is_all(cols[0]) or cols[0] is None)):
            return DataFrame._of(self._frame.aggregate([], [_native.call("count").alias("count")]))
        return self._agg_each([], cols, "count")

    def describe(self) -> DataFrame:
        """The columns as rows: their names and types."""
        from gar.convert import from_pydict

        return from_pydict(_described(self, "column_name"))

    def summarize(self) -> DataFrame:
        """Run; one row for each column: its name, type, least and greatest value as text, and how many values are
        there, null and different."""
        from gar.convert import from_pydict
        from gar.series import Series

        columns = self._columns([ALL_COLUMNS])
        found = _described(self, "column")
        types = self._frame.column_types()
        aggs = [_native.call("count").alias("rows")]
        for i, (column, text) in enumerate(zip(columns, types, strict=True)):
            aggs.append(column.count().alias(f"{i} count"))
            aggs.append(column.count_distinct().alias(f"{i} distinct"))
            for name in ("min", "max") if text not in ("null", "binary") else ():
                aggs.append(_native.call(name, column)._cast("string", False).alias(f"{i} {name}"))
        values = DataFrame._of(self._frame.aggregate([], aggs)).to_pylist()[0]
        numbers = range(len(columns))
        summary: dict[str, Any] = dict(found)
        for name in ("min", "max"):
            texts = [values.get(f"{i} {name}") for i in numbers]
            summary[name] = Series.from_pylist(texts, name, "string")
        summary["count"] = [values[f"{i} count"] for i in numbers]
        summary["count_nulls"] = [values["rows"] - values[f"{i} count"] for i in numbers]
        summary["approx_count_distinct"] = [values[f"{i} distinct"] for i in numbers]
        return from_pydict(summary)

    # ---- partitions and batches: there is one partition

    def num_partitions(self) -> int:
        return 1

    def repartition(self, num: int | None, *partition_by: ColumnInput) -> DataFrame:
        """The same rows: work is cut by the engine as it runs."""
        if num is not None:
            _checks.integer("num", num, 1)
        for column in self._columns(partition_by):
            self._frame.expr_type(column)
        return self

    def into_partitions(self, num: int) -> DataFrame:
        """The same rows: work is cut by the engine as it runs."""
        _checks.integer("num", num, 1)
        return self

    def into_batches(self, batch_size: int) -> DataFrame:
        """The same rows, handed out in batches of exactly so many (the last may have fewer)."""
        batch_size = _checks.integer("batch_size", batch_size, 1)
        made = DataFrame._of(self._frame, self._is_collected)
        made._batch_rows = batch_size
        return made

    # ---- running. timeout is in seconds from the start; when it passes, the query stops with GarTimeoutError.

    def collect(self, num_preview_rows: int | None = None, timeout: float | None = None) -> DataFrame:
        """Run, and keep the rows in memory; later uses of this frame start from them."""
        if num_preview_rows is not None:
            num_preview_rows = _checks.integer("num_preview_rows", num_preview_rows, 0)
        limit_ms = _milliseconds(timeout)
        if not self._is_collected:
            self._frame = self._frame.collect(limit_ms)
            self._is_collected = True
        self._preview_rows = num_preview_rows
        return self

    def start(self, timeout: float | None = None) -> QueryHandle:
        """Start the query and go on at once: a handle to look at it, to stop it, to wait for it or await it.

        The query runs to its end by itself; its rows wait in memory.
        """
        from gar.running import QueryHandle

        return QueryHandle._start(self._frame, _milliseconds(timeout))

    def __aiter__(self) -> BatchStream:
        """Record batches, while the query runs, for `async for`."""
        from gar.running import BatchStream

        return BatchStream._start(self._frame, self._batch_rows)

    def _run(self, as_view: bool = False, timeout: float | None = None) -> _native.Result:
        result = self._frame.run(self._batch_rows, _milliseconds(timeout), as_view)
        if not self._is_collected:
            self._profile = result.profile()
        return result

    @property
    def metrics(self) -> dict[str, Any] | None:
        """What the query that ran last (collect, to_*, iteration, write) has done, while it runs and after it.

        A dict of the whole query with "operators": one dict for each, in the order of the physical plan. None when
        nothing has run. docs/how-to/profiling.md describes the numbers.
        """
        profile = self._profile if self._profile is not None else self._frame.profile()
        return None if profile is None else profile.read()

    def count_rows(self, timeout: float | None = None) -> int:
        """How many rows there are."""
        known = self._frame.known_rows()
        return known if known >= 0 else self._frame.count_rows(_milliseconds(timeout))

    def __len__(self) -> int:
        if not self._is_collected:
            raise _native.GarStateError(
                "the frame has not run yet: use collect() before len(), or count_rows()"
            )
        return self._frame.known_rows()

    def to_pydict(self, timeout: float | None = None) -> dict[str, list[Any]]:
        """Run; a dict of lists."""
        self.collect(self._preview_rows, timeout)
        return dict(zip(self._frame.column_names(), self._run(as_view=True).lists(), strict=True))

    def to_pylist(self, timeout: float | None = None) -> list[dict[str, Any]]:
        """Run; a list of dicts."""
        from gar.recordbatch import _rows

        self.collect(self._preview_rows, timeout)
        return _rows(self._frame.column_names(), self._run(as_view=True).lists(), self._frame.known_rows())

    def iter_rows(
        self,
        results_buffer_size: Any = "num_cpus",
        column_format: str = "python",
        timeout: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Rows as dicts, while the query runs. Threads may share the iterator: each row goes to one of them."""
        from gar._iterators import Rows

        _buffer_size(results_buffer_size)
        if _checks.text("column_format", column_format) != "python":
            raise _native.GarUnsupportedError(
                f"iter_rows does not support column_format={_checks.shown(column_format)}"
            )
        return Rows(self._run(as_view=True, timeout=timeout), self._frame.column_names())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.iter_rows()

    def iter_partitions(
        self, results_buffer_size: Any = "num_cpus", timeout: float | None = None
    ) -> Iterator[RecordBatch]:
        """Record batches, while the query runs. Threads may share the iterator."""
        from gar._iterators import Batches
        from gar.recordbatch import RecordBatch

        _buffer_size(results_buffer_size)
        return Batches(self._run(timeout=timeout), RecordBatch)

    def to_arrow_iter(
        self, results_buffer_size: Any = "num_cpus", timeout: float | None = None
    ) -> Iterator[Any]:
        """pyarrow record batches, while the query runs. Threads may share the iterator."""
        from gar._iterators import Batches

        _buffer_size(results_buffer_size)
        pyarrow = _checks.package("pyarrow", "to_arrow_iter")
        return Batches(self._run(timeout=timeout), pyarrow.record_batch)

    def to_arrow(self, timeout: float | None = None) -> Any:
        """Run; a pyarrow table with large_string and large_binary."""
        pyarrow = _checks.package("pyarrow", "to_arrow")
        schema = _checks.foreign(pyarrow.schema, self.schema())
        batches = [_checks.foreign(pyarrow.record_batch, batch) for batch in self._run(timeout=timeout)]
        return _checks.foreign(pyarrow.Table.from_batches, batches, schema)

    def to_pandas(
        self,
        nullable: bool = False,
        coerce_temporal_nanoseconds: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Run; a pandas frame. Integers with nulls become float64, as pandas users expect, or with
        nullable=True pandas' own nullable types."""
        options: dict[str, Any] = {
            "coerce_temporal_nanoseconds": _checks.flag(
                "coerce_temporal_nanoseconds", coerce_temporal_nanoseconds
            )
        }
        is_nullable = _checks.flag("nullable", nullable)
        _checks.package("pandas", "to_pandas")
        table = self.to_arrow(timeout)
        if is_nullable:
            options["types_mapper"] = _nullable_types().get
        return _checks.foreign(table.to_pandas, **options)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        frame, as_view = self._frame, False
        if requested_schema is not None:
            frame, as_view = _requested(frame, _native.schema_types(requested_schema))
        return frame.stream(self._batch_rows, as_view)

    def __arrow_c_schema__(self) -> object:
        return self._frame.arrow_schema()

    # ---- writing

    def write_parquet(
        self,
        root_dir: str | os.PathLike[str],
        compression: str | None = "snappy",
        write_mode: str = "append",
        partition_cols: Any = None,
        io_config: Any = None,
        single_file: bool = False,
        row_group_rows: int = 0,
        timeout: float | None = None,
    ) -> DataFrame:
        """Run, and write Parquet files; a frame of their paths. The folder shows all of the files or none.

        write_mode: "append" adds files beside those that are there, "overwrite" puts the new ones in their place.
        compression: "snappy", "zstd", "gzip", "brotli", "lz4_raw" or "none". single_file: root_dir is the path of
        one file. row_group_rows: rows of a row group; 0 leaves it to the engine.
        """
        args = _write_args(root_dir, compression, write_mode, partition_cols, io_config)
        rows = _checks.integer("row_group_rows", row_group_rows, 0)
        made = self._frame.write_parquet(
            *args, _checks.flag("single_file", single_file), None, True, rows, _milliseconds(timeout)
        )
        return DataFrame._of(made, is_collected=True)

    def write_csv(
        self,
        root_dir: str | os.PathLike[str],
        write_mode: str = "append",
        partition_cols: Any = None,
        io_config: Any = None,
        delimiter: str | None = None,
        quote: str | None = None,
        escape: str | None = None,
        header: bool | None = True,
        date_format: str | None = None,
        timestamp_format: str | None = None,
        compression: str | None = None,
        single_file: bool = False,
        timeout: float | None = None,
    ) -> DataFrame:
        """Run, and write CSV files; a frame of their paths. The folder shows all of the files or none.

        write_mode: "append" adds files beside those that are there, "overwrite" puts the new ones in their place.
        delimiter: one ASCII character, "," by default. header: names in the first line. compression: "none", "gzip"
        or "zstd". single_file: root_dir is the path of one file.
        """
        for name, value, default in (
            ("quote", quote, '"'),
            ("escape", escape, '"'),
            ("date_format", date_format, None),
            ("timestamp_format", timestamp_format, None),
        ):
            if value is not None and _checks.text(name, value) != default:
                raise _native.GarUnsupportedError(f"write_csv does not support {name}={_checks.shown(value)}")
        args = _write_args(root_dir, compression, write_mode, partition_cols, io_config)
        made = self._frame.write_csv(
            *args,
            _checks.flag("single_file", single_file),
            _checks.optional_text("delimiter", delimiter),
            header is None or _checks.flag("header", header),
            0,
            _milliseconds(timeout),
        )
        return DataFrame._of(made, is_collected=True)

    # ---- looking

    def explain(
        self,
        show_all: bool = False,
        format: str = "ascii",
        simple: bool = False,
        file: Any = None,
        analyze: bool = False,
        timeout: float | None = None,
        resources: bool = False,
    ) -> None:
        """Print the logical plan; with show_all also the optimized and the physical one.

        resources: print which user functions run where, on which devices and in which batches, before anything starts.

        analyze: run the query, throw its rows away, and print the physical plan with the rows, bytes, time and
        memory of each operator.
        """
        if _checks.text("format", format) != "ascii":
            raise _native.GarUnsupportedError(f"explain does not support format={_checks.shown(format)}")
        show_all = _checks.flag("show_all", show_all)
        analyze = _checks.flag("analyze", analyze)
        _checks.flag("simple", simple)
        titles = ("Logical plan", "Optimized plan", "Physical plan")
        parts = []
        resources = _checks.flag("resources", resources)
        for stage in (0, 1, 2) if show_all else () if analyze or resources else (0,):
            parts.append(f"== {titles[stage]} ==\n\n{self._frame.explain(stage).rstrip()}\n")
        if analyze:
            numbers = _native.explain_analyze(self._frame, _milliseconds(timeout)).rstrip()
            parts.append(f"== Physical plan, run ==\n\n{numbers}\n")
        if resources:
            parts.append(f"== Resources ==\n\n{self._frame.explain(3).rstrip()}\n")
        text = "\n".join(parts)
        if not show_all and not analyze and not resources:
            text += "\nexplain(show_all=True) shows the optimized and physical plans too.\n"
        print(text, file=file)

    def _table(
        self, html: bool, rows: int, cell_width: int = _CELL_WIDTH, timeout: float | None = None
    ) -> str:
        width = 0 if html else _width()
        if self._is_collected:
            return self._frame.table(html, rows, cell_width, width, self._frame.known_rows()).rstrip("\n")
        limited = self._frame.limit(0, rows + 1)
        preview = limited.collect(_milliseconds(timeout))  # one more tells whether these are all
        total = self._frame.known_rows()
        if total < 0 and preview.known_rows() <= rows:
            total = preview.known_rows()
        return preview.table(html, rows, cell_width, width, total).rstrip("\n")

    def show(
        self,
        n: int = 8,
        format: str | None = None,
        verbose: bool = False,
        max_width: int = _CELL_WIDTH,
        align: str = "left",
        columns: Any = None,
        timeout: float | None = None,
    ) -> None:
        """Run what the first n rows need and print them as a table. Cells longer than max_width are cut."""
        n = _checks.integer("n", n, 0)
        max_width = _checks.integer("max_width", max_width, 1)
        _checks.flag("verbose", verbose)
        if format is not None and _checks.text("format", format) not in ("default", "fancy"):
            raise _native.GarUnsupportedError(f"show does not support format={_checks.shown(format)}")
        if _checks.text("align", align) not in ("left", "auto"):
            raise _native.GarUnsupportedError(f"show does not support align={_checks.shown(align)}")
        if columns is not None:
            raise _native.GarUnsupportedError("show does not support columns=; select the columns first")
        if _in_notebook():
            from IPython.display import HTML, display

            display(HTML(self._table(True, n, max_width, timeout)))
        else:
            print(self._table(False, n, max_width, timeout))

    def __repr__(self) -> str:
        return self._preview(html=False)

    def _repr_html_(self) -> str:
        return self._preview(html=True)

    def _preview(self, html: bool) -> str:
        rows = context.preview_rows() if self._preview_rows is None else self._preview_rows
        if self._is_collected:
            return self._table(html, rows)
        text = self._frame.empty().table(html, 0, _CELL_WIDTH, 0 if html else _width(), 0)
        note = "(not run yet: use collect() or show())"
        if html:
            return f"{text}<small>{note}</small>"
        lines = [line for line in text.rstrip("\n").split("\n") if not line.startswith("(")]
        return "\n".join([*lines, note])


def _reshaped() -> Any:
    from gar import _reshape  # makes frames itself

    return _reshape


class GroupedDataFrame:
    """Groups of a frame, waiting for their aggregates."""

    __module__ = "gar"
    __slots__ = ("_df", "_keys")

    def __init__(self, df: DataFrame, keys: list[Any]) -> None:
        if not isinstance(df, DataFrame):
            raise _native.GarTypeError("groups are made by DataFrame.groupby")
        self._df = df
        self._keys = df._columns(_checks.items("keys", keys))

    def agg(self, *to_agg: Any) -> DataFrame:
        """One row for each group: its keys and the aggregates."""
        return DataFrame._of(self._df._frame.aggregate(self._keys, self._df._aggregates(to_agg)))

    def sum(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "sum")

    def product(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "product")

    def mean(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "mean")

    avg = mean

    def min(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "min")

    def max(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "max")

    def stddev(self, *cols: ColumnInput, ddof: int = 1) -> DataFrame:
        """Standard deviations, divided by n - ddof."""
        return self._df._agg_each(self._keys, cols, "stddev", _checks.integer("ddof", ddof, 0))

    def var(self, *cols: ColumnInput, ddof: int = 1) -> DataFrame:
        """Variances, divided by n - ddof."""
        return self._df._agg_each(self._keys, cols, "var", _checks.integer("ddof", ddof, 0))

    def skew(self, *cols: ColumnInput) -> DataFrame:
        """Skewness of the population of each column."""
        return self._df._agg_each(self._keys, cols, "skew")

    def median(self, *cols: ColumnInput) -> DataFrame:
        """Middle values, exact."""
        return self._df._agg_each(self._keys, cols, "median")

    def approx_count_distinct(self, *cols: ColumnInput) -> DataFrame:
        """Different values of each column, estimated."""
        return self._df._agg_each(self._keys, cols, "approx_count_distinct")

    def string_agg(self, *cols: ColumnInput, delimiter: str = "") -> DataFrame:
        """The texts of each group one after the other, in the order of the input."""
        return self._df._agg_each(self._keys, cols, "string_agg", delimiter)

    def any_value(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "any_value")

    def count_distinct(self, *cols: ColumnInput) -> DataFrame:
        return self._df._agg_each(self._keys, cols, "count_distinct")

    def count(self, *cols: ColumnInput) -> DataFrame:
        """Values that are not null in some or all columns of each group; "*" counts rows."""
        if len(cols) == 1 and (_is_all(cols[0])):
            return self.agg(_native.call("count").alias("count"))
        return self._df._agg_each(self._keys, cols, "count")

    def map_groups(self, call: Any) -> DataFrame:
        """A function of columns for each group, as in map_groups(f(col("a"))): it gets the group's rows and may give any number of
        rows, beside which the keys are repeated."""
        from gar.udf import map_groups

        return map_groups(self._df, self._keys, call)

    def __repr__(self) -> str:
        return f"GroupedDataFrame(by {', '.join(key.name() for key in self._keys)})"


def concat(dfs: list[DataFrame]) -> DataFrame:
    """The rows of several frames of the same schema, one after the other."""
    dfs = _checks.items("concat", dfs)
    if not dfs:
        raise _native.GarValueError("concat needs at least one frame")
    for df in dfs:
        if not isinstance(df, DataFrame):
            raise _native.GarTypeError(f"concat takes frames, got {_checks.shown(df)}")
    return dfs[0] if len(dfs) == 1 else DataFrame._of(_native.concat([df._frame for df in dfs]))


def _milliseconds(timeout: float | None) -> int:
    """The engine's form of a timeout in seconds: 0 is none."""
    return _checks.milliseconds("timeout", timeout)


def _is_all(item: Any) -> bool:
    """Whether all columns are meant: "*" or col("*"). An expression compared with a text would be an expression."""
    return item is ALL_COLUMNS or (isinstance(item, str) and item == "*")


def _described(df: DataFrame, title: str) -> dict[str, Any]:
    from gar.series import Series

    return {
        title: Series.from_pylist(df.column_names, title, "string"),
        "type": Series.from_pylist(df._frame.column_types(), "type", "string"),
    }


def _buffer_size(size: Any) -> None:
    """How many results another engine would keep ready; ours decides by bytes."""
    if size is not None and not (isinstance(size, str) and size == "num_cpus"):
        _checks.integer("results_buffer_size", size, 1)


def _callable(what: str, function: Any) -> Any:
    if not callable(function):
        raise _native.GarTypeError(f"{what} takes a function, got {_checks.shown(function)}")
    return function


def _aliased(item: Any, name: str) -> Any:
    """Where values are wanted a text is a value."""
    _checks.text("a column name", name)
    return (item if isinstance(item, Expression) else _native.literal(item)).alias(name)


def _names(item: Any) -> list[str]:
    if isinstance(item, (list, tuple)):
        return [name for part in item for name in _names(part)]
    if isinstance(item, Expression):
        return [item.name()]
    if not isinstance(item, str):
        raise _native.GarTypeError(f"a column name must be a str, got {_checks.shown(item)}")
    return [item]


def _flags(what: str, given: bool | list[bool], count: int) -> list[bool]:
    """One flag for each sort key, from one for all or a list."""
    if not isinstance(given, (list, tuple)):
        return [_checks.flag(what, given)] * count
    if len(given) != count:
        raise _native.GarValueError(f"{what} has {len(given)} flags for {count} sort keys")
    return [_checks.flag(f"{what}[{i}]", item) for i, item in enumerate(given)]


def _write_args(
    path: Any, compression: Any, write_mode: Any, partition_cols: Any, io_config: Any
) -> tuple[str, str, bool]:
    if partition_cols is not None and not (
        isinstance(partition_cols, (list, tuple)) and len(partition_cols) == 0
    ):
        raise _native.GarUnsupportedError("writing by partition_cols is not supported")
    _checks.io_config(io_config)
    if _checks.text("write_mode", write_mode) not in ("append", "overwrite"):
        raise _native.GarValueError(
            f"write_mode must be 'append' or 'overwrite', got {_checks.shown(write_mode)}"
        )
    codec = "none" if compression is None else _checks.text("compression", compression)
    return _checks.path("root_dir", path), codec, write_mode == "overwrite"


def _requested(frame: _native.Frame, fields: Any) -> tuple[_native.Frame, bool]:
    """The frame in the types that a consumer asks for, as far as they can be had."""
    if isinstance(fields, str):
        raise _native.GarTypeError("the requested schema is a single type, not a schema of columns")
    names, types = frame.column_names(), frame.column_types()
    if [name for name, _, _ in fields] != names:
        raise _native.GarValueError("the requested schema has other columns than the frame")
    as_view = any(form in ("vu", "vz") for _, _, form in fields)
    if [text for _, text, _ in fields] != types:
        columns = []
        for (name, want, _), have in zip(fields, types, strict=True):
            column = _native.column(name)
            columns.append(column if want == have else column.cast(want).alias(name))
        frame = frame.select(columns)
    return frame, as_view


def _width() -> int:
    """Columns of the terminal."""
    try:
        return max(40, os.get_terminal_size(1).columns)
    except OSError:
        try:
            return max(40, int(os.environ["COLUMNS"]))
        except (KeyError, ValueError):
            return _PLAIN_WIDTH


def _in_notebook() -> bool:
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _nullable_types() -> dict[Any, Any]:
    import pandas
    import pyarrow

    return {
        pyarrow.bool_(): pandas.BooleanDtype(),
        pyarrow.int8(): pandas.Int8Dtype(),
        pyarrow.int16(): pandas.Int16Dtype(),
        pyarrow.int32(): pandas.Int32Dtype(),
        pyarrow.int64(): pandas.Int64Dtype(),
        pyarrow.uint8(): pandas.UInt8Dtype(),
        pyarrow.uint16(): pandas.UInt16Dtype(),
        pyarrow.uint32(): pandas.UInt32Dtype(),
        pyarrow.uint64(): pandas.UInt64Dtype(),
        pyarrow.float32(): pandas.Float32Dtype(),
        pyarrow.float64(): pandas.Float64Dtype(),
        pyarrow.large_string(): pandas.StringDtype(),
    }
