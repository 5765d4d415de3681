# SPDX-License-Identifier: Apache-2.0
"""Embeddings of a text column on GPUs: a sentence-transformers model, once in each of N processes with a GPU of its own.

Usage: embed_text.py [--model NAME] [--gpus 1] [--actors 1] [--column text] FILE.parquet OUT

Needs `pip install sentence-transformers cloudpickle`, which brings torch, and the model's weights: they are downloaded at the first use, or
lie in a folder that --model names. --gpus 0 runs on the CPU, --gpus 0.25 packs four actors on one device.
"""

import argparse
import importlib.util
import sys

import gar
from gar import col


class Embedder:
    def __init__(self, name, device):
        from sentence_transformers import SentenceTransformer

        # The process sees its own device only, so that is always the first one.
        self.model = SentenceTransformer(name, device=device)

    @gar.method.batch(return_dtype="binary", batch_size=256)
    def embed(self, text):
        """Each embedding as the bytes of its float32 values."""
        found = self.model.encode(["" if one is None else one for one in text.to_pylist()])
        return [row.astype("<f4").tobytes() for row in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--gpus", type=float, default=1, help="of each actor")
    parser.add_argument("--actors", type=int, default=1)
    parser.add_argument("--column", default="text")
    parser.add_argument("file")
    parser.add_argument("out")
    options = parser.parse_args()
    for package in ("sentence-transformers", "cloudpickle"):
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise SystemExit(f"{sys.argv[0]} needs the package {package}: pip install {package}")
    device = "cuda" if options.gpus > 0 else "cpu"
    pool = gar.cls(Embedder, gpus=options.gpus, max_concurrency=options.actors)
    embedder = pool(options.model, device)
    frame = gar.read_parquet(options.file)
    try:
        written = frame.with_column("embedding", embedder.embed(col(options.column))).write_parquet(
            options.out
        )
    except gar.GarError as error:
        raise SystemExit(f"{sys.argv[0]}: {error}") from None
    print(f"wrote {written.to_pydict()['path'][0]}")


if __name__ == "__main__":
    main()
