# SPDX-License-Identifier: Apache-2.0
"""timeout= of every call that runs a query."""

import math

import pandas  # noqa: F401  (its threads, and pyarrow's, are not the engine's)
import pyarrow  # noqa: F401
import pytest

import gar
from gar import col


def endless():
    """A query that runs until it is stopped and gives no row before."""
    return gar.range(1 << 45).agg((col("id") % 7).sum().alias("s"))


def even(rows):
    return gar.range(rows).where(col("id") % 2 == 0)


CALLS = {
    "collect": lambda df, path, t: df.collect(timeout=t),
    "count_rows": lambda df, path, t: df.count_rows(timeout=t),
    "to_pydict": lambda df, path, t: df.to_pydict(timeout=t),
    "to_pylist": lambda df, path, t: df.to_pylist(timeout=t),
    "to_arrow": lambda df, path, t: df.to_arrow(timeout=t),
    "to_pandas": lambda df, path, t: df.to_pandas(timeout=t),
    "show": lambda df, path, t: df.show(timeout=t),
    "iter_rows": lambda df, path, t: list(df.iter_rows(timeout=t)),
    "iter_partitions": lambda df, path, t: list(df.iter_partitions(timeout=t)),
    "to_arrow_iter": lambda df, path, t: list(df.to_arrow_iter(timeout=t)),
    "write_parquet": lambda df, path, t: df.write_parquet(path / "out", timeout=t),
    "write_csv": lambda df, path, t: df.write_csv(path / "out", timeout=t),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_running_call_has_a_timeout(call, tmp_path):
    with pytest.raises(gar.exceptions.GarTimeoutError) as caught:
        CALLS[call](endless(), tmp_path, 0.03)
    assert isinstance(caught.value, TimeoutError)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    CALLS[call](even(10).collect(), tmp_path, 3600)
    for wrong in (-1, math.nan):
        with pytest.raises(ValueError, match="timeout"):
            CALLS[call](endless(), tmp_path, wrong)
