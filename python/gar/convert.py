# SPDX-License-Identifier: Apache-2.0
"""Frames from data in memory."""

from __future__ import annotations

from gar import _checks, _native
from gar._pandas import column_of
from gar.dataframe import DataFrame, concat
from gar.series import Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def from_pydict(data: Mapping[str, Any]) -> DataFrame:
    """From {name: column}; a column is a list, a Series, a numpy array (without a copy) or Arrow data.

    In a list None is null, and so is NaN among values that are no numbers. Timestamps of pandas with nanoseconds make
    the column's unit ns; numpy's times keep theirs. A pandas Series is taken as from_pandas takes its columns.
    """
    names, columns = [], []
    for name, column in _checks.pairs("from_pydict", data):
        if not isinstance(name, str):
            raise _native.GarTypeError(f"column names must be str, got {_checks.shown(name)}")
        names.append(name)
        columns.append(_column(name, column))
    return DataFrame._of(_native.from_columns(names, columns), is_collected=True)


def _column(name: str, column: Any) -> Any:
    """What the extension takes for a column."""
    if isinstance(column, Series):
        return column._array
    if type(column).__module__.split(".")[0] != "pandas":
        return column
    try:
        return column_of(column)
    except _native.GarError as error:
        error.args = (f"column '{name}': {error}",)
        raise


def from_pylist(data: Iterable[Mapping[str, Any]]) -> DataFrame:
    """From rows as dicts. Columns come in the order in which their names are first seen; what a row lacks is null."""
    rows = _checks.items("from_pylist", data)
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
            f"from_arrow takes Arrow data or an iterable of it, got {_checks.shown(data)}"
        )
    frames = [from_arrow(item)._frame for item in _checks.items("from_arrow", data)]
    if not frames:
        raise _native.GarValueError("from_arrow got an iterable without any table; a schema is needed")
    if len(frames) == 1:
        return DataFrame._of(frames[0], is_collected=True)
    return DataFrame._of(_native.concat(frames).collect(), is_collected=True)


def from_pandas(data: Any) -> DataFrame:
    """From a pandas DataFrame or a list of them; the index is left out, what pandas counts as missing is null."""
    if isinstance(data, (list, tuple)):
        if not data:
            raise _native.GarValueError("from_pandas got an empty list")
        return concat([from_pandas(item) for item in data]).collect()
    if not hasattr(data, "columns") or not hasattr(data, "iloc"):
        raise _native.GarTypeError(f"from_pandas takes a pandas DataFrame, got {_checks.shown(data)}")
    names, columns = [], []
    for i, name in enumerate(data.columns):
        if not isinstance(name, str):
            raise _native.GarTypeError(f"column names must be str, got {_checks.shown(name)}")
        if name in names:
            raise _native.GarValueError(f"two columns named '{name}'")
        names.append(name)
        columns.append(_column(name, data.iloc[:, i]))
    return DataFrame._of(_native.from_columns(names, columns), is_collected=True)


def range(start: int, end: int | None = None, step: int = 1, partitions: int = 1) -> DataFrame:
    """An int64 column "id": start, start + step, ... before end; with one argument from 0."""
    if end is None:
        start, end = 0, start
    _checks.integer("partitions", partitions, 1)
    return DataFrame._of(
        _native.range(
            _checks.integer("start", start), _checks.integer("end", end), _checks.integer("step", step)
        )
    )
