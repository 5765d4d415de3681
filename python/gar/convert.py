# SPDX-License-Identifier: Apache-2.0
"""Frames from data in memory."""

from __future__ import annotations

from gar import _native
from gar.dataframe import DataFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def from_pydict(data: Mapping[str, Any]) -> DataFrame:
    """From {name: column}; a column is a list, a Series, a numpy array (without a copy) or Arrow data."""
    if not hasattr(data, "items"):
        raise _native.GarTypeError(f"from_pydict takes a dict of columns, got {type(data).__name__}")
    names, columns = [], []
    for name, column in data.items():
        if not isinstance(name, str):
            raise _native.GarTypeError(f"column names must be str, got {type(name).__name__}: {name!r}")
        names.append(name)
        columns.append(getattr(column, "_array", column))
    return DataFrame._of(_native.from_columns(names, columns), is_collected=True)


def from_pylist(data: Iterable[Mapping[str, Any]]) -> DataFrame:
    """From rows as dicts. Columns come in the order in which their names are first seen; what a row lacks is null."""
    rows = data if isinstance(data, list) else list(data)
    names: dict[str, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise _native.GarTypeError(
                f"row {i} is a {type(row).__name__}; from_pylist takes a list of dicts"
            )
        if names.keys() != row.keys():
            names.update(dict.fromkeys(row))
    return from_pydict({name: [row.get(name) for row in rows] for name in names})


def from_arrow(data: Any) -> DataFrame:
    """From a table, record batch or stream of any library that speaks the Arrow C interface, or an iterable of them."""
    if hasattr(data, "__arrow_c_stream__"):
        return DataFrame._of(_native.from_stream(data), is_collected=True)
    if hasattr(data, "__arrow_c_array__"):
        return DataFrame._of(_native.from_record_batch(data), is_collected=True)
    if isinstance(data, (str, bytes, dict)) or not hasattr(data, "__iter__"):
        raise _native.GarTypeError(
            f"from_arrow takes Arrow data or an iterable of it, got {type(data).__name__}"
        )
    frames = [from_arrow(item)._frame for item in data]
    if not frames:
        raise _native.GarValueError("from_arrow got an iterable without any table; a schema is needed")
    if len(frames) == 1:
        return DataFrame._of(frames[0], is_collected=True)
    return DataFrame._of(_native.concat(frames).collect(), is_collected=True)


def from_pandas(data: Any) -> DataFrame:
    """From a pandas DataFrame or a list of them; the index is left out, NaN of pandas is null."""
    if isinstance(data, (list, tuple)):
        frames = [from_pandas(item)._frame for item in data]
        if not frames:
            raise _native.GarValueError("from_pandas got no DataFrame")
        return DataFrame._of(_native.concat(frames).collect(), is_collected=True)
    if not hasattr(data, "columns") or not hasattr(data, "dtypes"):
        raise _native.GarTypeError(f"from_pandas takes a pandas DataFrame, got {type(data).__name__}")
    for name in data.columns:
        if not isinstance(name, str):
            raise _native.GarTypeError(f"column names must be str, got {type(name).__name__}: {name!r}")
    try:
        import pyarrow
    except ImportError:
        return from_pydict({name: _pandas_column(data[name]) for name in data.columns})
    return from_arrow(pyarrow.Table.from_pandas(data, preserve_index=False))


def _pandas_column(series: Any) -> Any:
    """A column of pandas without pyarrow."""
    kind = getattr(series.dtype, "kind", "O")
    if (
        kind in "iubMm"
        and getattr(series.dtype, "tz", None) is None
        and hasattr(series.dtype, "newbyteorder")
    ):
        return series.to_numpy()
    missing = series.isna()
    return [None if gone else value for value, gone in zip(series.tolist(), missing.tolist(), strict=True)]


def range(start: int, end: int | None = None, step: int = 1, partitions: int = 1) -> DataFrame:
    """An int64 column "id": start, start + step, ... before end; with one argument from 0."""
    if end is None:
        start, end = 0, start
    return DataFrame._of(_native.range(start, end, step))
