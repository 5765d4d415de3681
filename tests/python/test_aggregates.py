# SPDX-License-Identifier: Apache-2.0
"""Aggregates against DuckDB over random data, whole and by group, and what each says by hand."""

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gar
from gar import col

pytestmark = pytest.mark.settings

VALUES = st.none() | st.integers(-9, 9)
FLOATS = st.none() | st.sampled_from([-7.5, -1.0, 0.0, 0.25, 2.0, 100.0])
TEXTS = st.none() | st.sampled_from(["", "a", "b", "a text of more than twelve bytes", "é"])

AGGREGATES = {
    "median": (col("x").median(), "median(x)"),
    "percentile": (col("f").percentile(0.9), "quantile_cont(f, 0.9)"),
    "least": (col("f").percentile(0), "min(f)"),
    "first": (col("s").first(), "first(s order by i)"),
    "last": (col("s").last(), "last(s order by i)"),
    "first_by": (col("s").first(order_by=col("x")), "first(s order by x nulls last, i)"),
    "last_by": (col("s").last(order_by=col("x")), "last(s order by x nulls last, i)"),
    "first_known": (col("s").first(ignore_nulls=True), "first(s order by i) filter (s is not null)"),
    "arg_min": (col("i").arg_min(col("x")), "first(i order by x, i) filter (x is not null)"),
    "arg_max": (col("i").arg_max(col("x")), "first(i order by x desc, i) filter (x is not null)"),
    "string_agg": (col("s").string_agg(", "), "string_agg(s, ', ' order by i)"),
    "corr": (
        col("x").corr(col("f")),
        "case when stddev_pop(x) filter (f is not null) > 0 and stddev_pop(f) filter (x is not null) > 0"
        " then corr(x, f) end",
    ),
    "covar_pop": (col("x").covar_pop(col("f")), "covar_pop(x, f)"),
    "covar_samp": (col("x").covar_samp(col("f")), "covar_samp(x, f)"),
    "var0": (col("x").var(0), "var_pop(x)"),
    "stddev1": (col("x").stddev(1), "stddev_samp(x)"),
    "kurtosis": (col("x").kurtosis(), "case when var_pop(x) > 0 then kurtosis_pop(x) end"),
    "nulls": (col("x").count("null"), "count(*) - count(x)"),
    "rows": (col("x").count("all"), "count(*)"),
    "distinct": (col("s").approx_count_distinct(), "count(distinct s)"),
    "mode": (col("x").mode(), "mode(x)"),  # DuckDB takes any of several; ours is checked by hand
}
CHECKED_BY_HAND = {"mode"}


@st.composite
def tables(draw):
    count = draw(st.integers(0, 40))
    cells = {
        name: draw(st.lists(values, min_size=count, max_size=count))
        for name, values in {"g": st.none() | st.integers(0, 3), "x": VALUES, "f": FLOATS, "s": TEXTS}.items()
    }
    return pa.table(
        {
            "i": pa.array(range(count), pa.int64()),
            "g": pa.array(cells["g"], pa.int32()),
            "x": pa.array(cells["x"], pa.int64()),
            "f": pa.array(cells["f"], pa.float64()),
            "s": pa.array(cells["s"], pa.string()),
        }
    )


def is_close(a, b):
    if a is None or b is None or isinstance(a, str):
        return a == b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def by_group(rows):
    return sorted(rows, key=lambda row: (row.get("g") is None, row.get("g")))


@pytest.mark.parametrize("keys", [[], ["g"]], ids=["global", "grouped"])
@given(tables())
def test_against_duckdb(keys, table):
    frame = gar.from_arrow(table)
    aggregates = [aggregate.alias(name) for name, (aggregate, _) in AGGREGATES.items()]
    ours = (frame.groupby(*keys).agg(*aggregates) if keys else frame.agg(*aggregates)).to_pylist()
    with duckdb.connect() as connection:
        connection.register("t", table)
        asked = ", ".join([*keys, *(f"{sql} as {name}" for name, (_, sql) in AGGREGATES.items())])
        cursor = connection.execute(f"select {asked} from t" + (" group by g" if keys else ""))
        names = [item[0] for item in cursor.description]
        theirs = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert len(ours) == len(theirs)
    for a, b in zip(by_group(ours), by_group(theirs), strict=True):
        for name in AGGREGATES.keys() - CHECKED_BY_HAND:
            assert is_close(a[name], b[name]), (name, a[name], b[name])
        members = [r["x"] for r in table.to_pylist() if r["x"] is not None and (not keys or r["g"] == a["g"])]
        counts = {x: members.count(x) for x in members}
        mode = min((x for x in counts if counts[x] == max(counts.values())), default=None)
        assert a["mode"] == mode


@pytest.mark.parametrize("cut", [1, 7, 1000, 2999])
def test_split_input(cut):
    """A split input gives the same: every aggregate is joined from the parts in their order."""
    rows = 3000
    table = pa.table(
        {
            "i": range(rows),
            "x": [(i * 7919) % 501 if i % 5 else None for i in range(rows)],
            "f": [((i * 31) % 97) / 7 for i in range(rows)],
            "s": [f"text {i % 13}" for i in range(rows)],
            "g": [i % 11 for i in range(rows)],
        }
    )
    aggregates = [aggregate.alias(name) for name, (aggregate, _) in AGGREGATES.items()]
    whole = gar.from_arrow(table)
    parts = gar.from_arrow(table.slice(0, cut)).concat(gar.from_arrow(table.slice(cut)))
    for keys in ([], ["g"]):
        both = [
            by_group((frame.groupby(*keys).agg(*aggregates) if keys else frame.agg(*aggregates)).to_pylist())
            for frame in (whole, parts)
        ]
        for a, b in zip(*both, strict=True):
            assert all(is_close(a[name], b[name]) for name in a), (a, b)


def test_floats():
    nan = math.nan
    frame = gar.from_pydict({"a": [1.0, nan, 3.0, 2.0, None], "b": [nan, 5.0, 1.0, None, 9.0]})
    row = frame.agg(
        col("a").percentile(1.0).alias("p"),
        col("a").median().alias("m"),
        col("a").arg_min(col("b")).alias("least"),
        col("a").arg_max(col("b")).alias("greatest"),
    ).to_pylist()[0]
    assert math.isnan(row["p"])  # NaN is the greatest
    assert row["m"] == 2.5
    assert row["least"] == 3.0  # NaN counts only when there is nothing else
    assert row["greatest"] is None


def test_estimates():
    frame = gar.range(0, 200_000).with_column("m", col("id") % 1000).with_column("v", (col("id") + 1) * -0.5)
    row = frame.agg(
        col("id").approx_count_distinct().alias("all"),
        col("m").approx_count_distinct().alias("few"),
        col("id").approx_percentiles(0.5).alias("half"),
        col("v").approx_percentiles(0.01).alias("low"),
    ).to_pylist()[0]
    assert abs(row["all"] - 200_000) < 200_000 * 0.03
    assert abs(row["few"] - 1000) < 20
    assert abs(row["half"] - 100_000) < 1010
    assert abs(row["low"] + 99_000) < 1000


def test_skew():
    values = [1, 2, 3, 10, None]
    known = [v for v in values if v is not None]
    mean = sum(known) / 4
    m2, m3 = (sum((v - mean) ** k for v in known) / 4 for k in (2, 3))
    frame = gar.from_pydict({"a": values, "c": [5, 5, 5, 5, 5]})
    assert math.isclose(frame.skew("a").to_pydict()["a"][0], m3 / m2**1.5)
    assert frame.skew("c").to_pydict()["c"] == [None]
    assert frame.groupby("c").median("a").to_pydict() == {"c": [5], "a": [2.5]}


def test_refusals():
    frame = gar.from_pydict({"a": [1, 2], "s": ["x", "y"]})
    with pytest.raises(gar.GarError, match="from 0 to 1"):
        frame.agg(col("a").percentile(1.5))
    with pytest.raises(gar.GarError, match="takes a number"):
        frame.agg(col("s").median())
    with pytest.raises(gar.GarError, match="takes a string"):
        frame.agg(col("a").string_agg(","))
    with pytest.raises(gar.GarError, match="literal"):
        frame.agg(col("s").string_agg(col("s")))


@pytest.mark.parametrize("value", [0.1, 1e300, -1.0 / 3.0])
def test_equal_values_do_not_vary(value):
    frame = gar.range(5000).select((col("id") % 3).alias("g"), (col("id") * 0 + value).alias("x"))
    for made in (frame.agg(col("x").var()), frame.groupby("g").agg(col("x").stddev()).select("x").distinct()):
        assert made.to_pydict() == {"x": [0.0]}


def test_sums_of_shifted_values():
    frame = gar.from_arrow(
        pa.table(
            {
                "g": ["a", "b", "a", None],
                "x": pa.array([1, None, -5, 32767], pa.int16()),
                "u": pa.array([1, 2, 255, None], pa.uint8()),
            }
        )
    )
    exprs = [(col("x") + k).sum().alias(f"x{k}") for k in range(4)]
    exprs += [
        (7 + col("u")).sum().alias("a"),
        (col("u") - 3).sum().alias("b"),
        (col("u") + 1).sum().alias("c"),
    ]
    assert frame.agg(*exprs).to_pydict() == {
        **{f"x{k}": [32763 + 3 * k] for k in range(4)},
        "a": [258 + 21],
        "b": [258 - 9],
        "c": [258 + 3],
    }
    assert frame.groupby("g").agg(*exprs).sort("g").select("x1", "b").to_pydict() == {
        "x1": [-2, None, 32768],
        "b": [250, -1, None],
    }
    with pytest.raises(gar.GarOverflowError):
        gar.from_arrow(pa.table({"i": pa.array([2**31 - 1], pa.int32())})).agg(
            *[(col("i") + k).sum().alias(f"i{k}") for k in range(4)]
        ).collect()
