# SPDX-License-Identifier: Apache-2.0
"""Expressions: columns, values, and functions of them. Named functions are in _methods.py, made from the registry."""

from __future__ import annotations

import enum

from gar import _checks, _native
from gar._methods import ExpressionMethods  # made when the package is built
from gar.datatype import DataType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gar.window import Window

    IntoExpr = Any  # an Expression, or a plain value that becomes a literal


class CountMode(enum.Enum):
    """What count() counts."""

    All = "all"
    Valid = "valid"
    Null = "null"

    @classmethod
    def _missing_(cls, value: object) -> CountMode:
        raise _native.GarValueError(f"a count mode is 'all', 'valid' or 'null', got {_checks.shown(value)}")


class Expression(ExpressionMethods):  # type: ignore[misc, unused-ignore]
    """A column made of other columns. Operators work with plain values from both sides."""

    __module__ = "gar"
    __slots__ = ()
    __array_ufunc__ = None  # numpy scalars on the left leave the operator to us

    def __new__(cls, *args: object, **named: object) -> Expression:
        raise _native.GarTypeError(
            "expressions are made by gar.col, gar.lit and the functions of gar.functions"
        )

    def count(self, mode: CountMode | str = "valid") -> Expression:  # type: ignore[override, unused-ignore]
        """How many values are not null; mode "all" counts rows, "null" counts nulls."""
        named = str(mode.value if isinstance(mode, CountMode) else _checks.text("mode", mode)).lower()
        made: Expression
        if named == "valid":
            made = super().count()
            return made
        if named == "all":
            made = _native.call("count").alias(self.name())
            return made
        if named == "null":
            made = _native.call("count", _native.call("when", self.is_null(), True, None))
            made = made.alias(self.name())
            return made
        raise _native.GarValueError(f"mode must be 'valid', 'all' or 'null', got {_checks.shown(mode)}")

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
        if isinstance(other, (str, bytes, bytearray)):
            raise _native.GarTypeError(f"is_in takes a list of values, got {_checks.shown(other)}")
        if isinstance(other, (set, frozenset, dict, _range)) or not hasattr(other, "__len__"):
            other = _checks.items("is_in", other)
        array = getattr(other, "_array", other)
        if _checks.foreign(len, other) == 0:  # nothing is in it, not even a null
            nothing: Expression = self.is_null() & False
            return nothing
        made: Expression = self._is_in(array)
        return made

    def apply(self, func: Any, return_dtype: DataType | str | type) -> Expression:
        """A Python function of each value: a column of what it returns."""
        from gar.udf import apply

        return apply(self, func, return_dtype)

    def __reduce__(self) -> Any:
        raise _native.GarTypeError(
            "an expression cannot be pickled; send the names and values that it is made of, or SQL text for gar.sql_expr"
        )

    def over(self, window: Window) -> Expression:
        """This expression with every aggregate and window function in it computed over the window, for select and with_column."""
        if not hasattr(window, "_over"):
            raise _native.GarTypeError(f"over takes a gar.Window, got {_checks.shown(window)}")
        return window._over(self)

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

    def count(self, mode: CountMode | str = "all") -> Expression:
        """How many rows there are."""
        named = str(mode.value if isinstance(mode, CountMode) else _checks.text("mode", mode)).lower()
        if named not in ("all", "valid"):
            raise _native.GarValueError(f"col('*') counts rows; it has no mode {_checks.shown(mode)}")
        made: Expression = _native.call("count").alias("count")
        return made

    def __repr__(self) -> str:
        return "col(*)"

    def __getattr__(self, name: str) -> Any:
        raise _native.GarAttributeError(f"col('*') stands for all columns; it has no {name}")


ALL_COLUMNS = _AllColumns()


def col(name: str) -> Expression:
    """A column by its exact name; "*" stands for all columns."""
    if _checks.text("a column name", name) == "*":
        return ALL_COLUMNS  # type: ignore[return-value]
    return _native.column(name)


def lit(value: Any) -> Expression:
    """A plain value: None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta or a numpy scalar."""
    return _native.literal(value)


def sql_expr(sql: str) -> Expression:
    """An expression in SQL's spelling."""
    return _native.parse(_checks.text("a SQL expression", sql), None)


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
    given = {"years": years, "months": months, "days": days, "hours": hours, "minutes": minutes}
    given |= {"seconds": seconds, "millis": millis, "nanos": nanos}
    n = {name: _checks.integer(name, value) for name, value in given.items()}
    clock = ((n["hours"] * 60 + n["minutes"]) * 60 + n["seconds"]) * 1_000_000_000
    clock += n["millis"] * 1_000_000 + n["nanos"]
    return _native.call(
        "interval",
        _checks.integer("months of the interval", n["years"] * 12 + n["months"]),
        n["days"],
        _checks.integer("nanoseconds of the interval", clock),
    )


class When(Expression):
    """An expression made by when(...): null where no condition holds, until otherwise(...) says more."""

    __module__ = "gar"
    __slots__ = ("_branches",)
    _branches: tuple[Any, ...]

    def when(self, condition: IntoExpr, then: IntoExpr) -> When:
        """A further branch: the value where this condition is true and none before it is."""
        return _when((*self._branches, condition, then))

    def otherwise(self, value: IntoExpr) -> Expression:
        """The value where no condition is true."""
        return _native.call("when", *self._branches, value)

    def end(self) -> Expression:
        """Null where no condition is true, which is what it is already."""
        return self


def _when(branches: tuple[Any, ...]) -> When:
    made: When = _native.restyle(_native.call("when", *branches, None), When)
    made._branches = branches
    return made


def when(condition: IntoExpr, then: IntoExpr) -> When:
    """The value where the condition is true, else null; goes on with .when(...) and .otherwise(...)."""
    return _when((condition, then))


def _as_column(item: Any, name: str = "a column") -> Expression:
    """Where columns are chosen a text is a name, and a plain value is a mistake."""
    if isinstance(item, Expression):
        return item
    if isinstance(item, str):
        return _native.column(item)
    raise _native.GarTypeError(
        f"{name} is chosen by its name or an expression, got {_checks.shown(item)}; a plain value is lit(value)"
    )


_DEPTH_MAX = 16  # lists of lists of columns


def _flatten(items: Iterable[Any], names: list[str], depth: int = 0) -> list[Any]:
    """Expressions of names, expressions and lists of them; "*" gives every column of `names`."""
    if depth > _DEPTH_MAX:
        raise _native.GarValueError(f"lists of columns are nested deeper than {_DEPTH_MAX}")
    found: list[Any] = []
    for item in items:
        if item is ALL_COLUMNS or (isinstance(item, str) and item == "*" and "*" not in names):
            found += [_native.column(name) for name in names]
        elif isinstance(item, (list, tuple)):
            found += _flatten(item, names, depth + 1)
        else:
            found.append(_as_column(item))
    return found
