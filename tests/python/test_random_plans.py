# SPDX-License-Identifier: Apache-2.0
"""Random plans over random tables: the same rows as from Polars, and from Gar itself however it runs them."""

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gar
from gar import DataType, Window, col, functions

TEXTS = ["", "a", "b", "ab", "a text of more than twelve bytes", "a text of more than twelve bytez"]
TYPES = {"k": "int64", "v": "int64", "s": "string"}
RULES = [
    "fold_constants", "simplify", "push_filters", "push_limits", "merge_projects", "prune_columns", "split_sums", "count_rows",
    "order_joins", "choose_build", "join_filters",
]  # fmt: skip
WAYS = [
    *({"disabled_rules": rule} for rule in RULES),
    {"disabled_rules": RULES, "enable_inline": False},
    {"default_morsel_size": 1},
    {"default_morsel_size": 3, "enable_inline": False},
    {"enable_inline": False, "spill_always": True},
    {"default_morsel_size": 5, "enable_inline": False, "spill_always": True},
]


@st.composite
def tables(draw):
    """Columns k (few values), v, s; nulls in each."""
    rows = draw(
        st.lists(
            st.tuples(
                st.none() | st.integers(-2, 4),
                st.none() | st.integers(-1000, 1000),
                st.none() | st.sampled_from(TEXTS),
            ),
            max_size=30,
        )
    )
    return {name: [row[i] for row in rows] for i, name in enumerate(TYPES)}


def steps():
    """One operator each, as (name, numbers that choose its details)."""
    names = st.sampled_from(sorted(STEPS))
    return st.lists(st.tuples(names, st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=6)


class Both:
    """A Gar frame and a Polars frame of the columns k, v, s that shall have the same rows."""

    def __init__(self, table):
        self.gar = gar.from_pydict(
            {n: gar.Series.from_pylist(table[n], n, DataType.from_sql(t)) for n, t in TYPES.items()}
        )
        kinds = {"int64": pl.Int64, "string": pl.String}
        self.polars = pl.LazyFrame(table, schema={n: kinds[t] for n, t in TYPES.items()})


def keep(both, a, b, _other):
    name, bound = ["k", "v"][a % 2], b % 7 - 3
    both.gar = both.gar.where((col(name) > bound) | col(name).is_null())
    both.polars = both.polars.filter((pl.col(name) > bound) | pl.col(name).is_null())


def keep_text(both, a, _b, _other):
    text = TEXTS[a % len(TEXTS)]
    both.gar = both.gar.where(col("s") != text)
    both.polars = both.polars.filter(pl.col("s") != text)


def compute(both, a, b, _other):
    factor = b % 5 - 2
    if a % 2:
        both.gar = both.gar.with_column("v", col("v") * factor + col("k").fill_null(a % 10))
        both.polars = both.polars.with_columns(v=pl.col("v") * factor + pl.col("k").fill_null(a % 10))
    else:
        both.gar = both.gar.with_column(
            "k", functions.when(col("v") > b % 100, col("k") - 1).otherwise(functions.abs(col("v")) % 3)
        )
        both.polars = both.polars.with_columns(
            k=pl.when(pl.col("v") > b % 100).then(pl.col("k") - 1).otherwise(pl.col("v").abs() % 3)
        )


def group(both, a, _b, _other):
    keys = [["k"], ["s"], ["k", "s"]][a % 3]
    rest = [name for name in TYPES if name not in keys]
    of = {"v": ["sum", "min", "max"][a % 3], "k": "min", "s": "max"}
    both.gar = both.gar.groupby(*keys).agg(*[getattr(col(n), of[n])().alias(n) for n in rest]).select(*TYPES)
    made = []
    for n in rest:
        value = getattr(pl.col(n), of[n])()
        if of[n] == "sum":  # of nothing but nulls it is null
            value = pl.when(pl.col(n).count() > 0).then(value)
        made.append(value.alias(n))
    both.polars = both.polars.group_by(*keys).agg(*made).select(*TYPES)


def count_groups(both, a, _b, _other):
    key = ["k", "s"][a % 2]
    other = "s" if key == "k" else "k"
    both.gar = (
        both.gar.groupby(key)
        .agg(col("v").count().alias("n"), col(other).count_distinct().alias("d"))
        .select(*[col(key) if n == key else (col("n") + col("d")).cast("int64").alias(n) if n == "v" else
                  (col("d").cast("int64") if n == "k" else functions.coalesce(gar.lit("x"))).alias(n) for n in TYPES])
    )  # fmt: skip
    both.polars = (
        both.polars.group_by(key)
        .agg(n=pl.col("v").count(), d=pl.col(other).drop_nulls().n_unique())
        .select(*[pl.col(key) if n == key else (pl.col("n") + pl.col("d")).cast(pl.Int64).alias(n) if n == "v" else
                  (pl.col("d").cast(pl.Int64) if n == "k" else pl.lit("x")).alias(n) for n in TYPES])
    )  # fmt: skip


def join(both, a, b, other):
    how = ["inner", "left", "semi", "anti", "outer"][a % 5]
    on = ["k", "s"][b % 2]
    rest = [name for name in TYPES if name != on]
    if how in ("semi", "anti"):
        both.gar = both.gar.join(other.gar, on=on, how=how)
        both.polars = both.polars.join(other.polars, on=on, how=how)
        return
    both.gar = both.gar.join(other.gar, on=on, how=how, suffix="_r", prefix="")
    full = {"outer": {"how": "full", "coalesce": True}}.get(how, {"how": how})
    both.polars = both.polars.join(other.polars, on=on, suffix="_r", **full)
    both.gar = both.gar.select(*[col(n) if n == on else _first(col, n) for n in TYPES]).limit(100000)
    both.polars = both.polars.select(*[pl.col(n) if n == on else _first(pl.col, n) for n in TYPES])
    assert rest


def _first(column, name):
    if column is col:
        return functions.coalesce(col(name), col(f"{name}_r")).alias(name)
    return pl.coalesce(pl.col(name), pl.col(f"{name}_r")).alias(name)


def append(both, _a, _b, other):
    both.gar = both.gar.concat(other.gar)
    both.polars = pl.concat([both.polars, other.polars])


def unique(both, _a, _b, _other):
    both.gar = both.gar.distinct()
    both.polars = both.polars.unique()


def first_rows(both, a, b, _other):
    down = [bool(a & 1), bool(a & 2), bool(a & 4)]
    both.gar = both.gar.sort(list(TYPES), desc=down, nulls_first=[False] * 3).limit(b % 12)
    both.polars = both.polars.sort(list(TYPES), descending=down, nulls_last=True).head(b % 12)


def number(both, a, _b, _other):
    """Window functions that have one right answer."""
    window = Window().partition_by("k").order_by(["v", "s"], nulls_first=[False, False])
    if a % 2:
        both.gar = both.gar.with_column("v", functions.dense_rank().over(window).cast("int64"))
        ranked = pl.struct("v", "s").rank("dense").over("k").cast(pl.Int64)
        both.polars = both.polars.with_columns(v=pl.when(pl.lit(True)).then(_dense_rank()).otherwise(ranked))
    else:
        both.gar = both.gar.with_column("v", col("v").sum().over(Window().partition_by("s")))
        total = pl.when(pl.col("v").count() > 0).then(pl.col("v").sum()).over("s")
        both.polars = both.polars.with_columns(v=total)


def _dense_rank():
    """Of (v, s) in a partition of k, nulls last: how many different pairs are at most this one."""
    shown = (
        pl.col("v").is_null().cast(pl.String)
        + (pl.col("v").fill_null(0) + 1_000_000_000).cast(pl.String).str.zfill(12)
        + pl.col("s").is_null().cast(pl.String)
        + pl.col("s").fill_null("")
    )
    return shown.rank("dense").over("k").cast(pl.Int64)


STEPS = {
    step.__name__: step
    for step in (keep, keep_text, compute, group, count_groups, join, append, unique, first_rows, number)
}


def rows_of(columns):
    return sorted(zip(*columns.values(), strict=True), key=repr)


@pytest.mark.settings
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=tables(), right=tables(), plan=steps())
def test_like_polars(left, right, plan):
    both, other = Both(left), Both(right)
    for name, a, b in plan:
        STEPS[name](both, a, b, other)
    wanted = both.polars.collect().to_dict(as_series=False)
    assert rows_of(both.gar.to_pydict()) == rows_of(wanted)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=tables(), right=tables(), plan=steps())
def test_however_it_runs(left, right, plan):
    both, other = Both(left), Both(right)
    for name, a, b in plan:
        STEPS[name](both, a, b, other)
    wanted = rows_of(both.gar.to_pydict())
    for way in WAYS:
        with gar.execution_config_ctx(**way):
            assert rows_of(both.gar.to_pydict()) == wanted, way


def test_rules_that_there_are():
    with pytest.raises(gar.GarValueError, match="no rule none; its rules are " + ", ".join(RULES)):
        gar.set_execution_config(disabled_rules=["none"])


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), cut=st.integers(0, 30), bound=st.integers(-3, 4))
def test_laws(table, cut, bound):
    """A split input gives the same aggregates; a filter, its negation and its null rows give the whole."""
    whole = Both(table).gar
    parts = [
        Both({n: values[part] for n, values in table.items()}).gar
        for part in (slice(0, cut), slice(cut, None))
    ]
    aggregates = [
        col("v").sum(),
        col("k").min().alias("least"),
        col("s").max().alias("most"),
        col("s").count_distinct().alias("d"),
        col("v").count().alias("n"),
    ]
    assert parts[0].concat(parts[1]).agg(*aggregates).to_pydict() == whole.agg(*aggregates).to_pydict()
    is_less = col("k") < bound
    pieces = [whole.where(is_less), whole.where(~is_less), whole.where(is_less.is_null())]
    joined = pieces[0].concat(pieces[1]).concat(pieces[2])
    assert rows_of(joined.to_pydict()) == rows_of(whole.to_pydict())
