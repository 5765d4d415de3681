# SPDX-License-Identifier: Apache-2.0
"""Windows in SQL text: the same words for DuckDB and for Gar; frames of groups, exclusions, and what is refused."""

import itertools
import random
from datetime import date

import duckdb
import pyarrow as pa
import pytest

import gar
from gar import Window, col, functions

pytestmark = pytest.mark.settings

FRAMED = [
    "sum(v)",
    "count(*)",
    "count(v)",
    "min(v)",
    "mean(v)",
    "first_value(i)",
    "last_value(i)",
    "nth_value(i, 2)",
]
RANKS = [
    "row_number()",
    "rank()",
    "dense_rank()",
    "ntile(3)",
    "lag(i, 2)",
    "lead(v)",
    "percent_rank()",
    "cume_dist()",
]
FRAMES = [
    "",
    "rows between 2 preceding and 1 following",
    "rows unbounded preceding",
    "rows between 3 preceding and 1 preceding",
    "range between unbounded preceding and current row",
    "range between current row and unbounded following",
    "groups between 1 preceding and 1 following",
    "groups 2 preceding",
    "groups between 1 following and 2 following",
]
BY_VALUE = ["range between 2 preceding and 1 following", "range between 1 following and 3 following"]
EXCLUSIONS = ["", "exclude current row", "exclude group", "exclude ties", "exclude no others"]


def table(seed):
    at = random.Random(seed)
    n = 40
    return pa.table(
        {
            "g": [at.choice("abc") for _ in range(n)],
            "k": [at.choice([None, 1, 2, 3, 4, 5, 6]) for _ in range(n)],
            "i": list(range(n)),
            "v": [at.choice([None, *range(10)]) for _ in range(n)],
        }
    )


def windows():
    """All that have one right answer: values of rows need an order without ties."""
    for partition in ["", "partition by g"]:
        for call, order in itertools.product(RANKS, ["order by k, i", "order by k desc nulls last, i desc"]):
            yield f"{call} over ({partition} {order})"
        for call, frame, exclusion in itertools.product(FRAMED, FRAMES, EXCLUSIONS):
            if frame or not exclusion:
                yield f"{call} over ({partition} order by k nulls first, i {frame} {exclusion})"
        for call, frame, exclusion in itertools.product(FRAMED[:5], FRAMES + BY_VALUE, EXCLUSIONS):
            if not frame.startswith("rows") and (frame or not exclusion):
                yield f"{call} over ({partition} order by k desc {frame} {exclusion})"
        for call in FRAMED[:5]:
            yield f"{call} over ({partition})"


def test_against_duckdb():
    chosen = random.Random(7).sample(sorted(windows()), 160)
    data = table(3)
    frame = gar.from_arrow(data)
    exprs = [gar.sql_expr(text).alias(f"x{n}") for n, text in enumerate(chosen)]
    found = frame.select("i", *exprs).sort("i").to_pydict()
    with duckdb.connect() as db:
        db.register("t", data)
        db.sql("set default_null_order = 'nulls_last'")
        for n, text in enumerate(chosen):
            # Gar's nulls are the greatest values: first when descending.
            said = text.replace("desc ", "desc nulls first ") if "nulls" not in text else text
            wanted = [row[0] for row in db.sql(f"select {said} as x from t order by i").fetchall()]
            assert (
                found[f"x{n}"] == pytest.approx(wanted, nan_ok=True)
                if None not in wanted
                else (
                    [None if a is None else round(a, 9) for a in found[f"x{n}"]]
                    == [None if a is None else round(a, 9) for a in wanted]
                )
            ), text


def test_strings_name_windows_too():
    frame = gar.from_pydict({"g": ["a", "a", "b"], "v": [1, 2, 5]})
    made = frame.select("g", gar.sql_expr("sum(v) over (partition by g) * 2 + v as x")).sort("x")
    assert made.to_pydict() == {"g": ["a", "a", "b"], "x": [7, 8, 15]}


def test_groups_and_exclusions_in_python():
    frame = gar.from_pydict({"k": [1, 1, 2, 3, 3], "v": [1, 2, 4, 8, 16]})
    by_k = Window().order_by("k")
    near = by_k.groups_between(-1, Window.current_row)
    made = frame.select(
        "v",
        col("v").sum().over(near).alias("near"),
        col("v").sum().over(near.exclude("ties")).alias("ties"),
        col("v").sum().over(by_k.exclude("group")).alias("group"),
        col("v").sum().over(Window().exclude("current row")).alias("others"),
        functions.first_value(col("v")).over(near.exclude("current row")).alias("first"),
    ).sort("v")
    assert made.to_pydict() == {
        "v": [1, 2, 4, 8, 16],
        "near": [3, 3, 7, 28, 28],
        "ties": [1, 2, 7, 12, 20],
        "group": [28, 28, 27, 7, 7],
        "others": [30, 29, 27, 23, 15],
        "first": [2, 1, 1, 4, 4],
    }


def test_range_of_an_interval():
    frame = gar.from_pydict(
        {"d": [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 30), date(2024, 5, 1)]}
    )
    text = "count(*) over (order by d range between interval '1' month preceding and current row)"
    assert frame.select("d", gar.sql_expr(text).alias("n")).sort("d").to_pydict()["n"] == [1, 2, 2, 1]


def test_min_periods_count_what_is_left():
    frame = gar.from_pydict({"v": [1, 2, 3]})
    window = Window().order_by("v").rows_between(-1, 1, min_periods=2).exclude("current row")
    assert frame.select(col("v").sum().over(window)).to_pydict() == {"v": [None, 4, None]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(v) over (partition g)", "by"),
        ("sum(v) over (order by v rows between 1 preceding)", "expected and"),
        ("sum(v) over (order by v rows -1 preceding)", "a whole number that is not negative"),
        ("sum(v) over (order by v rows v preceding)", "a whole number that is not negative"),
        ("sum(v) over (groups current row)", "needs an order"),
        (
            "sum(v) over (order by v rows between 1 following and 1 preceding)",
            "starts at row 1, after its end -1",
        ),
        (
            "sum(v) over (order by v rows between unbounded following and current row)",
            "not the other way round",
        ),
        (
            "sum(v) over (order by v rows current row exclude nothing)",
            "current row, group, ties or no others",
        ),
        ("sum(v) over (order by v, g range between 1 preceding and current row)", "exactly one expression"),
        ("sum(v) over (partition by g", "')' is missing"),
        ("lower(g) over (partition by g)", "needs an aggregate or a window function"),
        ("sum(v) over (order by v nulls)", "expected last"),
        ("sum(v) over v", "expected '('"),
    ],
)
def test_refused(text, message):
    with pytest.raises(gar.GarError) as caught:
        gar.from_pydict({"g": ["a"], "v": [1]}).select(gar.sql_expr(text)).collect()
    assert message in str(caught.value)


def test_refused_exclusion():
    with pytest.raises(gar.GarValueError, match="exclude takes 'no others', 'current row', 'group', 'ties'"):
        Window().exclude("rows")
