# SPDX-License-Identifier: Apache-2.0
"""Samples, shuffles, numbers of rows, and columns turned into rows and back."""

import polars as pl
import pytest

import gar
from gar import Window, col, functions

pytestmark = pytest.mark.settings


def test_numbers_follow_the_order_of_the_rows():
    frame = gar.range(200).where(col("id") % 3 == 0).with_column("n", functions.row_number().over(Window()))
    assert frame.to_pydict() == {"id": list(range(0, 200, 3)), "n": list(range(1, 68))}
    assert frame.limit(2).to_pydict() == {"id": [0, 3], "n": [1, 2]}
    assert frame.where(col("n") > 65).to_pydict() == {"id": [195, 198], "n": [66, 67]}


def test_numbers_behind_and_before_other_operators():
    numbered = gar.range(10).limit(4).with_column("n", functions.monotonically_increasing_id())
    assert str(numbered.schema()["n"].dtype) == "uint64"
    both = numbered.concat(gar.range(3).with_column("n", functions.monotonically_increasing_id()))
    assert both.to_pydict() == {"id": [0, 1, 2, 3, 0, 1, 2], "n": [0, 1, 2, 3, 0, 1, 2]}
    again = numbered.offset(2).with_column("m", functions.monotonically_increasing_id())
    assert again.to_pydict() == {"id": [2, 3], "n": [2, 3], "m": [0, 1]}
    sums = numbered.groupby(col("n") % 2).agg(col("id").sum()).sort("n")
    assert sums.to_pydict() == {"n": [0, 1], "id": [2, 4]}
    assert gar.range(0).with_column("n", functions.row_number().over(Window())).to_pydict() == {
        "id": [],
        "n": [],
    }
    sorted_first = (
        gar.range(6).sort("id", desc=True).with_column("n", functions.monotonically_increasing_id())
    )
    assert sorted_first.to_pydict() == {"id": [5, 4, 3, 2, 1, 0], "n": [0, 1, 2, 3, 4, 5]}


def test_numbers_are_given_while_rows_stream_by(capsys):
    gar.range(10).with_column("n", functions.monotonically_increasing_id()).explain(show_all=True)
    assert "=> number rows" in capsys.readouterr().out


def test_sample_of_a_fraction():
    frame = gar.range(1000)
    one = frame.sample(0.3, seed=5).to_pydict()["id"]
    assert one == frame.sample(0.3, seed=5).to_pydict()["id"]
    assert one == sorted(one)
    assert 200 < len(one) < 400
    assert one != frame.sample(0.3, seed=6).to_pydict()["id"]
    assert set(one) <= set(frame.sample(0.5, seed=5).to_pydict()["id"])
    assert frame.sample(0.0).count_rows() == 0
    assert frame.sample(1.0).count_rows() == 1000


def test_sample_of_a_size():
    frame = gar.range(500)
    one = frame.sample(size=20, seed=5).to_pydict()["id"]
    assert one == frame.sample(size=20, seed=5).to_pydict()["id"]
    assert one == sorted(set(one))
    assert len(one) == 20
    assert frame.sample(size=0).count_rows() == 0
    assert frame.sample(size=1000).to_pydict()["id"] == list(range(500))


def test_sample_with_replacement():
    frame = gar.from_pydict({"row": ["a", "b", "c"]})
    drawn = frame.sample(size=300, with_replacement=True, seed=1).to_pydict()["row"]
    assert len(drawn) == 300
    assert set(drawn) == {"a", "b", "c"}
    assert frame.sample(1.0, with_replacement=True, seed=1).count_rows() == 3
    assert frame.limit(0).sample(size=5, with_replacement=True).to_pydict() == {"row": []}


def test_every_row_is_equally_likely():
    counts = [0] * 8
    for seed in range(400):
        for i in gar.range(8).sample(size=2, seed=seed).to_pydict()["id"]:
            counts[i] += 1
    assert sum(counts) == 800
    assert all(60 < count < 140 for count in counts), counts


def test_shuffle():
    frame = gar.from_pydict({"a": list(range(100)), "b": [str(i) for i in range(100)]})
    one = frame.shuffle(seed=3).to_pydict()
    assert one == frame.shuffle(seed=3).to_pydict()
    assert one["a"] != list(range(100))
    assert sorted(one["a"]) == list(range(100))
    assert one["b"] == [str(i) for i in one["a"]]
    assert frame.limit(0).shuffle().to_pydict() == {"a": [], "b": []}


def test_unpivot():
    frame = gar.from_pydict({"id": [1, 2], "a": [10, None], "b": [1.5, 2.5], "variable": ["x", "y"]})
    assert frame.unpivot("id", ["a", "b"]).to_pydict() == {
        "id": [1, 1, 2, 2],
        "variable": ["a", "b", "a", "b"],
        "value": [10.0, 1.5, None, 2.5],
    }
    named = frame.exclude("variable").unpivot(["id"], variable_name="which", value_name="x")
    assert named.column_names == ["id", "which", "x"]
    assert named.count_rows() == 4
    assert frame.melt([], [col("a") + 1]).to_pydict() == {"variable": ["a", "a"], "value": [11, None]}
    texts = frame.unpivot(["id"], [col("a").cast("string").alias("a"), "variable"], variable_name="of")
    assert texts.to_pydict()["value"] == ["10", "x", None, "y"]
    with pytest.raises(gar.GarTypeError):
        frame.unpivot("id", ["a", "variable"])
    with pytest.raises(gar.GarValueError, match="no column to take values from"):
        frame.unpivot(["id", "a", "b", "variable"])


def test_pivot_against_polars():
    data = {
        "shop": ["a", "a", "b", "b", "b", None],
        "year": [2020, 2021, 2020, 2020, 2022, 2020],
        "sold": [1, 2, 3, 4, 5, 6],
    }
    made = gar.from_pydict(data).pivot("shop", "year", "sold", "max").sort("shop")
    wanted = (
        pl.DataFrame(data)
        .pivot(
            on="year", index="shop", values="sold", aggregate_function=pl.element().max(), sort_columns=True
        )
        .sort("shop", nulls_last=True)
    )
    assert made.to_pydict() == wanted.to_dict(as_series=False)


def test_pivot_names_and_nulls():
    frame = gar.from_pydict({"g": [1, 1, 2], "p": ["x", None, "x"], "v": [1, 2, 3]})
    assert frame.pivot("g", "p", "v", "count", names=["y", "x"]).sort("g").to_pydict() == {
        "g": [1, 2],
        "y": [None, None],
        "x": [1, 1],
    }
    assert frame.pivot(["g"], col("p"), col("v") * 2, "max").sort("g").to_pydict() == {
        "g": [1, 2],
        "x": [2, 6],
        "None": [4, None],
    }
    assert frame.limit(0).pivot("g", "p", "v", "sum").to_pydict() == {"g": []}
    with pytest.raises(gar.GarValueError, match="agg_fn is one of"):
        frame.pivot("g", "p", "v", "upper")
    with pytest.raises(gar.GarValueError, match="at least one column"):
        frame.pivot([], "p", "v", "sum")


def test_pivot_of_odd_values():
    nan = float("nan")
    frame = gar.from_pydict({"g": [1, 1, 2], "p": [nan, 1.0, nan], "v": [1, 2, 3]})
    assert frame.pivot("g", "p", "v", "sum").sort("g").to_pydict() == {
        "g": [1, 2],
        "1.0": [2, None],
        "nan": [1, 3],
    }
    assert frame.pivot("g", "p", "v", "sum", names=[nan]).sort("g").to_pydict() == {
        "g": [1, 2],
        "nan": [1, 3],
    }
    renamed = frame.pivot(col("g").alias("result"), "p", "v", "sum").sort("result")
    assert renamed.column_names == ["result", "1.0", "nan"]
    same = gar.from_pydict({"g": [1, 1], "p": [None, "None"], "v": [1, 2]})
    for call in (
        lambda: same.pivot("g", "p", "v", "sum"),
        lambda: same.pivot("g", "p", "v", "sum", names=["g"]),
    ):
        with pytest.raises(gar.GarValueError, match="two columns would be named"):
            call()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "either fraction or size"),
        ({"fraction": 0.5, "size": 1}, "either fraction or size"),
        ({"fraction": 1.5}, "from 0 to 1, got 1.5"),
        ({"fraction": -0.1}, "from 0 to 1, got -0.1"),
        ({"fraction": float("nan")}, "got nan"),
        ({"fraction": "x"}, "fraction is a number, got 'x'"),
        ({"size": -1}, "size must not be negative"),
        ({"size": 1.5}, "size"),
        ({"size": 1, "seed": "x"}, "seed"),
    ],
)
def test_refused_samples(given, message):
    with pytest.raises(gar.GarError) as caught:
        gar.range(3).sample(**given)
    assert message in str(caught.value)
