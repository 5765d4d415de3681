# SPDX-License-Identifier: Apache-2.0
"""The 22 queries of TPC-H at scale factor 0.1 against DuckDB, from the unchanged Parquet files."""

import importlib.util
import math
import os
import sys
from decimal import Decimal
from types import SimpleNamespace

import duckdb
import pytest

import gar

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
SCALE = 0.1


def load(name):
    """A module of bench/tpch, which is no package."""
    path = os.path.join(ROOT, "bench", "tpch", f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"tpch_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


QUERIES = load("queries").QUERIES
SQL = load("sql").QUERIES


@pytest.fixture(scope="module")
def database(tpch):
    db = duckdb.connect()
    for table in TABLES:
        db.sql(f"create view {table} as from '{tpch}/{table}.parquet'")
    yield db
    db.close()


def same(mine, other):
    """Equal; our means of decimals have four digits more than the column, DuckDB's are floats."""
    if isinstance(mine, float) or isinstance(other, float):
        exact = isinstance(mine, float) and isinstance(other, float)
        return math.isclose(
            float(mine), float(other), rel_tol=1e-9 if exact else 0, abs_tol=0 if exact else 6e-7
        )
    return mine == other


@pytest.mark.parametrize("number", range(1, 23))
def test_like_duckdb(number, tpch, database):
    tables = SimpleNamespace(
        scale_factor=SCALE, **{name: gar.read_parquet(f"{tpch}/{name}.parquet") for name in TABLES}
    )
    got = [tuple(row.values()) for row in QUERIES[number](tables).to_pylist()]
    sql = SQL[number].replace("{scale_factor}", str(SCALE))
    want = database.sql(sql).fetchall()
    assert len(got) == len(want)
    for line, (mine, other) in enumerate(zip(got, want, strict=True)):
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            assert same(a, b), (line, mine, other)
    assert any(isinstance(v, (Decimal, int, float, str)) for row in got for v in row) or not got
