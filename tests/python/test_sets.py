# SPDX-License-Identifier: Apache-2.0
"""Set operations of whole rows against DuckDB: nulls equal nulls, and each row as often as SQL says."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gar

pytestmark = pytest.mark.settings

ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from(["a", "b"])), max_size=12
)
OPERATIONS = {
    "union": "union",
    "union_all": "union all",
    "intersect": "intersect",
    "intersect_all": "intersect all",
    "except_distinct": "except",
    "except_all": "except all",
}


def make(rows):
    return pa.table(
        {"x": pa.array([r[0] for r in rows], pa.int64()), "s": pa.array([r[1] for r in rows], pa.string())}
    )


def in_order(rows):
    return sorted(rows, key=repr)


@pytest.mark.parametrize("operation", OPERATIONS)
@given(ROWS, ROWS)
def test_against_duckdb(operation, left, right):
    a, b = make(left), make(right)
    made = getattr(gar.from_arrow(a), operation)(gar.from_arrow(b))
    with duckdb.connect() as connection:
        connection.register("a", a)
        connection.register("b", b)
        theirs = connection.execute(f"select * from a {OPERATIONS[operation]} select * from b").fetchall()
    assert made.column_names == ["x", "s"]
    assert in_order([(row["x"], row["s"]) for row in made.to_pylist()]) == in_order(theirs)


def test_floats():
    nan = float("nan")
    a = gar.from_pydict({"f": [0.0, nan, nan, 1.0]})
    b = gar.from_pydict({"f": [-0.0, nan]})
    assert a.intersect(b).count_rows() == 2
    assert a.intersect_all(b).count_rows() == 2
    assert a.except_all(b).count_rows() == 2
    assert a.except_distinct(b).to_pydict() == {"f": [1.0]}


def test_refusals():
    a = gar.from_pydict({"x": [1]})
    with pytest.raises(gar.GarError, match="takes a frame"):
        a.intersect([1])
    with pytest.raises(gar.GarError):
        a.except_all(gar.from_pydict({"y": [1]}))
    with pytest.raises(gar.GarError):
        a.intersect(gar.from_pydict({"x": ["text"]}))


def test_distinct_on_keeps_the_first_rows():
    frame = gar.from_pydict({"a": [1, 1, 2], "b": [3, 4, 5]})
    assert frame.distinct("a").sort("a").to_pydict() == {"a": [1, 2], "b": [3, 5]}


def test_sort_by_several():
    frame = gar.from_pydict({"a": [1, None, 2, 1], "b": ["x", "y", None, "z"]})
    made = frame.sort(["a", "b"], desc=[True, False], nulls_first=[False, True])
    assert made.to_pydict() == {"a": [2, 1, 1, None], "b": [None, "x", "z", "y"]}
    assert frame.sort("b", desc=True, nulls_first=False).limit(2).to_pydict()["b"] == ["z", "y"]
