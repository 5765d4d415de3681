# SPDX-License-Identifier: Apache-2.0
"""Operators that put rows on disk give what they give in memory: forced to, or under a small memory limit."""

import random

import pyarrow as pa
import pytest

import gar
from gar import col

KINDS = ["inner", "left", "right", "outer", "semi", "anti"]


@pytest.fixture
def settings():
    yield gar.set_execution_config
    gar.set_execution_config(spill_always=False, memory_limit=0)


def table(rows, keys, seed=1):
    """Rows with few or many keys, one of them much more frequent, some null."""
    rng = random.Random(seed)
    k = [
        None if rng.random() < 0.05 else 0 if rng.random() < 0.3 else rng.randrange(keys) for _ in range(rows)
    ]
    return {
        "k": pa.array(k, pa.int64()),
        "s": pa.array(
            [None if rng.random() < 0.1 else f"text number {rng.randrange(40)}" for _ in range(rows)]
        ),
        "v": pa.array([None if rng.random() < 0.1 else rng.randrange(1000) for _ in range(rows)], pa.int64()),
        "i": pa.array(range(rows), pa.int64()),
    }


def frame(*args, **kwargs):
    return gar.from_arrow(pa.table(table(*args, **kwargs)))


def rows_of(df):
    data = df.to_pydict()
    return sorted(zip(*data.values(), strict=True), key=repr)


def check_forced(settings, make):
    settings(spill_always=False)
    expected = rows_of(make())
    settings(spill_always=True)
    assert rows_of(make()) == expected
    return expected


AGGREGATES = {
    "count": lambda c: c.count(),
    "count_distinct": lambda c: c.count_distinct(),
    "sum": lambda c: c.sum(),
    "mean": lambda c: c.mean(),
    "min": lambda c: c.min(),
    "max": lambda c: c.max(),
    "stddev": lambda c: c.stddev().round(9),
    "median": lambda c: c.median(),
    "mode": lambda c: c.mode(),
    "any_value": lambda c: c.any_value().is_null(),
    "first": lambda c: c.first(),
    "last": lambda c: c.last(),
    "approx_count_distinct": lambda c: c.approx_count_distinct(),
}


@pytest.mark.settings
@pytest.mark.parametrize("keys", [["k"], ["k", "s"]])
def test_aggregates(settings, keys):
    df = frame(600, 50)
    calls = {name: make(col("v")).alias(name) for name, make in AGGREGATES.items()}
    small = ("count", "sum", "mean", "min", "max", "stddev")
    check_forced(settings, lambda: df.groupby(*keys).agg(*calls.values()))
    check_forced(settings, lambda: df.groupby(*keys).agg(*(calls[name] for name in small)))


@pytest.mark.settings
def test_texts_in_order(settings):
    df = frame(600, 50)
    check_forced(
        settings,
        lambda: df.groupby("k").agg(col("s").string_agg("-").alias("a"), col("s").max().alias("b")),
    )


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("keys", [30, 1])
def test_joins(settings, how, keys):
    left, right = (
        frame(200, keys),
        frame(150, keys, seed=2).with_columns_renamed({"v": "w", "i": "j", "s": "t"}),
    )
    found = check_forced(settings, lambda: left.join(right, on="k", how=how))
    assert found


@pytest.mark.settings
@pytest.mark.parametrize("how", KINDS)
def test_joins_with_conditions(settings, how):
    left, right = (
        frame(200, 20),
        frame(150, 20, seed=2).with_columns_renamed({"k": "l", "v": "w", "i": "j", "s": "t"}),
    )
    check_forced(
        settings,
        lambda: left.join(
            right, left_on="k", right_on="l", how=how, condition=col("v") < col("w"), nulls_equal=True
        ),
    )


@pytest.mark.settings
def test_distinct(settings):
    df = frame(600, 40)
    check_forced(settings, lambda: df.select("k", "s").distinct())
    check_forced(settings, lambda: df.distinct("k"))


@pytest.mark.settings
@pytest.mark.parametrize("name", ["union", "intersect", "intersect_all", "except_distinct", "except_all"])
def test_sets(settings, name):
    a, b = frame(300, 20).select("k", "s"), frame(300, 20, seed=3).select("k", "s")
    check_forced(settings, lambda: getattr(a, name)(b))


def test_chain(settings):
    left, right = frame(3000, 300), frame(3000, 3000, seed=2).select(col("i").alias("k"), col("v").alias("w"))
    check_forced(
        settings,
        lambda: (
            left.join(right, on="k", how="left")
            .join(right.select(col("k"), col("w").alias("x")), on="k", how="inner")
            .groupby("s")
            .agg(col("w").sum().alias("a"), col("x").count().alias("b"))
            .sort("s")
            .limit(20)
        ),
    )


MANY = 1_000_000


def many():
    return gar.range(MANY).select(
        (col("id") * 7919 % MANY).alias("k"), (col("id") % 1000).alias("v"), col("id").alias("i")
    )


def wide(df):
    return df.select("k", *((col("i") + n).alias(f"w{n}") for n in range(8)))


def counted(df):
    return df.agg(
        *(col(n).sum().alias(n) for n in df.column_names if n != "k"), col("k").count().alias("rows")
    )


LIMITED = {
    "group": lambda df: df.groupby("k").agg(col("v").sum().alias("v"), col("i").max().alias("i")),
    "distinct": lambda df: df.distinct("k"),
    "join": lambda df: df.join(wide(df), on="k"),
    "median": lambda df: df.groupby("k").agg(col("v").median().alias("v"), col("i").first().alias("i")),
}


@pytest.mark.parametrize("name", LIMITED)
def test_memory_limit(settings, name):
    """What needs some 100 MiB without a limit gets by with 40, and says so with nothing to spill to."""
    settings(memory_limit="40MB")
    found = counted(LIMITED[name](many())).to_pydict()
    assert found["rows"] == [MANY]
    assert found["i"] == [MANY * (MANY - 1) // 2]
    settings(memory_limit="40MB", spill_limit=-1)
    try:
        with pytest.raises(MemoryError, match="out of memory"):
            counted(LIMITED[name](many())).to_pydict()
    finally:
        settings(spill_limit=0)
