# SPDX-License-Identifier: Apache-2.0
"""As-of joins: every strategy against rows found one by one over random tables, and what is refused."""

import math
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gar
from gar import DataType, col

pytestmark = pytest.mark.settings

DAY = date(2024, 2, 27)
# name: type, values, a tolerance
TIMES = {
    "int64": (DataType.int64(), st.integers(-4, 9), 2),
    "wide int64": (DataType.int64(), st.sampled_from([-(2**63), -(2**62), 0, 5, 2**62, 2**63 - 1]), 2**62),
    "uint8": (DataType.uint8(), st.integers(0, 255), 40),
    "float64": (
        DataType.float64(),
        st.sampled_from([-0.0, 0.0, 1.5, -7.0, math.inf, -math.inf, math.nan]),
        2.5,
    ),
    "decimal": (DataType.decimal128(30, 2), st.integers(0, 30).map(lambda i: Decimal(i) / 4), Decimal("0.5")),
    "date": (DataType.date(), st.integers(0, 9).map(lambda i: DAY + timedelta(i)), timedelta(days=2)),
    "timestamp": (
        DataType.timestamp("us"),
        st.integers(0, 9).map(lambda i: datetime(2024, 1, 1) + timedelta(seconds=7 * i)),
        timedelta(seconds=14),
    ),
}


def is_nothing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def distance(a, b):
    return 0.0 if isinstance(a, float) and a == b else abs(a - b)  # not inf - inf


def partner(left, rights, strategy, tolerance, exact):
    """The position of the right row that belongs to a left one, or None. Rows are (time, group)."""
    time, group = left
    below = above = None  # the nearest of each side; of equal ones the last below, the first above
    for i, (other, other_group) in enumerate(rights):
        if is_nothing(time) or is_nothing(other) or group is None or other_group != group:
            continue
        if other == time and not exact:
            continue
        if other <= time and (below is None or other >= rights[below][0]):
            below = i
        if other >= time and (above is None or other < rights[above][0]):
            above = i
    best = {"backward": below, "forward": above}.get(strategy)
    if strategy == "nearest":
        best = above if below is None else below
        if below is not None and above is not None:
            nearer = distance(time, rights[above][0]) < distance(time, rights[below][0])
            best = above if nearer else below
    if best is not None and tolerance is not None and distance(time, rights[best][0]) > tolerance:
        return None
    return best


@pytest.mark.parametrize("name", list(TIMES))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random(name, data):
    dtype, values, near = TIMES[name]
    row = st.tuples(st.none() | values, st.sampled_from(["a", "b", None, "a name of more than twelve bytes"]))
    lefts = data.draw(st.lists(row, max_size=25))
    rights = data.draw(st.lists(row, max_size=25))
    strategy = data.draw(st.sampled_from(["backward", "forward", "nearest"]))
    tolerance = data.draw(st.sampled_from([None, near]))
    exact = data.draw(st.booleans())
    by = data.draw(st.booleans())

    def frame(rows, value):
        return gar.from_pydict(
            {
                "t": gar.Series.from_pylist([r[0] for r in rows], name="t", dtype=dtype),
                "g": gar.Series.from_pylist([r[1] for r in rows], name="g", dtype=DataType.string()),
                value: list(range(len(rows))),
            }
        )

    made = frame(lefts, "l").join_asof(
        frame(rights, "r"),
        on="t",
        by="g" if by else None,
        strategy=strategy,
        tolerance=tolerance,
        allow_exact_matches=exact,
    )
    found = made.sort("l").to_pydict()
    if not by:
        lefts = [(time, "all") for time, _ in lefts]
        rights = [(time, "all") for time, _ in rights]
    assert found["l"] == list(range(len(lefts)))
    assert found["r"] == [partner(left, rights, strategy, tolerance, exact) for left in lefts]


def test_names_expressions_and_mixed_types():
    trades = gar.from_pydict({"time": [3, 8], "symbol": ["x", "y"], "price": [1.5, 2.5]})
    quotes = gar.from_pydict({"at": [1.0, 2.5, 7.5], "sym": ["X", "X", "Y"], "price": [10, 20, 30]})
    made = trades.join_asof(
        quotes,
        left_on="time",
        right_on="at",
        left_by="symbol",
        right_by=col("sym").lower(),
        suffix="_quoted",
        prefix="",
    )
    assert made.sort("time").to_pydict() == {
        "time": [3, 8],
        "symbol": ["x", "y"],
        "price": [1.5, 2.5],
        "at": [2.5, 7.5],
        "sym": ["X", "Y"],
        "price_quoted": [20, 30],
    }


def test_filters_and_columns_above_it():
    left = gar.from_pydict({"t": list(range(100)), "g": [i % 3 for i in range(100)]})
    right = gar.from_pydict({"t": list(range(0, 100, 10)), "v": list(range(10)), "unused": ["x"] * 10})
    made = left.join_asof(right, on="t").where((col("g") == 0) & (col("v") > 7)).select("t", "v").sort("t")
    assert made.to_pydict() == {
        "t": [i for i in range(80, 100) if i % 3 == 0],
        "v": [i // 10 for i in range(80, 100) if i % 3 == 0],
    }


@pytest.mark.parametrize(
    ("given_", "error", "message"),
    [
        ({"on": "s"}, gar.GarTypeError, "`on` 's' is string; it must be a number, a date or a time"),
        ({"on": "t", "tolerance": -1}, gar.GarValueError, "must not be negative"),
        (
            {"on": "t", "tolerance": 1.5},
            gar.GarTypeError,
            "the tolerance of a int64 `on` is an integer, got 1.5",
        ),
        ({"on": "t", "tolerance": col("t")}, gar.GarTypeError, "is a plain value, got t"),
        (
            {"on": "t", "strategy": "next"},
            gar.GarValueError,
            "must be backward, forward or nearest, got next",
        ),
        ({"on": "t", "left_on": "t"}, gar.GarValueError, "either on, or left_on"),
        ({"left_on": "t"}, gar.GarValueError, "right_on is missing"),
        ({}, gar.GarValueError, "left_on is missing; give it, or on"),
        ({"on": ["t", "s"]}, gar.GarValueError, "on is one column, got 2"),
        ({"on": "t", "left_by": "s"}, gar.GarValueError, "1 by keys of the left side, but 0"),
        ({"on": gar.lit(1)}, gar.GarValueError, "must name a column of each side"),
        ({"on": "u"}, gar.GarColumnError, "unknown column 'u'"),
    ],
)
def test_refused(given_, error, message):
    frame = gar.from_pydict({"t": [1], "s": ["x"]})
    with pytest.raises(error) as caught:
        frame.join_asof(frame, **given_)
    assert message in str(caught.value)
