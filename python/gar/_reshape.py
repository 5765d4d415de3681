# SPDX-License-Identifier: Apache-2.0
"""Frames of another shape: samples, random order, columns into rows and rows into columns, as plans of other operators."""

from __future__ import annotations

import os

from gar import _checks, _native
from gar.expressions import col, lit, when
from gar.window import Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gar.dataframe import ColumnInput, DataFrame
    from gar.expressions import Expression

_HASHES = 1 << 64


def free_name(name: str, *frames: DataFrame) -> str:
    """A name like this one that no column has."""
    while any(name in frame for frame in frames):
        name += "'"
    return name


def numbered(df: DataFrame, name: str) -> DataFrame:
    """The rows with their numbers from 0."""
    number: Expression = _native.call("row_number")
    return df.with_column(name, number.over(Window()) - 1)


def draw(number: Expression, seed: int | None) -> Expression:
    """A random uint64 of a row: equal numbers and seeds give equal ones."""
    drawn = (
        int.from_bytes(os.urandom(7), "little") if seed is None else _checks.integer("seed", seed, -(1 << 63))
    )
    made: Expression = _native.call("hash", number, lit(drawn))
    return made


def sample(
    df: DataFrame, fraction: float | None, size: int | None, with_replacement: bool, seed: int | None
) -> DataFrame:
    if (fraction is None) == (size is None):
        raise _native.GarValueError("sample takes either fraction or size")
    if fraction is not None and not 0 <= _checks.number("fraction", fraction) <= 1:
        raise _native.GarValueError(f"fraction is a number from 0 to 1, got {fraction!r}")
    if size is not None:
        _checks.integer("size", size, 0)
    if _checks.flag("with_replacement", with_replacement):
        return _sample_again(df, fraction, size, seed)
    row = free_name("row", df)
    rows = numbered(df, row)
    if size is None:
        share = round(float(fraction or 0) * _HASHES)
        chosen = rows if share >= _HASHES else rows.where(draw(col(row), seed) < lit(share))
    else:
        by = free_name("draw", rows)
        chosen = rows.with_column(by, draw(col(row), seed)).sort(by).limit(size).sort(row).exclude(by)
    return chosen.exclude(row)


def _sample_again(df: DataFrame, fraction: float | None, size: int | None, seed: int | None) -> DataFrame:
    from gar.convert import range as new_range

    count = df.count_rows()
    draws = size if size is not None else round(float(fraction or 0) * count)
    if count == 0:
        return df.limit(0)
    row = free_name("row", df)
    drawn = new_range(draws).select((draw(col("id"), seed) % lit(count)).cast("int64").alias(row))
    return drawn.join(numbered(df, row), on=row).exclude(row)


def shuffle(df: DataFrame, seed: int | None) -> DataFrame:
    row = free_name("row", df)
    rows = numbered(df, row)
    by = free_name("draw", rows)
    return rows.with_column(by, draw(col(row), seed)).sort(by).exclude(by, row)


def unpivot(df: DataFrame, ids: Any, values: Any, variable_name: str, value_name: str) -> DataFrame:
    from gar.convert import from_pydict

    kept = df._columns([ids])
    names = df.select(*kept).column_names if kept else []
    given = df._columns([values]) if values is not None else []
    columns = given or [col(name) for name in df.column_names if name not in names]
    if not columns:
        raise _native.GarValueError("unpivot: there is no column to take values from")
    labels = df.select(*columns).column_names
    _checks.text("variable_name", variable_name)
    _checks.text("value_name", value_name)
    at = free_name("column", df)
    label = free_name("label", df)
    table = from_pydict({at: list(range(len(labels))), label: labels})
    value = columns[0]
    if len(columns) > 1:
        chain = when(col(at) == 0, columns[0])
        for i, column in enumerate(columns[1:], 1):
            chain = chain.when(col(at) == i, column)
        value = chain.otherwise(None)
    rows = df.join(table, how="cross")
    return rows.select(*kept, col(label).alias(variable_name), value.alias(value_name))


def pivot(
    df: DataFrame,
    group_by: Any,
    pivot_col: ColumnInput,
    value_col: ColumnInput,
    agg_fn: str,
    names: list[str] | None,
) -> DataFrame:
    keys = df._columns([group_by])
    columns = df._columns([pivot_col, value_col])
    if len(columns) != 2:
        raise _native.GarValueError("pivot takes one pivot_col and one value_col")
    pivot_by, value = columns
    if not keys:
        raise _native.GarValueError("pivot needs at least one column to group by")
    function = getattr(value, _checks.text("agg_fn", agg_fn), None)
    if agg_fn not in AGGREGATES or function is None:
        raise _native.GarValueError(
            f"pivot: agg_fn is one of {', '.join(AGGREGATES)}, got {_checks.shown(agg_fn)}"
        )
    keyed = df.select(*keys)
    key_names = keyed.column_names
    label = free_name("label", df, keyed)
    result = free_name("result", df, keyed)
    cells = df.groupby(*keys, pivot_by.alias(label)).agg(function().alias(result))
    if names is None:
        found = cells.select(label).distinct().sort(label).to_pydict()[label]
    else:
        found = list(_checks.items("names", names))
    texts = [str(name) for name in found]
    for text in texts:
        if text in key_names or texts.count(text) > 1:
            raise _native.GarValueError(
                f"pivot: two columns would be named {text!r}; rename the key, or make the values of pivot_col differ as text"
            )
    made = []
    for name, text in zip(found, texts, strict=True):
        is_nan = isinstance(name, float) and name != name
        is_it = col(label).is_nan() if is_nan else col(label).eq_null_safe(lit(name))
        made.append(when(is_it, col(result)).otherwise(None).any_value().alias(text))
    groups = cells.groupby(*key_names)
    return groups.agg(*made) if made else cells.select(*key_names).distinct()


AGGREGATES = (
    "sum", "mean", "min", "max", "count", "count_distinct", "any_value", "stddev", "var", "median", "product", "skew",
)  # fmt: skip
