# SPDX-License-Identifier: Apache-2.0
"""Joins: every kind against DuckDB over random tables, and the cases that users stumbled over."""

import math
from datetime import date

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gar
from gar import col, lit

pytestmark = pytest.mark.settings

KINDS = ["inner", "left", "right", "outer", "semi", "anti"]


def rows(frame):
    """Rows in an order of their own: a join's is not specified."""
    return sorted((tuple(row.values()) for row in frame.to_pylist()), key=repr)


def by_duckdb(left, right, how, condition="l.k = r.k"):
    """The same join by DuckDB, as sorted rows of (k, a, b) or (k, a)."""
    names = {"inner": "inner", "left": "left", "right": "right", "outer": "full"}
    with duckdb.connect() as db:
        db.register("l", left)
        db.register("r", right)
        if how in ("semi", "anti"):
            found = db.sql(f"select l.k, l.a from l {how} join r on {condition}")
        else:
            found = db.sql(f"select coalesce(l.k, r.k), l.a, r.b from l {names[how]} join r on {condition}")
        return sorted(found.fetchall(), key=repr)


def tables(left_keys, right_keys, key_type):
    left = pa.table({"k": pa.array(left_keys, key_type), "a": list(range(len(left_keys)))})
    right = pa.table({"k": pa.array(right_keys, key_type), "b": list(range(len(right_keys)))})
    return left, right


KEYS = {
    "int64": (pa.int64(), st.integers(-3, 6)),
    "wide int64": (pa.int64(), st.sampled_from([-(2**62), -1, 0, 7, 10**6, 2**62])),
    "text": (
        pa.string(),
        st.sampled_from(
            ["", "a", "b", "a text of more than twelve bytes", "a text of more than twelve bytez"]
        ),
    ),
    "date": (pa.date32(), st.dates(min_value=date(2020, 1, 1), max_value=date(2020, 1, 9))),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(30, 2), st.decimals(0, 5, places=2).map(lambda d: d)),
}


@pytest.mark.parametrize("name", list(KEYS))
@pytest.mark.parametrize("how", KINDS)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_like_duckdb(name, how, data):
    key_type, values = KEYS[name]
    keys = st.lists(st.one_of(st.none(), values), max_size=40)
    left, right = tables(data.draw(keys), data.draw(keys), key_type)
    got = rows(gar.from_arrow(left).join(gar.from_arrow(right), on="k", how=how))
    assert got == by_duckdb(left, right, how)


@pytest.mark.parametrize("how", KINDS)
def test_with_a_condition(how):
    left, right = tables([1, 1, 2, None, 4, 5], [1, 1, 2, 2, None, 9], pa.int64())
    got = rows(
        gar.from_arrow(left).join(gar.from_arrow(right), on="k", how=how, condition=col("a") < col("b"))
    )
    assert got == by_duckdb(left, right, how, "l.k = r.k and l.a < r.b")


@pytest.mark.parametrize("how", KINDS)
def test_without_an_equality(how):
    left, right = tables([1, 3, None], [2, 4, 4], pa.int64())
    got = rows(
        gar.from_arrow(left)
        .join(gar.from_arrow(right), how=how, condition=col("k") < col("right.k"))
        .select("k", "a", *([] if how in ("semi", "anti") else ["b"]))
    )
    want = [
        row
        for row in by_duckdb(left, right, how, "l.k < r.k")
        if not (how in ("right", "outer") and row[1] is None)
    ]
    assert [row for row in got if not (how in ("right", "outer") and row[1] is None)] == want


def test_equalities_of_a_condition_are_keys():
    left = gar.from_pydict({"x": [1, 2, 3], "a": [1, 2, 3]})
    right = gar.from_pydict({"y": [3, 2, 2], "b": [1, 2, 3]})
    joined = left.join(right, condition=(col("y") == col("x")) & (col("b") > 1))
    assert rows(joined) == [(2, 2, 2, 2), (2, 2, 2, 3)]
    crossed = left.join(right, how="cross").where(col("x") == col("y"))
    assert len(rows(crossed)) == 3


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_cross(count):
    left = gar.from_pydict({"a": list(range(count))})
    right = gar.from_pydict({"b": list(range(50))})
    assert rows(left.join(right, how="cross")) == sorted(
        ((a, b) for a in range(count) for b in range(50)), key=repr
    )
    assert left.join(right, how="cross").count_rows() == count * 50


def test_names():
    left = gar.from_pydict({"k": [1], "v": [2]})
    right = gar.from_pydict({"k": [1], "v": [3]})
    assert left.join(right, on="k").to_pydict() == {"k": [1], "v": [2], "right.v": [3]}
    assert left.join(right, on="k", suffix="_r").column_names == ["k", "v", "v_r"]
    assert left.join(right, on="k", prefix="r_").column_names == ["k", "v", "r_v"]
    assert left.join(right, on="k").where(col("right.v") == 3).count_rows() == 1
    assert left.join(right, on="k").where(col("v") == 3).count_rows() == 0
    both = left.join(right, left_on="k", right_on="v")
    assert both.column_names == ["k", "v", "right.k", "right.v"]
    with pytest.raises(ValueError, match="v"):
        left.join(right.with_column("right.v", lit(1)), on="k").collect()
    assert left.join(right.with_column("right.v", lit(1)), on="k", how="semi").count_rows() == 1


def test_two_left_keys_for_one_right_key():
    left = gar.from_pydict({"a": [1, 1], "b": [1, 2]})
    right = gar.from_pydict({"k": [1, 2]})
    assert left.join(right, left_on=["a", "b"], right_on=["k", "k"]).to_pydict() == {
        "a": [1],
        "b": [1],
        "k": [1],
    }


def test_self_join():
    df = gar.from_pydict({"k": [1, 1, 2]})
    assert df.join(df, on="k").count_rows() == 5


def test_key_types_mix():
    left = gar.from_arrow(pa.table({"k": pa.array([1, 2, None, -1], pa.int8())}))
    right = gar.from_arrow(pa.table({"k": pa.array([2, 300, None], pa.int64())}))
    joined = left.join(right, on="k")
    assert joined.to_pydict() == {"k": [2]}
    assert joined.schema()["k"].dtype == gar.DataType.int8()
    unsigned = gar.from_arrow(pa.table({"k": pa.array([2, 2**64 - 1], pa.uint64())}))
    assert right.join(unsigned, on="k").to_pydict() == {"k": [2]}
    decimals = gar.from_arrow(pa.table({"k": pa.array([2, 3], pa.int64()).cast(pa.decimal128(21, 2))}))
    assert right.join(decimals, on="k").count_rows() == 1
    with pytest.raises(TypeError, match=r"int64.*string|string.*int64"):
        right.join(gar.from_pydict({"k": ["2"]}), on="k")


def test_floats():
    values = [0.0, -0.0, math.nan, math.nan, 1.5, None]
    df = gar.from_pydict({"k": values})
    assert df.join(df, on="k").count_rows() == 4 + 4 + 1
    assert df.join(df, on="k", nulls_equal=True).count_rows() == 4 + 4 + 1 + 1


def test_null_keys():
    df = gar.from_pydict({"k": [1, None, None], "j": [None, 1, 1]})
    other = gar.from_pydict({"k": [1, None], "j": [None, 1]})
    assert df.join(other, on=["k", "j"]).count_rows() == 0
    assert df.join(other, on=["k", "j"], nulls_equal=True).count_rows() == 3
    assert df.join(other, on=["k", "j"], how="anti").count_rows() == 3
    assert rows(df.join(other, on=["k", "j"], how="outer")) == sorted(
        [(1, None), (None, 1), (None, 1), (1, None), (None, 1)], key=repr
    )


def test_outer_keeps_the_key_of_either_side():
    left = gar.from_pydict({"k": [1, 2], "a": ["x", "y"]})
    right = gar.from_pydict({"k": [2, 3], "b": ["u", "v"]})
    assert rows(left.join(right, on="k", how="outer")) == [
        (1, "x", None),
        (2, "y", "u"),
        (3, None, "v"),
    ]
    assert rows(left.join(right, on="k", how="right")) == [(2, "y", "u"), (3, None, "v")]


def test_key_expressions():
    left = gar.from_pydict({"a": [1, 2, 3]})
    right = gar.from_pydict({"b": [10, 20, 40]})
    assert rows(left.join(right, left_on=col("a") * 10, right_on="b")) == [(1, 10), (2, 20)]


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("left_count,right_count", [(0, 0), (0, 3), (3, 0)])
def test_empty_sides(how, left_count, right_count):
    left, right = tables([1] * left_count, [1] * right_count, pa.int64())
    got = rows(gar.from_arrow(left).join(gar.from_arrow(right), on="k", how=how))
    assert got == by_duckdb(left, right, how)


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("swapped", [False, True])
def test_large_with_repeats(how, swapped):
    n, m = (20000, 1500) if swapped else (1500, 20000)
    left, right = tables([i * 7 % 999 for i in range(n)], [i * 5 % 1300 for i in range(m)], pa.int64())
    frame = gar.from_arrow(left).join(gar.from_arrow(right), on="k", how=how)
    value = "a" if how in ("semi", "anti") else "b"
    got = frame.agg(
        col("k").count().alias("n"), col("k").sum().alias("k"), col(value).sum().alias("v")
    ).to_pydict()
    want = by_duckdb(left, right, how)
    last = [row[-1] for row in want if row[-1] is not None]
    assert got == {"n": [len(want)], "k": [sum(row[0] for row in want)], "v": [sum(last)]}


def test_rows_go_on_after_a_limit():
    left = gar.from_pydict({"a": list(range(1000))})
    assert left.join(left.select(col("a").alias("b")), how="cross").limit(1234).count_rows() == 1234


def test_filters_above_a_join():
    left = gar.from_pydict({"k": [1, 2, 3], "a": [1, 2, 3]})
    right = gar.from_pydict({"k": [1, 2, 2], "b": [None, 5, 6]})
    for how in ("inner", "left", "right", "outer"):
        joined = left.join(right, on="k", how=how)
        want = [row for row in joined.to_pylist() if row["a"] is not None and row["a"] > 1 and row["b"] == 5]
        assert joined.where((col("a") > 1) & (col("b") == 5)).to_pylist() == want
        lonely = [row for row in joined.to_pylist() if row["b"] is None]
        assert rows(joined.where(col("b").is_null())) == sorted(
            (tuple(row.values()) for row in lonely), key=repr
        )


def test_joins_of_joins():
    a = gar.from_pydict({"k": [1, 2, 3], "x": [1, 2, 3]})
    b = gar.from_pydict({"k": [1, 2, 4], "y": [10, 20, 40]})
    c = gar.from_pydict({"k": [1, 4, 5], "z": [100, 400, 500]})
    got = rows(a.join(b, on="k", how="outer").join(c, on="k", how="outer"))
    assert got == sorted(
        [(1, 1, 10, 100), (2, 2, 20, None), (3, 3, None, None), (4, None, 40, 400), (5, None, None, 500)],
        key=repr,
    )
    deep = a
    for i in range(70):
        deep = deep.join(b.select("k", col("y").alias(f"y{i}")), on="k")
    assert deep.count_rows() == 2


def test_bad_arguments():
    df = gar.from_pydict({"k": [1], "v": [1]})
    with pytest.raises(gar.GarError, match="innr"):
        df.join(df, on="k", how="innr")
    with pytest.raises(KeyError, match="nope"):
        df.join(df, on="nope")
    with pytest.raises(ValueError, match="no key"):
        df.join(df)
    with pytest.raises(ValueError, match="cross"):
        df.join(df, on="k", how="cross")
    with pytest.raises(ValueError, match="left_on"):
        df.join(df, left_on="k")
    with pytest.raises(ValueError, match="2 keys"):
        df.join(df, left_on=["k", "v"], right_on=["k"])
    with pytest.raises(gar.GarError, match="sort_merge"):
        df.join(df, on="k", strategy="sort_merge")
    with pytest.raises(TypeError):
        df.join(5, on="k")


@pytest.mark.parametrize("wide", [1, 2**40, 2**62])
@pytest.mark.parametrize("how", KINDS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_several_numbers_as_key(wide, how, data):
    """Keys of small ranges share a word, keys of wide ones do not."""
    pair = st.tuples(
        st.one_of(st.none(), st.integers(-2, 2)), st.one_of(st.none(), st.sampled_from([-wide, 0, wide]))
    )
    tables = []
    for name in ("a", "b"):
        keys = data.draw(st.lists(pair, max_size=30))
        tables.append(
            pa.table(
                {
                    "k": pa.array([k for k, _ in keys], pa.int32()),
                    "j": pa.array([j for _, j in keys], pa.int64()),
                    name: pa.array(range(len(keys)), pa.int64()),
                }
            )
        )
    got = rows(gar.from_arrow(tables[0]).join(gar.from_arrow(tables[1]), on=["k", "j"], how=how))
    sql = {"outer": "full", "semi": "semi", "anti": "anti"}.get(how, how)
    columns = "l.*" if how in ("semi", "anti") else "coalesce(l.k, r.k), coalesce(l.j, r.j), a, b"
    with duckdb.connect() as db:
        db.register("l", tables[0])
        db.register("r", tables[1])
        want = db.sql(f"select {columns} from l {sql} join r on l.k = r.k and l.j = r.j").fetchall()
    assert got == sorted(want, key=repr)


def test_a_key_without_a_type():
    nothing = gar.from_pydict({"k": [None, None]})
    numbers = gar.from_pydict({"k": [1, 2]})
    assert rows(nothing.join(numbers, on="k", how="right")) == [(1,), (2,)]
    assert rows(nothing.join(numbers, on="k", how="outer")) == [(1,), (2,), (None,), (None,)]
    assert nothing.join(numbers, on="k", how="left").count_rows() == 2


def test_a_join_that_outgrows_the_caller():
    """Small inputs, many pairs: the query moves to the pools in the middle of a batch."""
    left = gar.from_pydict({"a": list(range(900)), "k": [i % 50 for i in range(900)]})
    right = gar.from_pydict({"b": list(range(800)), "k": [i % 60 for i in range(800)]})
    pairs = left.select("a").join(right.select("b"), how="cross")
    total = sum(range(900)) * 800 * 7 + sum(range(800)) * 900
    assert sum(row["a"] * 7 + row["b"] for row in pairs.iter_rows()) == total
    assert pairs.agg((col("a") * 7 + col("b")).sum().alias("s")).to_pydict() == {"s": [total]}
    want = sorted(
        ((a, b) for a in range(900) for b in range(800) if a % 50 == b % 60 and (a + b) % 3 == 0), key=repr
    )
    joined = left.join(right, on="k", how="outer", condition=(col("a") + col("b")) % 3 == 0)
    both = joined.where(col("a").not_null() & col("b").not_null()).select("a", "b")
    assert rows(both) == want
    lonely = joined.where(col("a").is_null() | col("b").is_null())
    assert lonely.count_rows() == (900 - len({a for a, _ in want})) + (800 - len({b for _, b in want}))
