# SPDX-License-Identifier: Apache-2.0
"""Series: one column in memory."""

from __future__ import annotations

from gar import _checks, _native
from gar.datatype import DataType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# Arrow formats whose values numpy can look at, and numpy's name of them.
_NUMPY_TYPES = {
    "c": "<i1",
    "C": "<u1",
    "s": "<i2",
    "S": "<u2",
    "i": "<i4",
    "I": "<u4",
    "l": "<i8",
    "L": "<u8",
    "f": "<f4",
    "g": "<f8",
    "tss:": "<M8[s]",
    "tsm:": "<M8[ms]",
    "tsu:": "<M8[us]",
    "tsn:": "<M8[ns]",
    "tDs": "<m8[s]",
    "tDm": "<m8[ms]",
    "tDu": "<m8[us]",
    "tDn": "<m8[ns]",
}


class _View:
    """An array's memory as numpy reads it; numpy keeps this object, and so the array, alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: Any, typestr: str, address: int, length: int) -> None:
        self._owner = owner
        data = (address, True)
        self.__array_interface__ = {"version": 3, "typestr": typestr, "shape": (length,), "data": data}


class Series:
    """One column in memory, with a name."""

    __module__ = "gar"
    __slots__ = ("_array", "_name")

    def __init__(self, name: str, array: Any) -> None:
        self._name = _checks.text("the name of a series", name)
        self._array: _native.Array = array if isinstance(array, _native.Array) else _native.array(array)

    # ---- making

    @classmethod
    def _of(cls, name: str, array: _native.Array) -> Series:
        """What is known to be sound."""
        made = object.__new__(cls)
        made._name = name
        made._array = array
        return made

    @classmethod
    def from_pylist(cls, data: list[Any], name: str = "list_series", dtype: Any = None) -> Series:
        """From Python objects; the type is the one that holds all of them, or dtype."""
        made = cls(name, _native.array(_checks.items("from_pylist", data)))
        return made if dtype is None else made.cast(dtype)

    @classmethod
    def from_numpy(cls, data: Any, name: str = "numpy_series") -> Series:
        """From a one-dimensional numpy array, without a copy where layouts agree."""
        return cls(name, _native.array(data))

    @classmethod
    def from_arrow(cls, array: Any, name: str = "arrow_series", dtype: Any = None) -> Series:
        """From an array or chunked array of any library that speaks the Arrow C interface."""
        if not hasattr(array, "__arrow_c_array__") and not hasattr(array, "__arrow_c_stream__"):
            raise _native.GarTypeError(f"from_arrow takes an Arrow array, got {_checks.shown(array)}")
        made = cls(name, _native.array(array))
        return made if dtype is None else made.cast(dtype)

    @classmethod
    def from_pandas(cls, data: Any, name: str = "pd_series") -> Series:
        """From a pandas Series; what pandas counts as missing is null."""
        from gar._pandas import column_of

        return cls(name, column_of(data))

    # ---- looking

    def name(self) -> str:
        return self._name

    def rename(self, name: str) -> Series:
        """The same values under another name."""
        return Series(name, self._array)

    def datatype(self) -> DataType:
        return DataType._known(self._array.type_text())

    def null_count(self) -> int:
        return self._array.null_count()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self.to_pylist(), self._name, str(self.datatype())))

    def to_pylist(self) -> list[Any]:
        return self._array.to_list()

    def to_arrow(self) -> Any:
        """As a pyarrow array."""
        return _checks.foreign(_checks.package("pyarrow", "to_arrow").array, self)

    def to_numpy(self) -> Any:
        """As a numpy array: without a copy when there are no nulls. Integers with nulls become float64 with NaN,
        times with nulls have NaT; texts, decimals and times of day become objects."""
        numpy = _checks.package("numpy", "to_numpy")
        form, values, validity, offset = self._array.buffers()
        count = len(self._array)
        valid = None
        if validity:
            valid = self._bits(numpy, validity, offset, count)
        if form == "b":
            bits = self._bits(numpy, values, offset, count)
            return bits if valid is None else numpy.array(self.to_pylist(), dtype=object)
        if form == "tdD":
            days = self._look(numpy, "<i4", values, offset, count)
            return _with_nat(numpy, days.astype("datetime64[D]"), valid)
        typestr = _NUMPY_TYPES.get(form[:4] if form.startswith("ts") else form)
        if typestr is None:
            made = numpy.empty(count, dtype=object)
            made[:] = self.to_pylist()
            return made
        found = self._look(numpy, typestr, values, offset, count)
        if valid is None:
            return found
        if typestr[1] in "Mm":
            return _with_nat(numpy, found, valid)
        found = found.astype(found.dtype if typestr[1] == "f" else numpy.float64)
        found[~valid] = numpy.nan
        return found

    def _look(self, numpy: Any, typestr: str, address: int, offset: int, count: int) -> Any:
        if count == 0:
            return numpy.empty(0, dtype=typestr)
        step = numpy.dtype(typestr).itemsize
        return numpy.asarray(_View(self._array, typestr, address + offset * step, count))

    def _bits(self, numpy: Any, address: int, offset: int, count: int) -> Any:
        if count == 0:
            return numpy.empty(0, dtype=bool)
        first, skip = divmod(offset, 8)
        packed = numpy.asarray(_View(self._array, "|u1", address + first, (skip + count + 7) // 8))
        return numpy.unpackbits(packed, bitorder="little")[skip : skip + count].astype(bool)

    def to_pandas(self) -> Any:
        """As a pandas Series; integers with nulls become float64 with NaN."""
        return _checks.foreign(
            _checks.package("pandas", "to_pandas").Series, self.to_numpy(), name=self._name
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = self.to_numpy()
        return found if dtype is None else _checks.foreign(found.astype, dtype)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._array.__arrow_c_array__()

    def __arrow_c_schema__(self) -> object:
        return self._array.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.to_list())

    def __getitem__(self, i: int) -> Any:
        """A row by its number, from the end when negative."""
        i = _checks.integer("the number of a row", i)
        count = len(self._array)
        if not -count <= i < count:
            raise _native.GarIndexError(f"row {i} of a series of {count} rows")
        return self._array[i if i >= 0 else i + count]

    def __repr__(self) -> str:
        shown = self._array.to_list() if len(self) <= 20 else [*(self[i] for i in range(20)), "..."]
        return f"Series({self._name!r}, {self.datatype()}, {len(self)} rows)\n{shown!r}"

    # ---- computing: by the engine, over a frame of these columns

    def _eval(self, make: Callable[..., Any], *others: Any) -> Series:
        from gar import expressions  # noqa: F401 (a worker has none yet: it gives expressions their methods)

        names = ["a", *(f"b{i}" for i, other in enumerate(others) if isinstance(other, Series))]
        arrays = [self._array, *(other._array for other in others if isinstance(other, Series))]
        columns = iter(_native.column(name) for name in names)
        own = next(columns)
        args = [next(columns) if isinstance(other, Series) else other for other in others]
        return self._taken(_native.from_columns(names, arrays).select([make(own, *args).alias("a")]))

    def _taken(self, frame: Any, rows: int | None = None) -> Series:
        """The only column of a frame that has at most so many rows, or as many as this."""
        batches = list(frame.run(max(len(self) if rows is None else rows, 1), 0, True))
        return Series(self._name, batches[0].fields()[0] if batches else _empty(frame))

    def _frame(self) -> Any:
        return _native.from_columns(["a"], [self._array])

    def cast(self, dtype: Any) -> Series:
        """The values as another type; one that does not fit is an error."""
        return self._eval(lambda a: a.cast(dtype))

    def try_cast(self, dtype: Any) -> Series:
        """The values as another type, null where one does not fit."""
        return self._eval(lambda a: a.try_cast(dtype))

    def is_null(self) -> Series:
        """Which values are null."""
        return self._eval(lambda a: a.is_null())

    def not_null(self) -> Series:
        """Which values are not null."""
        return self._eval(lambda a: a.not_null())

    def fill_null(self, value: Any) -> Series:
        """The values, another in place of null."""
        return self._eval(lambda a, b: a.fill_null(b), value)

    def is_in(self, other: Any) -> Series:
        """Which values are among others."""
        return self._eval(lambda a: a.is_in(other))

    def between(self, lower: Any, upper: Any) -> Series:
        """Which values lie between two others, these included."""
        return self._eval(lambda a, b, c: a.between(b, c), lower, upper)

    def filter(self, mask: Any) -> Series:
        """The values where a Series of booleans of the same length is true."""
        if not isinstance(mask, Series):
            raise _native.GarTypeError(f"filter takes a Series of booleans, got {_checks.shown(mask)}")
        frame = _native.from_columns(["a", "b"], [self._array, mask._array])
        return self._taken(frame.where(_native.column("b")).select([_native.column("a")]))

    def sort(self, desc: bool = False, nulls_first: bool | None = None) -> Series:
        """The values in order; null counts as the greatest unless nulls_first says where nulls go."""
        first = None if nulls_first is None else [_checks.flag("nulls_first", nulls_first)]
        return self._taken(self._frame().sort([_native.column("a")], [_checks.flag("desc", desc)], first))

    def slice(self, start: int, end: int) -> Series:
        """The rows from start to before end."""
        first = _checks.integer("start", start, 0)
        return self._taken(self._frame().limit(first, _checks.integer("end", end, first) - first))

    def head(self, num: int = 8) -> Series:
        """The first rows."""
        return self.slice(0, num)

    @classmethod
    def concat(cls, series: list[Series]) -> Series:
        """The rows of several Series of one type; the first gives the name."""
        parts = _checks.items("concat", series)
        if not parts:
            raise _native.GarValueError("concat needs at least one Series")
        for part in parts:
            if not isinstance(part, Series):
                raise _native.GarTypeError(f"concat takes Series, got {_checks.shown(part)}")
        frame = _native.concat([part._frame() for part in parts])
        made: Series = parts[0]._taken(frame, sum(len(part) for part in parts))
        return made

    def _aggregate(self, name: str, *args: Any) -> Series:
        made = _native.call(name, _native.column("a"), *args).alias("a")
        return self._taken(self._frame().aggregate([], [made]))

    def sum(self) -> Series:
        """The sum, as one row."""
        return self._aggregate("sum")

    def mean(self) -> Series:
        """The mean, as one row."""
        return self._aggregate("mean")

    def min(self) -> Series:
        """The least value, as one row."""
        return self._aggregate("min")

    def max(self) -> Series:
        """The greatest value, as one row."""
        return self._aggregate("max")

    def stddev(self, ddof: int = 1) -> Series:
        """The standard deviation, as one row."""
        return self._aggregate("stddev", _checks.integer("ddof", ddof, 0))

    def count(self) -> Series:
        """How many values are not null, as one row."""
        return self._aggregate("count")

    def count_distinct(self) -> Series:
        """How many different values there are, as one row."""
        return self._aggregate("count_distinct")

    def __add__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a + b, other)

    def __sub__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a - b, other)

    def __mul__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a * b, other)

    def __truediv__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a / b, other)

    def __floordiv__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a // b, other)

    def __mod__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a % b, other)

    def __pow__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a**b, other)

    def __and__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a & b, other)

    def __or__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a | b, other)

    def __xor__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a ^ b, other)

    def __eq__(self, other: object) -> Series:  # type: ignore[override]
        return self._eval(lambda a, b: a == b, other)

    def __ne__(self, other: object) -> Series:  # type: ignore[override]
        return self._eval(lambda a, b: a != b, other)

    def __lt__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a < b, other)

    def __le__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a <= b, other)

    def __gt__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a > b, other)

    def __ge__(self, other: Any) -> Series:
        return self._eval(lambda a, b: a >= b, other)

    def __radd__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b + a, other)

    def __rsub__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b - a, other)

    def __rmul__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b * a, other)

    def __rtruediv__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b / a, other)

    def __rfloordiv__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b // a, other)

    def __rmod__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b % a, other)

    def __rpow__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b**a, other)

    def __rand__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b & a, other)

    def __ror__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b | a, other)

    def __rxor__(self, other: Any) -> Series:
        return self._eval(lambda a, b: b ^ a, other)

    def __invert__(self) -> Series:
        return self._eval(lambda a: ~a)

    def __neg__(self) -> Series:
        return self._eval(lambda a: -a)

    def __abs__(self) -> Series:
        return self._eval(lambda a: abs(a))

    def __bool__(self) -> bool:
        raise _native.GarTypeError("a series has no truth value; combine conditions with &, | and ~")

    __hash__ = None  # type: ignore[assignment]


def _with_nat(numpy: Any, values: Any, valid: Any) -> Any:
    if valid is None:
        return values
    values = values.copy()
    values[~valid] = numpy.array("NaT", dtype=values.dtype)
    return values


def _empty(frame: Any) -> Any:
    """A column without rows of a one-column frame's type."""
    return _native.empty_column(frame)


def _unpickled(values: list[Any], name: str, dtype: str) -> Series:
    return Series.from_pylist(values, name, DataType(dtype))
