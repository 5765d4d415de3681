# SPDX-License-Identifier: Apache-2.0
"""Joins that send the keys of their table to the other side's scans: the same rows, fewer of them read."""

from itertools import product

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gar
from gar import col

pytestmark = pytest.mark.settings

ROWS = 600
WIDE = 1_234_567_891_011  # keys so far apart that no bitmap holds them

ABOVE = {
    "plain": (lambda big: big, "select k, v from big"),
    "renamed": (
        lambda big: big.select(col("k").alias("x"), col("v")).select(col("x").alias("k"), col("v")),
        "select k, v from big",
    ),
    "filtered": (lambda big: big.where(col("v") > 30), "select k, v from big where v > 30"),
    "grouped": (
        lambda big: big.groupby("k").agg(col("v").sum().alias("v")),
        "select k, sum(v)::bigint v from big group by k",
    ),
    "distinct": (
        lambda big: big.select("k", "g").distinct().select("k", v="g"),
        "select distinct k, g v from big",
    ),
    "concat": (
        lambda big: big.select("k", "v").concat(big.select(col("k") + 1, col("v"))),
        "select k, v from big union all select k + 1, v from big",
    ),
    "limited": (lambda big: big.sort("v").limit(100), "select k, v from big order by v limit 100"),
    "ranked": (
        lambda big: big.select("k", col("v").sum().over(gar.Window().partition_by("g")).alias("v")),
        "select k, (sum(v) over (partition by g))::bigint v from big",
    ),
    "joined left": (
        lambda big: big.join(big.select(col("v").alias("w")), left_on="v", right_on="w", how="left").select(
            "k", "v"
        ),
        "select k, v from big",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables as Parquet in small row groups, with narrow and with wide keys."""
    path = tmp_path_factory.mktemp("keys")
    for name, factor in (("narrow", 1), ("wide", WIDE)):
        keys = [None if i % 41 == 0 else (i * i % 200 - 20) * factor for i in range(ROWS)]
        groups = [i % 7 for i in range(ROWS)]
        big = pa.table({"k": pa.array(keys, "int64"), "v": list(range(ROWS)), "g": groups})
        pq.write_table(big, path / f"{name}_big.parquet", row_group_size=90)
        keys = [5 * factor, None, -20 * factor, 16 * factor, 16 * factor]
        few = pa.table({"k": pa.array(keys, "int64"), "b": range(5)})
        pq.write_table(few, path / f"{name}_few.parquet")
    return path


@pytest.fixture(scope="module")
def database(folder):
    with duckdb.connect() as db:
        for keys in ("narrow", "wide"):
            for table in ("big", "few"):
                db.sql(f"create table {keys}_{table} as from '{folder}/{keys}_{table}.parquet'")
        yield db


@pytest.mark.parametrize("keys", ["narrow", "wide"])
@pytest.mark.parametrize("shape", ABOVE)
def test_like_duckdb(folder, database, shape, keys):
    build, sql = ABOVE[shape]
    big = build(gar.read_parquet(f"{folder}/{keys}_big.parquet"))
    few = gar.read_parquet(f"{folder}/{keys}_few.parquet")
    names = ["b", "k", "v"]
    for how, is_swapped in product(["inner", "left", "right", "outer", "semi", "anti"], [False, True]):
        left, right = (few, big) if is_swapped else (big, few)
        found = left.join(right, on="k", how=how)
        wanted = [name for name in names if name in found.column_names]
        query = sql.replace("from big", f"from {keys}_big")
        sides = [f"{keys}_few", f"({query})"] if is_swapped else [f"({query})", f"{keys}_few"]
        kind = {"outer": "full"}.get(how, how)
        shown = ["coalesce(l.k, r.k) k" if n == "k" and how not in ("semi", "anti") else n for n in wanted]
        theirs = database.sql(
            f"select {', '.join(shown)} from {sides[0]} l {kind} join {sides[1]} r on l.k = r.k"
        ).fetchall()
        ours = [tuple(row[name] for name in wanted) for row in found.to_pylist()]
        assert sorted(ours, key=repr) == sorted(theirs, key=repr)


def test_nulls_that_are_equal_stay(folder):
    big = gar.read_parquet(f"{folder}/narrow_big.parquet")
    few = gar.read_parquet(f"{folder}/narrow_few.parquet")
    joined = big.join(few, on="k", nulls_equal=True)
    assert joined.where(col("b") == 1).count_rows() == len([i for i in range(ROWS) if i % 41 == 0])


def test_scans_leave_rows_out(folder, capsys):
    big = gar.read_parquet(f"{folder}/narrow_big.parquet").groupby("k").agg(col("v").sum().alias("v"))
    joined = big.join(gar.read_parquet(f"{folder}/narrow_few.parquet"), on="k")
    joined.explain(show_all=True)
    assert "sends keys" in capsys.readouterr().out
    joined.explain(analyze=True)
    text = capsys.readouterr().out
    scan = text[text.index("rows with a key of a join by k") :]
    kept = sum(1 for i in range(ROWS) if i % 41 and i * i % 200 - 20 in (5, -20, 16))
    assert f"rows {kept} of" in scan
