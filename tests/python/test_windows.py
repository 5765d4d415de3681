# SPDX-License-Identifier: Apache-2.0
"""Windows against DuckDB over random data: every function, every frame, nulls on both sides; and what each says by hand."""

import datetime
import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gar
from gar import Window, col, functions

pytestmark = pytest.mark.settings

FUNCTIONS = {
    "row_number": (functions.row_number(), "row_number()"),
    "rank": (functions.rank(), "rank()"),
    "dense_rank": (functions.dense_rank(), "dense_rank()"),
    "percent_rank": (functions.percent_rank(), "percent_rank()"),
    "cume_dist": (functions.cume_dist(), "cume_dist()"),
    "ntile": (functions.ntile(3), "ntile(3)"),
    "lag": (col("x").lag(), "lag(x)"),
    "lag2": (col("s").lag(2, "none"), "lag(s, 2, 'none')"),
    "lead": (col("x").lead(1, 0), "lead(x, 1, 0)"),
}
FRAMED = {
    "first": (col("s").first_value(), "first_value(s) {w}"),
    "last": (col("s").last_value(), "last_value(s) {w}"),
    "last_known": (col("x").last_value(True), "last_value(x ignore nulls) {w}"),
    "nth": (col("x").nth_value(2), "nth_value(x, 2) {w}"),
    "sum": (col("x").sum(), "sum(x) {w}"),
    "mean": (col("f").mean(), "avg(f) {w}"),
    "min": (col("s").min(), "min(s) {w}"),
    "max": (col("f").max(), "max(f) {w}"),
    "distinct": (col("x").count_distinct(), "count(distinct x) {w}"),
    "median": (col("x").median(), "median(x) {w}"),
    "text": (col("s").string_agg("|"), "string_agg(s, '|') {w}"),
    "var": (col("x").var(), "var_samp(x) {w}"),
}
FRAMES = [
    (None, None, ""),
    (
        "rows",
        (Window.unbounded_preceding, Window.current_row),
        "rows between unbounded preceding and current row",
    ),
    ("rows", (-2, 1), "rows between 2 preceding and 1 following"),
    ("rows", (1, 3), "rows between 1 following and 3 following"),
    ("rows", (-1, Window.unbounded_following), "rows between 1 preceding and unbounded following"),
    (
        "range",
        (Window.unbounded_preceding, Window.current_row),
        "range between unbounded preceding and current row",
    ),
    ("range", (-2, 1), "range between 2 preceding and 1 following"),
    ("range", (Window.current_row, 3), "range between current row and 3 following"),
]
WHOLE = "rows between unbounded preceding and unbounded following"


@st.composite
def tables(draw):
    count = draw(st.integers(0, 40))
    columns = {
        "g": st.none() | st.integers(0, 2),
        "o": st.none() | st.integers(0, 9),
        "x": st.none() | st.integers(-9, 9),
        "f": st.none() | st.sampled_from([-7.5, 0.0, 0.25, 2.0]),
        "s": st.none() | st.sampled_from(["", "a", "b", "a text of more than twelve bytes"]),
    }
    cells = {name: draw(st.lists(values, min_size=count, max_size=count)) for name, values in columns.items()}
    types = {"g": pa.int32(), "o": pa.int64(), "x": pa.int64(), "f": pa.float64(), "s": pa.string()}
    arrays = {name: pa.array(cells[name], types[name]) for name in cells}
    return pa.table({"i": pa.array(range(count), pa.int64()), **arrays})


def ask(table, sql):
    with duckdb.connect() as connection:
        connection.register("t", table)
        cursor = connection.execute(sql)
        names = [item[0] for item in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def is_close(a, b):
    if a is None or b is None or isinstance(a, str):
        return a == b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def compare(ours, theirs, names):
    assert [row["i"] for row in ours] == [row["i"] for row in theirs]  # the order of the input is kept
    for a, b in zip(ours, theirs, strict=True):
        for name in names:
            assert is_close(a[name], b[name]), (name, a, b)


@pytest.mark.parametrize("descending", [False, True])
@given(tables(), st.booleans())
def test_functions(descending, table, by_group):
    window = Window().order_by("o", "i", desc=[descending, False])
    window = window.partition_by("g") if by_group else window
    ours = gar.from_arrow(table).with_columns(
        {name: made.over(window) for name, (made, _) in FUNCTIONS.items()}
    )
    direction = "desc nulls first" if descending else "asc nulls last"
    over = f"over ({'partition by g' if by_group else ''} order by o {direction}, i)"
    asked = ", ".join(f"{sql} {over} as {name}" for name, (_, sql) in FUNCTIONS.items())
    compare(ours.to_pylist(), ask(table, f"select i, {asked} from t order by i"), FUNCTIONS)


@pytest.mark.parametrize("frame", FRAMES, ids=[str(frame[2] or "whole") for frame in FRAMES])
@given(tables(), st.booleans(), st.booleans())
def test_frames(frame, table, by_group, descending):
    kind, bounds, text = frame
    # Rows need an order without peers; a range with peers does not depend on it, but for what the order of rows decides.
    order = ["o"] if kind == "range" else ["o", "i"]
    window = Window().order_by(*order, desc=[descending, *[False] * (len(order) - 1)])
    window = window.partition_by("g") if by_group else window
    if kind is not None:
        window = getattr(window, f"{kind}_between")(*bounds, min_periods=0)
    names = FRAMED.keys() - ({"first", "last", "last_known", "nth", "text"} if kind == "range" else set())
    ours = gar.from_arrow(table).with_columns({name: FRAMED[name][0].over(window) for name in names})
    direction = "desc nulls first" if descending else "asc nulls last"
    sorted_by = f"o {direction}" + (", i" if len(order) > 1 else "")
    over = f"over ({'partition by g' if by_group else ''} order by {sorted_by} {text or WHOLE})"
    asked = ", ".join(f"{FRAMED[name][1].format(w=over)} as {name}" for name in names)
    compare(ours.to_pylist(), ask(table, f"select i, {asked} from t order by i"), names)


def test_long_frames():
    """Frames that are joined from the nodes of several levels."""
    rows = 6000
    table = pa.table(
        {
            "i": range(rows),
            "o": [(i * 37) % 1009 for i in range(rows)],
            "x": [(i * 7919) % 501 if i % 5 else None for i in range(rows)],
            "f": [float((i * 31) % 97) for i in range(rows)],
            "s": [f"text {(i * 13) % 17}" for i in range(rows)],
            "g": [i % 2 for i in range(rows)],
        }
    )
    names = ["sum", "mean", "min", "max", "var", "last_known"]
    for bounds, text in [
        ((Window.unbounded_preceding, Window.current_row), "unbounded preceding and current row"),
        ((-700, 900), "700 preceding and 900 following"),
        ((-33, -1), "33 preceding and 1 preceding"),
    ]:
        window = Window().partition_by("g").order_by("o", "i").rows_between(*bounds, min_periods=0)
        ours = gar.from_arrow(table).with_columns({name: FRAMED[name][0].over(window) for name in names})
        over = f"over (partition by g order by o, i rows between {text})"
        asked = ", ".join(f"{FRAMED[name][1].format(w=over)} as {name}" for name in names)
        compare(ours.to_pylist(), ask(table, f"select i, {asked} from t order by i"), names)


def test_order_only_sees_the_whole_partition():
    frame = gar.from_pydict({"t": [1, 2], "v": [10, 20]})
    window = Window().order_by("t")
    made = frame.select(
        col("v").sum().over(window).alias("sum"), col("v").lag(1, 0).over(window).alias("lag")
    )
    assert made.to_pydict() == {"sum": [30, 30], "lag": [0, 10]}


def test_expressions_of_aggregates():
    frame = gar.from_pydict({"g": [1, 1, 2], "a": [1, 2, 9]})
    window = Window().partition_by("g")
    made = frame.select(
        (col("a") / col("a").sum().over(window)).alias("share"),
        (col("a").sum() / col("a").count()).over(window).alias("mean"),
    )
    assert made.to_pydict() == {"share": [1 / 3, 2 / 3, 1.0], "mean": [1.5, 1.5, 9.0]}
    assert frame.select(gar.lit(1).count().over(window).alias("n")).to_pydict() == {"n": [2, 2, 1]}


def test_row_number_without_order():
    frame = gar.from_pydict({"g": ["b", "a", "b"], "x": [5, 4, 3]})
    made = frame.with_column("n", functions.row_number().over(Window().partition_by("g")))
    assert made.to_pydict()["n"] == [1, 1, 2]
    assert frame.select(functions.row_number().over(Window()).alias("n")).to_pydict() == {"n": [1, 2, 3]}


def test_min_periods():
    frame = gar.from_pydict({"o": [1, 2, 3], "x": [1, None, 3]})
    window = Window().order_by("o").rows_between(-1, 0, min_periods=2)
    assert frame.select(col("x").sum().over(window)).to_pydict()["x"] == [None, 1, 3]


def test_range_of_time():
    day = datetime.date(2024, 1, 1)
    days = [day + datetime.timedelta(days=n) for n in (0, 1, 3, 8)]
    frame = gar.from_pydict({"d": days, "x": [1, 2, 4, 8]})
    window = Window().order_by("d").range_between(datetime.timedelta(days=-2), Window.current_row)
    assert frame.select(col("x").sum().over(window)).to_pydict()["x"] == [1, 3, 6, 8]


def test_one_sort_for_windows_of_one_order(capsys):
    frame = gar.from_pydict({"g": [1], "o": [1], "x": [1]})
    window = Window().partition_by("g").order_by("o")
    same = frame.select(
        col("x").sum().over(window).alias("a"), col("x").max().over(window.rows_between(-1, 0)).alias("b")
    )
    same.explain()
    assert capsys.readouterr().out.count("  Window ") == 1
    other = frame.with_columns({"a": col("x").sum().over(window), "b": col("x").sum().over(Window())})
    other.explain()
    assert capsys.readouterr().out.count("  Window ") == 2


def test_filters_on_partitions_go_below():
    frame = gar.from_pydict({"g": [1, 1, 2], "x": [1, 2, 3]})
    made = frame.with_column("n", col("x").sum().over(Window().partition_by("g")))
    assert made.where(col("g") == 1).to_pydict() == {"g": [1, 1], "x": [1, 2], "n": [3, 3]}
    assert made.where(col("x") > 1).to_pydict() == {"g": [1, 2], "x": [2, 3], "n": [3, 3]}
    assert made.select("x").to_pydict() == {"x": [1, 2, 3]}
    assert made.limit(1).to_pydict() == {"g": [1], "x": [1], "n": [3]}


def test_refusals():
    frame = gar.from_pydict({"g": [1], "s": ["a"]})
    window = Window().partition_by("g")
    with pytest.raises(gar.GarError, match="needs an aggregate or a window function"):
        col("g").over(window)
    with pytest.raises(gar.GarError, match="has a window already"):
        col("g").sum().over(window).over(window)
    with pytest.raises(gar.GarError, match="needs a window"):
        frame.select(functions.row_number())
    with pytest.raises(gar.GarError, match="not allowed here"):
        frame.where(col("g").sum().over(window) > 1)
    with pytest.raises(gar.GarError, match="exactly one expression"):
        col("g").sum().over(window.range_between(-1, 1))
    with pytest.raises(gar.GarError, match="after its end"):
        col("g").sum().over(window.rows_between(2, 1))
    with pytest.raises(gar.GarError, match=r"gar\.Window"):
        col("g").sum().over("g")
    with pytest.raises(gar.GarError, match="unknown column"):
        frame.select(col("g").sum().over(Window().partition_by("nothing")))
