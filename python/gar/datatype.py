# SPDX-License-Identifier: Apache-2.0
"""Data types."""

from __future__ import annotations

from gar import _checks, _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Truth = bool  # inside the class, bool is a column type

_UNITS = {"s": "s", "seconds": "s", "ms": "ms", "milliseconds": "ms", "us": "us", "microseconds": "us"}
_UNITS |= {"ns": "ns", "nanoseconds": "ns"}


class TimeUnit:
    """Unit of times, timestamps and durations."""

    __module__ = "gar"
    __slots__ = ("_text",)

    def __init__(self, text: TimeUnit | str) -> None:
        self._text = _unit(text)

    @classmethod
    def from_str(cls, unit: str) -> TimeUnit:
        """From "s", "ms", "us" or "ns"."""
        return cls(_unit(unit))

    @classmethod
    def s(cls) -> TimeUnit:
        return cls("s")

    @classmethod
    def ms(cls) -> TimeUnit:
        return cls("ms")

    @classmethod
    def us(cls) -> TimeUnit:
        return cls("us")

    @classmethod
    def ns(cls) -> TimeUnit:
        return cls("ns")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"TimeUnit({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeUnit) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def _unit(unit: TimeUnit | str) -> str:
    if not isinstance(unit, (TimeUnit, str)):
        raise _native.GarTypeError(f"a time unit must be a str or a TimeUnit, got {_checks.shown(unit)}")
    text = _UNITS.get(str(unit).lower())
    if text is None:
        raise _native.GarValueError(
            f"unknown time unit {_checks.shown(str(unit))}; known are s, ms, us and ns"
        )
    return text


def _unsupported(what: str) -> DataType:
    raise _native.GarUnsupportedError(f"the type {what} is not supported")


class DataType:
    """The type of a column. Made by its class methods, or from text as SQL or str() writes it."""

    __module__ = "gar"
    __slots__ = ("_text",)
    _text: str

    def __init__(self, text: DataType | str) -> None:
        self._text = _native.canonical_type(
            text._text if isinstance(text, DataType) else _checks.text("a type", text)
        )

    @classmethod
    def _known(cls, text: str) -> DataType:
        made = object.__new__(cls)
        made._text = text
        return made

    # ---- simple types

    @classmethod
    def null(cls) -> DataType:
        return cls._known("null")

    @classmethod
    def bool(cls) -> DataType:
        return cls._known("bool")

    @classmethod
    def int8(cls) -> DataType:
        return cls._known("int8")

    @classmethod
    def int16(cls) -> DataType:
        return cls._known("int16")

    @classmethod
    def int32(cls) -> DataType:
        return cls._known("int32")

    @classmethod
    def int64(cls) -> DataType:
        return cls._known("int64")

    @classmethod
    def uint8(cls) -> DataType:
        return cls._known("uint8")

    @classmethod
    def uint16(cls) -> DataType:
        return cls._known("uint16")

    @classmethod
    def uint32(cls) -> DataType:
        return cls._known("uint32")

    @classmethod
    def uint64(cls) -> DataType:
        return cls._known("uint64")

    @classmethod
    def float32(cls) -> DataType:
        return cls._known("float32")

    @classmethod
    def float64(cls) -> DataType:
        return cls._known("float64")

    @classmethod
    def string(cls) -> DataType:
        return cls._known("string")

    @classmethod
    def binary(cls) -> DataType:
        return cls._known("binary")

    @classmethod
    def date(cls) -> DataType:
        return cls._known("date")

    # ---- types with parameters

    @classmethod
    def decimal128(cls, precision: int, scale: int = 0) -> DataType:
        """Exact decimals of up to `precision` (at most 38) digits, `scale` of them after the point."""
        return cls(
            f"decimal({_checks.integer('precision', precision, 1, 38)}, {_checks.integer('scale', scale, 0, 38)})"
        )

    @classmethod
    def time(cls, timeunit: TimeUnit | str = "us") -> DataType:
        unit = _unit(timeunit)
        if unit not in ("us", "ns"):
            raise _native.GarValueError(f"a time of day has unit us or ns, not {unit}")
        return cls._known(f"time[{unit}]")

    @classmethod
    def timestamp(cls, timeunit: TimeUnit | str = "us", timezone: str | None = None) -> DataType:
        unit = _unit(timeunit)
        if timezone is None:
            return cls._known(f"timestamp[{unit}]")
        return cls(f"timestamp[{unit}, {_checks.text('timezone', timezone)}]")

    @classmethod
    def duration(cls, timeunit: TimeUnit | str = "us") -> DataType:
        return cls._known(f"duration[{_unit(timeunit)}]")

    # ---- names of types that columns cannot have yet

    @classmethod
    def list(cls, dtype: DataType) -> DataType:
        return _unsupported("list")

    @classmethod
    def fixed_size_list(cls, dtype: DataType, size: int) -> DataType:
        return _unsupported("fixed_size_list")

    @classmethod
    def struct(cls, fields: dict[str, DataType]) -> DataType:
        return _unsupported("struct")

    @classmethod
    def map(cls, key_type: DataType, value_type: DataType) -> DataType:
        return _unsupported("map")

    @classmethod
    def python(cls) -> DataType:
        return _unsupported("python")

    @classmethod
    def float16(cls) -> DataType:
        return _unsupported("float16")

    @classmethod
    def fixed_size_binary(cls, size: int) -> DataType:
        return _unsupported("fixed_size_binary")

    @classmethod
    def interval(cls) -> DataType:
        return _unsupported("interval")

    @classmethod
    def embedding(cls, dtype: DataType, size: int) -> DataType:
        return _unsupported("embedding")

    @classmethod
    def tensor(cls, dtype: DataType, shape: Any = None) -> DataType:
        return _unsupported("tensor")

    @classmethod
    def image(cls, mode: Any = None, height: int | None = None, width: int | None = None) -> DataType:
        return _unsupported("image")

    @classmethod
    def file(cls, media_type: Any = None) -> DataType:
        return _unsupported("file")

    # ---- from elsewhere

    @classmethod
    def from_arrow_type(cls, arrow_type: Any) -> DataType:
        """From a pyarrow type, or anything else with __arrow_c_schema__."""
        if not hasattr(arrow_type, "__arrow_c_schema__"):
            raise _native.GarTypeError(f"not an Arrow type: {_checks.shown(arrow_type)}")
        text = _native.schema_types(arrow_type)
        if not isinstance(text, str):
            return _unsupported("struct")
        return cls._known(text)

    @classmethod
    def from_numpy_dtype(cls, np_type: Any) -> DataType:
        """From a numpy dtype, or what numpy.dtype takes."""
        if not hasattr(np_type, "kind") or not hasattr(np_type, "itemsize"):
            np_type = _checks.foreign(_checks.package("numpy", "from_numpy_dtype").dtype, np_type)
        kind, size = np_type.kind, np_type.itemsize
        if kind in "iuf" and not (kind == "f" and size > 8):
            name = {"i": "int", "u": "uint", "f": "float"}[kind]
            return cls._known("float32" if kind == "f" and size == 2 else f"{name}{size * 8}")
        if kind == "b":
            return cls.bool()
        if kind in "US":
            return cls.string() if kind == "U" else cls.binary()
        if kind in "Mm":
            unit = np_type.str[4:-1] if "[" in np_type.str else ""
            if kind == "M" and unit in ("D", "W", "M", "Y"):
                return cls.date()
            if unit in ("m", "h", "D", "W") and not (kind == "m" and unit in ("M", "Y")):
                unit = "s"
            return cls.timestamp(unit) if kind == "M" else cls.duration(unit)
        return _unsupported(str(np_type))

    @classmethod
    def from_sql(cls, sql: str) -> DataType:
        """From SQL's spelling: "bigint", "decimal(15, 2)", "varchar"."""
        return cls(sql)

    @classmethod
    def infer_from_type(cls, t: type) -> DataType:
        """The column type of a Python class."""
        if not isinstance(t, type):
            raise _native.GarTypeError(f"infer_from_type takes a class, got {_checks.shown(t)}")
        name = f"{t.__module__}.{t.__qualname__}"
        text = _PYTHON_TYPES.get(name)
        return cls._known(text) if text is not None else _unsupported(name)

    @classmethod
    def infer_from_object(cls, obj: Any) -> DataType:
        """The column type of one Python object."""
        return cls._known(_native.array([obj]).type_text())

    @classmethod
    def _from(cls, dtype: DataType | str | type) -> DataType:
        if isinstance(dtype, DataType):
            return dtype
        if isinstance(dtype, str):
            return cls(dtype)
        if isinstance(dtype, type):
            return cls.infer_from_type(dtype)
        return cls.from_arrow_type(dtype)

    # ---- looking

    def to_arrow_dtype(self) -> Any:
        """The pyarrow type."""
        pyarrow = _checks.package("pyarrow", "to_arrow_dtype")
        return _checks.foreign(pyarrow.schema, _OneField(self)).field(0).type

    def __arrow_c_schema__(self) -> object:
        return _native.type_to_schema(self._text)

    @property
    def timeunit(self) -> TimeUnit:
        """Unit of a time, timestamp or duration."""
        if "[" not in self._text:
            raise _native.GarAttributeError(f"{self._text} has no unit")
        return TimeUnit(self._text.split("[")[1].rstrip("]").split(",")[0])

    @property
    def timezone(self) -> str | None:
        """Zone of a timestamp, or None."""
        if not self.is_timestamp():
            raise _native.GarAttributeError(f"{self._text} has no time zone")
        _, comma, zone = self._text.partition(",")
        return zone.strip().rstrip("]") if comma else None

    @property
    def precision(self) -> int:
        return self._decimal_part(0)

    @property
    def scale(self) -> int:
        return self._decimal_part(1)

    def _decimal_part(self, i: int) -> int:
        if not self.is_decimal128():
            raise _native.GarAttributeError(f"{self._text} has no precision or scale")
        return int(self._text[8:-1].split(",")[i])

    def _is(self, *names: str) -> Truth:
        return self._text.split("[")[0].split("(")[0] in names

    def is_null(self) -> Truth:
        return self._is("null")

    def is_boolean(self) -> Truth:
        return self._is("bool")

    def is_integer(self) -> Truth:
        return self._text.startswith(("int", "uint"))

    def is_signed_integer(self) -> Truth:
        return self._text.startswith("int")

    def is_unsigned_integer(self) -> Truth:
        return self._text.startswith("uint")

    def is_int8(self) -> Truth:
        return self._is("int8")

    def is_int16(self) -> Truth:
        return self._is("int16")

    def is_int32(self) -> Truth:
        return self._is("int32")

    def is_int64(self) -> Truth:
        return self._is("int64")

    def is_uint8(self) -> Truth:
        return self._is("uint8")

    def is_uint16(self) -> Truth:
        return self._is("uint16")

    def is_uint32(self) -> Truth:
        return self._is("uint32")

    def is_uint64(self) -> Truth:
        return self._is("uint64")

    def is_float32(self) -> Truth:
        return self._is("float32")

    def is_floating(self) -> Truth:
        return self._is("float32", "float64")

    def is_float64(self) -> Truth:
        return self._is("float64")

    def is_decimal128(self) -> Truth:
        return self._is("decimal")

    def is_numeric(self) -> Truth:
        return self.is_integer() or self._is("float32", "float64", "decimal")

    def is_string(self) -> Truth:
        return self._is("string")

    def is_binary(self) -> Truth:
        return self._is("binary")

    def is_date(self) -> Truth:
        return self._is("date")

    def is_time(self) -> Truth:
        return self._is("time")

    def is_timestamp(self) -> Truth:
        return self._is("timestamp")

    def is_duration(self) -> Truth:
        return self._is("duration")

    def is_list(self) -> Truth:
        return False

    def is_fixed_size_list(self) -> Truth:
        return False

    def is_struct(self) -> Truth:
        return False

    def is_map(self) -> Truth:
        return False

    def is_python(self) -> Truth:
        return False

    def is_temporal(self) -> Truth:
        return self._is("date", "time", "timestamp", "duration")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> Truth:
        return isinstance(other, DataType) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataType, (self._text,))


class _OneField:
    """A schema of one unnamed column, for pyarrow.schema()."""

    __slots__ = ("_dtype",)

    def __init__(self, dtype: DataType) -> None:
        self._dtype = dtype

    def __arrow_c_schema__(self) -> object:
        return _native.schema_from_types([("", str(self._dtype))])


_PYTHON_TYPES = {
    "builtins.NoneType": "null",
    "builtins.bool": "bool",
    "builtins.int": "int64",
    "builtins.float": "float64",
    "builtins.str": "string",
    "builtins.bytes": "binary",
    "datetime.date": "date",
    "datetime.datetime": "timestamp[us]",
    "datetime.time": "time[us]",
    "datetime.timedelta": "duration[us]",
    "decimal.Decimal": "decimal(38, 9)",
}
