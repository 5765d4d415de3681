# SPDX-License-Identifier: Apache-2.0
"""Columns of pandas as arrays of the engine. What pandas counts as missing (None, NaN, NaT, NA) is null."""

from __future__ import annotations

from gar import _checks, _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Extension types whose values no column can hold; the way out for each.
_REFUSED = {
    "PeriodDtype": "convert it with .dt.to_timestamp() or .astype(str)",
    "IntervalDtype": "give its .left and .right as columns",
}


def column_of(series: Any) -> _native.Array:
    """A pandas Series, Index or extension array as one array."""
    if not hasattr(series, "dtype") or not hasattr(series, "isna"):
        raise _native.GarTypeError(f"expected a pandas Series, got {_checks.shown(series)}")
    made: _native.Array = _checks.foreign(_convert, series)
    return made


def _convert(series: Any) -> _native.Array:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    name = type(dtype).__name__
    if name in _REFUSED:
        raise _native.GarUnsupportedError(f"values of {dtype} are not supported; {_REFUSED[name]}")
    if name == "SparseDtype":
        return _convert(series.sparse.to_dense())
    if name == "CategoricalDtype":
        return _categories(series)
    if kind in "mM" and not _is_arrow(series):
        return _times(series, getattr(dtype, "tz", None))
    if kind in "biu" and not _is_extension(dtype):
        return _native.array(series.to_numpy())
    if kind in "biuf" and not _is_arrow(series):
        return _numbers(series, kind)
    if kind == "c":
        raise _native.GarUnsupportedError(
            "complex numbers are not supported; give .real and .imag as columns"
        )
    if _is_arrow(series):
        return _native.array(_as_arrow(series))
    return _objects(series, "string" if name == "StringDtype" else None)


def _is_extension(dtype: Any) -> bool:
    return not hasattr(dtype, "newbyteorder")  # numpy's own dtypes have it


def _is_arrow(series: Any) -> bool:
    """Whether Arrow arrays lie behind the values."""
    return hasattr(_values(series), "_pa_array")


def _values(series: Any) -> Any:
    return getattr(series, "array", series)


def _as_arrow(series: Any) -> Any:
    made = _values(series).__arrow_array__()
    if getattr(made.type, "num_fields", 0) or str(made.type).startswith("dictionary"):
        made = getattr(made, "combine_chunks", lambda: made)()
    return made


def _numbers(series: Any, kind: str) -> _native.Array:
    """Floats, and pandas' own nullable numbers and booleans: NaN and NA are null."""
    import numpy

    missing = numpy.asarray(series.isna())
    if _is_extension(series.dtype):
        plain = numpy.dtype(series.dtype.numpy_dtype)
        values = numpy.asarray(series.to_numpy(dtype=plain, na_value=plain.type(0)))
    else:
        values = series.to_numpy()
    if kind == "f":
        missing = missing | numpy.isnan(values)
    return _native.array(numpy.ma.MaskedArray(values, missing) if missing.any() else values)


def _times(series: Any, zone: Any) -> _native.Array:
    """Datetimes and timedeltas in their own unit; with a zone they are instants of UTC inside."""
    import numpy

    if zone is None:
        return _native.array(series.to_numpy())
    accessor = getattr(series, "dt", series)
    values = accessor.tz_convert("UTC")
    values = getattr(values, "dt", values).tz_localize(None)
    array = _native.array(numpy.asarray(values.to_numpy()))
    name = getattr(zone, "key", None) or getattr(zone, "zone", None) or str(zone)
    return _native.zoned(array, _zone_name(str(name)))


def _zone_name(name: str) -> str:
    """Fixed offsets call themselves UTC+02:00 or pytz.FixedOffset(120); Arrow writes +02:00."""
    if name.startswith(("UTC+", "UTC-")):
        return name[3:]
    if name.startswith("pytz.FixedOffset("):
        minutes = int(name[17:-1])
        return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    return name


def _categories(series: Any) -> _native.Array:
    """Categories stand for their values."""
    import numpy

    categories = series.dtype.categories
    codes = numpy.asarray(getattr(series, "cat", series).codes)
    if not _is_extension(categories.dtype) and getattr(categories.dtype, "kind", "O") in "biufmM":
        values = categories.to_numpy()
        if len(values) == 0:
            values = numpy.zeros(1, dtype=values.dtype)
        return _native.array(numpy.ma.MaskedArray(values.take(numpy.maximum(codes, 0)), codes < 0))
    kinds = column_of(categories).type_text()
    return _typed([None if code < 0 else categories[code] for code in codes.tolist()], kinds)


def _objects(series: Any, kind: str | None) -> _native.Array:
    missing = series.isna()
    values = zip(series.tolist(), missing.tolist(), strict=True)
    return _typed([None if gone else value for value, gone in values], kind)


def _typed(values: list[Any], kind: str | None) -> _native.Array:
    """A column of Python objects; where all are null its type is `kind`, if that is known."""
    array = _native.array(values)
    if kind is None or array.type_text() != "null":
        return array
    from gar.series import Series

    return Series("", array).cast(kind)._array
