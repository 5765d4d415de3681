# SPDX-License-Identifier: Apache-2.0
"""Open row iterators cost no thread: ten queries take turns, and the number of threads stays the same."""

import numpy
import psutil

import gar
from gar import col

gar.set_execution_config(default_morsel_size=1)

iterators = [
    iter(gar.from_pydict({"a": numpy.random.rand(10)}).with_column("plus_one", col("a") + 1))
    for _ in range(10)
]
for _ in range(10):
    for iterator in iterators:
        row = next(iterator)
        assert row["plus_one"] == row["a"] + 1
        print(psutil.Process().num_threads())
