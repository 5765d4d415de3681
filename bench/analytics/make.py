# SPDX-License-Identifier: Apache-2.0
"""The tables of the groups h2o and clicks, from seeds: Parquet files of 10 million rows.

`h2o` has the shapes of the db-benchmark: keys of 100 and of 100,000 values, as text and as integers, and the tables of its
joins. `clicks` looks like a log of page views: few regions, many users, mostly empty search phrases, long addresses.

Usage: make.py FOLDER     writes FOLDER/h2o and FOLDER/clicks unless they are there
"""

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

ROWS = 10_000_000
GROUP_ROWS = 1 << 20
KEYS = 100


def labels(numbers, digits):
    """Texts id001, id002, ... of whole numbers, as dictionary codes into all texts."""
    distinct = int(numbers.max())
    texts = pa.array([f"id{i:0{digits}d}" for i in range(1, distinct + 1)])
    codes = pa.array((numbers - 1).astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, texts).cast(pa.string())


def write(path, columns):
    staged = f"{path}.{os.getpid()}"
    pq.write_table(pa.table(columns), staged, compression="snappy", row_group_size=GROUP_ROWS)
    os.replace(staged, path)


def make_groups(path):
    at = np.random.default_rng(108)

    def keys(most):
        return at.integers(1, most + 1, ROWS)

    write(
        path,
        {
            "id1": labels(keys(KEYS), 3),
            "id2": labels(keys(KEYS), 3),
            "id3": labels(keys(ROWS // KEYS), 10),
            "id4": keys(KEYS),
            "id5": keys(KEYS),
            "id6": keys(ROWS // KEYS),
            "v1": keys(5),
            "v2": keys(15),
            "v3": np.round(at.random(ROWS) * 100, 6),
        },
    )


def make_joins(folder):
    """x and the tables small, medium and big: of the keys of each, one in ten is missing on the other side."""
    at = np.random.default_rng(109)
    sizes = {"small": ROWS // 1_000_000, "medium": ROWS // 1_000, "big": ROWS}
    known = {name: at.permutation(size * 11 // 10) + 1 for name, size in sizes.items()}
    left = [at.choice(known[name][: sizes[name]], ROWS) for name in ("small", "medium")]
    left.append(at.permutation(known["big"][:ROWS]))
    columns = {f"id{i + 1}": left[i] for i in range(3)}
    columns |= {f"id{i + 4}": labels(left[i], 1) for i in range(3)}
    write(f"{folder}/x.parquet", columns | {"v1": np.round(at.random(ROWS) * 100, 6)})
    for number, (name, size) in enumerate(sizes.items(), 1):
        own = known[name][len(known[name]) - size :]
        columns = {f"id{number}": own, f"id{number + 3}": labels(own, 1)}
        write(f"{folder}/{name}.parquet", columns | {"v2": np.round(at.random(size) * 100, 6)})


def skewed(at, most):
    """Numbers below most of which the small ones are frequent."""
    return (most * at.random(ROWS) ** 3).astype(np.int64)


def make_clicks(path):
    at = np.random.default_rng(110)
    sites = [f"http://{name}.example/{kind}/" for kind in ("search", "view", "item") for name in WORDS]
    heads = pa.array(sites)
    site = pa.DictionaryArray.from_arrays(pa.array(skewed(at, len(sites)).astype(np.int32)), heads)
    page = pa.array(skewed(at, 3_000_000)).cast(pa.string())
    address = pa.compute.binary_join_element_wise(site.cast(pa.string()), page, "?page=")
    texts = pa.array(["", *[f"{a} {b} {n}" for a in WORDS for b in WORDS for n in range(300)]])
    phrase = np.where(at.random(ROWS) < 0.87, 0, 1 + skewed(at, len(texts) - 1)).astype(np.int32)
    write(
        path,
        {
            "WatchID": at.integers(1, 1 << 62, ROWS),
            "UserID": at.integers(1, 1 << 62, 1_700_000)[skewed(at, 1_700_000)],
            "CounterID": (skewed(at, 6_000)).astype(np.int32),
            "RegionID": (skewed(at, 5_000)).astype(np.int32),
            "ClientIP": at.integers(-(1 << 31), 1 << 31, ROWS).astype(np.int32),
            "EventTime": (
                1_372_636_800_000_000 + np.sort(at.integers(0, 2_592_000, ROWS)) * 1_000_000
            ).astype("datetime64[us]"),
            "ResolutionWidth": at.choice(np.array([0, 1024, 1280, 1366, 1440, 1638, 1920], np.int16), ROWS),
            "AdvEngineID": np.where(at.random(ROWS) < 0.94, 0, at.integers(1, 60, ROWS)).astype(np.int16),
            "IsRefresh": (at.random(ROWS) < 0.1).astype(np.int16),
            "SearchPhrase": pa.DictionaryArray.from_arrays(pa.array(phrase), texts).cast(pa.string()),
            "URL": address,
        },
    )


WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "google", "harbor", "indigo", "jasmine", "kelp", "lotus",
    "maple", "nectar", "onyx", "pebble", "quartz", "river", "sable", "tundra", "umber", "violet", "willow", "zephyr",
)  # fmt: skip


def main(data):
    made = {
        f"{data}/h2o/groups.parquet": make_groups,
        f"{data}/clicks/clicks.parquet": make_clicks,
    }
    for path, make in made.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            make(path)
    if not os.path.exists(f"{data}/h2o/big.parquet"):
        make_joins(f"{data}/h2o")


if __name__ == "__main__":
    main(sys.argv[1])
