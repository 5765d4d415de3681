# SPDX-License-Identifier: Apache-2.0
"""What kinds of files lie under some folders: a neural network in two worker processes, run over the bytes of every file.

Usage: classify_files.py [--out FOLDER] FOLDER...

The network is that of magika (`pip install magika cloudpickle`): it comes in the package and runs on the CPU. Path, size,
label and score of every file go to OUT as Parquet.
"""

import argparse
import importlib.util
import sys
import tempfile
import time

import gar
from gar import col


# One object in each of two processes; each loads the network once and keeps it for the whole query.
@gar.cls(max_concurrency=2)
class Classifier:
    def __init__(self):
        from magika import Magika

        self.model = Magika()

    @gar.method.batch(return_dtype="string", batch_size=32)
    def classify(self, content):
        found = (self.model.identify_bytes(data) for data in content.to_pylist())
        return [f"{result.score:.3f} {result.output.label}" for result in found]


def classify(folders, out):
    """Write the kind of every file under the folders to `out`; gives the frame that was written."""
    files = gar.read_blob([f"{folder}/**" for folder in folders]).where("size < 16777216")
    answer = Classifier().classify(col("content")).alias("answer")
    kinds = files.select("path", "size", answer).select(
        "path",
        "size",
        col("answer").substr(6).alias("label"),
        col("answer").left(5).cast("float64").alias("score"),
    )
    return gar.read_parquet(kinds.write_parquet(out, write_mode="overwrite").to_pydict()["path"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", metavar="FOLDER", help="where the Parquet goes; else it is only shown")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    options = parser.parse_args()
    for package in ("magika", "cloudpickle"):
        if importlib.util.find_spec(package) is None:
            raise SystemExit(f"{sys.argv[0]} needs the package {package}: pip install {package}")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        kinds = classify(options.folders, options.out or scratch).collect()
    print(
        f"\n== {kinds.count_rows()} files classified by two processes ({time.perf_counter() - began:.1f} s)"
    )
    (
        kinds.groupby("label")
        .agg(
            col("path").count().alias("files"),
            col("size").sum().alias("bytes"),
            col("score").mean().alias("mean_score"),
        )
        .sort(["files", "label"], desc=[True, False])
        .show(12)
    )


if __name__ == "__main__":
    main()
