# SPDX-License-Identifier: Apache-2.0
"""Questions on which dataframe engines went wrong, with the right answers."""

import datetime
import itertools
import math
import os
from decimal import Decimal

import pytest

import gar
from gar import DataType, col, lit
from gar import functions as f

pytestmark = pytest.mark.settings

UTC = datetime.UTC
NAN = float("nan")


def one(values, expr, **more):
    """The values of one expression over a frame of column a (and others)."""
    return gar.from_pydict({"a": values, **more}).select(expr.alias("r")).to_pydict()["r"]


# ---- literals, rewrites, limits


def test_one_divided_by_a_column_is_no_identity():
    assert one([1, 2, 4], 1 / col("a")) == [1.0, 0.5, 0.25]


def test_aggregates_of_literals_see_every_row():
    df = gar.from_pydict({"a": [1, 1, 2]})
    aggs = [lit(1).count().alias("c"), lit(1).sum().alias("s"), lit(None).count().alias("n")]
    assert df.agg(*aggs).to_pydict() == {"c": [3], "s": [3], "n": [0]}
    assert df.groupby("a").agg(*aggs).sort("a").to_pydict() == {
        "a": [1, 2],
        "c": [2, 1],
        "s": [2, 1],
        "n": [0, 0],
    }


def test_filter_by_a_constant():
    df = gar.from_pydict({"a": [1, 2, 3]})
    assert [df.where(lit(x)).count_rows() for x in (None, False, True)] == [0, 0, 3]
    assert [df.where(text).count_rows() for text in ("null", "false", "true", "1 = 2")] == [0, 0, 3, 0]


def test_offset_and_limit():
    df = gar.range(1000)
    assert df.offset(100).limit(100).to_pydict()["id"] == list(range(100, 200))
    assert df.limit(200).offset(100).to_pydict()["id"] == list(range(100, 200))
    assert df.where(col("id") > 100).limit(1).to_pydict()["id"] == [101]
    assert df.where(col("id") > 100).limit(1).count_rows() == 1
    assert df.offset(5000).count_rows() == 0
    assert df.limit(5).limit(3).count_rows() == 3
    with pytest.raises(ValueError):
        df.limit(-1)


# ---- nulls and booleans


def test_three_valued_logic():
    values = [True, False, None]
    pairs = list(itertools.product(values, values))
    df = gar.from_pydict({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    found = df.select(
        (col("a") & col("b")).alias("and"), (col("a") | col("b")).alias("or"), (~col("a")).alias("not")
    ).to_pydict()
    for i, (a, b) in enumerate(pairs):
        assert found["and"][i] == (False if a is False or b is False else None if None in (a, b) else True)
        assert found["or"][i] == (True if a is True or b is True else None if None in (a, b) else False)
        assert found["not"][i] == (None if a is None else not a)


def test_is_in_never_matches_null():
    values = [1, 2, 3, None, 4, 5]
    found = one(values, col("a").is_in([1, None]).fill_null(False))
    assert found == [True, False, False, False, False, False]
    assert one(values, col("a").is_in([]).fill_null(False)) == [False] * 6
    assert gar.from_pydict({"a": values}).where(col("a").is_in(range(2, 4))).to_pydict()["a"] == [2, 3]
    assert gar.from_pydict({"a": values}).where(col("a").is_in(x for x in (5,))).to_pydict()["a"] == [5]


def test_null_safe_equality():
    assert one([1, 2, None], col("a").eq_null_safe(col("b")), b=[1, 3, None]) == [True, False, True]


# ---- sorting, grouping, distinct


def test_place_of_nulls_does_not_depend_on_direction():
    df = gar.from_pydict({"a": [1, 3, 2, None]})

    def order(**options):
        return df.sort("a", **options).to_pydict()["a"]

    assert order(desc=True, nulls_first=False) == [3, 2, 1, None]
    assert order(desc=True, nulls_first=True) == [None, 3, 2, 1]
    assert order(nulls_first=True) == [None, 1, 2, 3]
    assert order() == [1, 2, 3, None]
    assert order(desc=True) == [None, 3, 2, 1]


def test_sort_booleans_and_floats():
    assert gar.from_pydict({"a": [True, False, None]}).sort("a").to_pydict()["a"] == [False, True, None]
    found = gar.from_pydict({"a": [NAN, 1.0, math.inf, -math.inf]}).sort("a").to_pydict()["a"]
    assert found[:3] == [-math.inf, 1.0, math.inf] and math.isnan(found[3])


def test_float_keys():
    df = gar.from_pydict({"a": [0.0, -0.0, NAN, NAN, -NAN]})
    assert sorted(df.groupby("a").agg(f.count().alias("n")).to_pydict()["n"]) == [2, 3]
    assert df.distinct().count_rows() == 2
    assert df.count_distinct("a").to_pydict()["a"] == [2]


def test_extremes_pass_over_nan():
    for values in itertools.permutations([1.0, NAN, 2.0]):
        df = gar.from_pydict({"a": list(values)})
        assert df.agg(col("a").min().alias("lo"), col("a").max().alias("hi")).to_pydict() == {
            "lo": [1.0],
            "hi": [2.0],
        }
    assert math.isnan(gar.from_pydict({"a": [NAN, NAN]}).max("a").to_pydict()["a"][0])


def test_group_by_an_aliased_expression():
    df = gar.from_pydict({"a": [1, 1, 2]})
    assert df.groupby((col("a") + 1).alias("k")).agg(f.count().alias("n")).sort("k").to_pydict() == {
        "k": [2, 3],
        "n": [2, 1],
    }


def test_group_by_nothing_and_nulls():
    df = gar.from_pydict({"k": [None, 1, None], "v": [1, 2, 3]})
    assert df.groupby("k").sum("v").sort("k").to_pydict() == {"k": [1, None], "v": [2, 4]}
    none = df.limit(0)
    assert none.groupby("k").sum("v").count_rows() == 0
    assert none.agg(col("v").sum().alias("s"), f.count().alias("n")).to_pydict() == {"s": [None], "n": [0]}


def test_count_of_rows_and_of_values():
    df = gar.from_pydict({"a": [1, 2, 3, 4], "b": [None, 1, None, 2]})
    assert df.count("*").to_pydict() == {"count": [4]}
    assert df.count("a", "b").to_pydict() == {"a": [4], "b": [2]}
    assert df.agg(col("b").count("null").alias("n"), col("b").count("all").alias("all")).to_pydict() == {
        "n": [2],
        "all": [4],
    }


def test_distinct_on_some_columns_keeps_the_first_row():
    df = gar.from_pydict({"a": [1, 1, 2], "b": [3, 4, 5]})
    assert df.distinct("a").sort("a").to_pydict() == {"a": [1, 2], "b": [3, 5]}


# ---- numbers


def test_sums_widen_and_overflow_is_an_error():
    small = gar.from_pydict({"a": [1] * 10_000}).with_column("a", col("a").cast("int8"))
    assert small.sum("a").to_pydict()["a"] == [10_000]
    wide = gar.from_pydict({"a": [2_000_000_000] * 3}).with_column("a", col("a").cast("uint32"))
    assert wide.sum("a").to_pydict()["a"] == [6_000_000_000]
    top = 2**63 - 1
    for action in (
        lambda: one([top], col("a") * 2),
        lambda: gar.from_pydict({"a": [top, 1]}).sum("a").collect(),
    ):
        with pytest.raises(OverflowError):
            action()
    assert one([top, 1], col("a").try_multiply(2)) == [None, 2]
    assert gar.from_pydict({"a": [top, top]}).mean("a").to_pydict()["a"] == [float(top)]
    with pytest.raises(OverflowError):
        one([-(2**63)], col("a") // -1)


def test_division_by_zero():
    assert one([7, -7], col("a") // 2) == [3, -4]
    assert one([7], col("a") // 0) == [None]
    assert one([7], col("a") % 0) == [None]
    assert one([7], col("a") / 0) == [math.inf]


def test_decimals():
    assert one(["1.23e2", "1E-18"], col("a").cast("decimal(38, 18)")) == [Decimal(123), Decimal("1E-18")]
    assert one([Decimal("328.00")], col("a").cast("float64")) == [328.0]
    assert one([Decimal("-0.05")], col("a").cast("string")) == ["-0.05"]
    assert gar.from_pydict({"a": [Decimal("0.1")] * 10}).sum("a").to_pydict()["a"] == [Decimal(1)]
    assert one([Decimal("1.5")], col("a") + 1) == [Decimal("2.5")]
    assert one([Decimal("1.5")], col("a") + 0.5) == [2.0]
    assert one(["0.5"], col("a").cast("decimal(1, 1)")) == [Decimal("0.5")]
    with pytest.raises(gar.GarError, match=r"123\.4"):
        one(["123.4"], col("a").cast("decimal(3, 1)"))


def test_drop_nan_keeps_nulls():
    df = gar.from_pydict({"a": [1.0, NAN, 2.0, None], "b": [1, 2, 3, 4]})
    assert df.drop_nan().to_pydict()["a"] == [1.0, 2.0, None]
    assert df.select("b").drop_nan().count_rows() == 4


# ---- casts, dates and times


def test_casts():
    assert one(["  3  "], col("a").cast("int64")) == [3]
    assert one([True, None], col("a").cast("string")) == ["true", None]
    assert gar.from_pydict({"a": [1]}).select(col("a").cast("string")).column_names == ["a"]
    assert one(["2024-02-29"], col("a").cast("date")) == [datetime.date(2024, 2, 29)]
    assert one(["x", "5"], col("a").try_cast("int64")) == [None, 5]
    with pytest.raises(gar.GarError, match="'x'"):
        one(["x"], col("a").cast("int64"))
    with pytest.raises(gar.GarError):
        one([300], col("a").cast("int8"))


def test_operations_between_unfit_types_are_plan_time_errors():
    df = gar.from_pydict({"a": [1], "s": ["x"], "d": [datetime.date(2020, 1, 1)], "b": [True]})
    for expr in (
        col("d") * 2,
        col("s") - 1,
        col("b") + col("d"),
        col("s") == 1,
        col("d") > col("a"),
        ~col("a"),
    ):
        with pytest.raises(TypeError):
            df.select(expr.alias("r"))


def test_zoned_timestamps_are_instants():
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=UTC)
    one_hour_on = datetime.timezone(datetime.timedelta(hours=1))
    same = noon.astimezone(one_hour_on)
    assert one([noon], col("a") == lit(same)) == [True]
    assert one([noon], col("a") == col("b"), b=[same]) == [True]
    with pytest.raises(TypeError):
        one([noon], col("a") == lit(datetime.datetime(2020, 1, 1)))


def test_dates_compare_as_midnight():
    day = datetime.date(2020, 1, 1)
    at = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 1)]
    assert one(at, lit(day) == col("a")) == [True, False]
    assert one(at, lit(day) < col("a")) == [False, True]


def test_duration_units():
    second = datetime.timedelta(seconds=1)
    for a, b in itertools.product(("ms", "us", "ns"), repeat=2):
        made = gar.from_pydict({"x": [second]}).select(
            (col("x").cast(DataType.duration(a)) == col("x").cast(DataType.duration(b))).alias("r"),
            (col("x").cast(DataType.duration(a)) + col("x").cast(DataType.duration(b))).alias("s"),
        )
        assert made.to_pydict() == {"r": [True], "s": [2 * second]}


def test_cast_of_time_units_that_leaves_the_range():
    far = datetime.datetime(9999, 1, 1)
    with pytest.raises(gar.GarError):
        one([far], col("a").cast("timestamp[ns]"))


# ---- text


def test_text():
    assert one(["😉test"], col("a").length()) == [5]
    assert one(["😉test"], col("a").length_bytes()) == [8]
    assert one(["query"], col("a").substr(2)) == ["ery"]
    assert one(["ab", None], col("a") + "c") == ["abc", None]


# ---- choice


def test_coalesce_and_when():
    assert one([None, 2], f.coalesce(None, col("a"), 1.5)) == [1.5, 2.0]
    assert one([None, 1, 2], gar.when(col("a") == 1, "one").otherwise("other")) == ["other", "one", "other"]


# ---- usability


def test_names_with_dots_and_capitals():
    df = gar.from_pydict({"a.b": [1], "A": [2], "a": [3], "x y": [4], "": [5]})
    assert df.select("a.b", "A", "a", "x y", "").to_pydict() == df.to_pydict()
    assert df.where('"a.b" = 1 and "A" = 2 and a = 3').count_rows() == 1


def test_unknown_names_are_told_at_plan_time():
    df = gar.from_pydict({"name": [1]})
    with pytest.raises(KeyError, match="did you mean 'name'"):
        df.select(col("nam"))
    with pytest.raises(KeyError, match="nam"):
        df.where("nam > 1")


def test_count_of_a_collected_frame_does_not_run_again():
    df = gar.range(10).where(col("id") > 4).collect()
    assert df._frame.known_rows() == 5 == df.count_rows() == len(df)


def test_sql_errors_have_a_place():
    with pytest.raises(ValueError) as caught:
        gar.from_pydict({"a": [1]}).where("a >> > 1")
    assert caught.value.position >= 0


def test_missing_file_has_one_line_with_path_and_cause():
    with pytest.raises(OSError) as caught:
        gar.read_parquet("/no/such/folder/file.parquet").collect()
    assert "/no/such/folder/file.parquet" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_permission_denied(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(PermissionError, match=r"a\.csv"):
        gar.read_csv(path).collect()
