# SPDX-License-Identifier: Apache-2.0
"""Queries that need more memory than they may have write rows to disk and give the same answers."""

import os

import pyarrow as pa
import pytest

import gar
from gar import Window, col, functions

ROWS = 400_000
LIMIT = 48 << 20


def wide_rows(partitions):
    """Rows of some 120 MB, each with a text of its own."""
    frame = gar.range(0, ROWS)
    name = frame.column_names[0]
    text = col(name).cast(gar.DataType.string())
    return frame.select(
        col(name).alias("id"),
        (col(name) % partitions).alias("part"),
        (col(name) * 7919 % 100_003).alias("value"),
        (text + gar.lit(" and " + "many more words " * 15)).alias("text"),
    )


def windows(frame):
    order = Window().partition_by("part").order_by("value", "id")
    return frame.select(
        "id",
        "text",
        functions.row_number().over(order).alias("number"),
        col("value").sum().over(Window().partition_by("part")).alias("total"),
        col("id").lag().over(order).alias("before"),
    )


def batches(frame):
    """Ids in order, sums that depend on every value, without holding the rows."""
    seen = 0
    found = []
    for batch in windows(frame).to_arrow_iter():
        assert isinstance(batch, pa.RecordBatch)
        ids = batch.column("id").to_pylist()
        assert ids[0] == seen
        assert ids[-1] == seen + len(ids) - 1
        seen += len(ids)
        texts = batch.column("text")
        assert texts[0].as_py().startswith(f"{ids[0]} and ")
        found += zip(
            batch.column("number").to_pylist(),
            batch.column("total").to_pylist(),
            batch.column("before").to_pylist(),
            strict=True,
        )
    assert seen == ROWS
    return found


@pytest.mark.parametrize("partitions", [13, 50_000])
def test_windows_larger_than_memory(partitions, tmp_path):
    frame = wide_rows(partitions)
    expected = batches(frame)
    with gar.execution_config_ctx(memory_limit=LIMIT, default_morsel_size=8192, spill_dir=str(tmp_path)):
        assert batches(frame) == expected
    assert os.listdir(tmp_path) == []


def test_nothing_may_be_spilled():
    with (
        gar.execution_config_ctx(memory_limit=LIMIT, default_morsel_size=8192, spill_limit=-1),
        pytest.raises(gar.exceptions.GarMemoryError, match="memory"),
    ):
        batches(wide_rows(13))


def test_spill_space_is_bounded(tmp_path):
    with (
        gar.execution_config_ctx(
            memory_limit=LIMIT, default_morsel_size=8192, spill_limit=1 << 20, spill_dir=str(tmp_path)
        ),
        pytest.raises(gar.exceptions.GarMemoryError, match="spill"),
    ):
        batches(wide_rows(13))
    assert os.listdir(tmp_path) == []
