# SPDX-License-Identifier: Apache-2.0
"""Rows by their number: in messages (rows of the input, from 0), and offsets that are reached without reading."""

import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gar
from gar import col

ROWS = 300
BAD = 271


@pytest.fixture(scope="module")
def table():
    texts = [str(i) for i in range(ROWS)]
    texts[BAD] = "bad"
    return pa.table({"k": list(range(ROWS)), "s": texts})


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    pq.write_table(table, folder / "all.parquet", row_group_size=50)
    pq.write_table(table.slice(0, 100), folder / "first.parquet", row_group_size=30)
    lines = [f"{i},x{text}\n" for i, text in enumerate(table["s"].to_pylist())]
    (folder / "all.csv").write_text("k,s\n" + "".join(lines))
    (folder / "windows.csv").write_bytes("".join(["k,s\n", *lines]).replace("\n", "\r\n").encode())
    (folder / "quoted.csv").write_text(
        "k,s\n" + "".join(f'{i},"x{t}\n\n"\n' for i, t in enumerate(table["s"].to_pylist()))
    )
    (folder / "blank.csv").write_text("k,s\n" + lines[0] + "\n" + "".join(lines[1:]))
    return folder


def sources(table, files):
    """(frame, what gives the number, the row that cannot be cast or None where it is not known)"""
    number = col("s").cast("int64")
    from_csv = col("s").substr(1, 3).cast("int64")
    pair = [str(files / "first.parquet"), str(files / "all.parquet")]
    return {
        "memory": (gar.from_arrow(table), number, BAD),
        "memory, two batches": (
            gar.from_arrow(pa.concat_tables([table.slice(0, 100), table])),
            number,
            100 + BAD,
        ),
        "parquet": (gar.read_parquet(str(files / "all.parquet")), number, BAD),
        "two files": (gar.read_parquet(pair), number, 100 + BAD),
        "csv": (gar.read_csv(str(files / "all.csv")), from_csv, BAD),
        "csv of windows": (gar.read_csv(str(files / "windows.csv")), from_csv, BAD),
        "csv, blank lines": (gar.read_csv(str(files / "blank.csv")), from_csv, None),
        "csv, line ends in quotes": (gar.read_csv(str(files / "quoted.csv")), from_csv, None),
    }


SOURCES = ["memory", "memory, two batches", "parquet", "two files", "csv", "csv of windows"]


def failure(frame):
    with pytest.raises(gar.GarError, match="cannot cast") as caught:
        frame.to_pydict()
    return str(caught.value)


@pytest.mark.parametrize("source", SOURCES)
def test_messages_count_rows_of_the_input(source, table, files):
    frame, number, row = sources(table, files)[source]
    queries = [
        frame.select(number.alias("n")),
        frame.with_column("n", number).select("n"),
        frame.where("k > 100").select(number.alias("n")),
        frame.where("k > 270 and k < 275").select(number.alias("n")),
        frame.where(col("k") % 2 == 1).select(number.alias("n")),
        frame.offset(100).select(number.alias("n")),
        frame.groupby(number.alias("n")).agg(col("k").sum()),
        frame.sort(number),
        frame.select(number.alias("n")).sort("n"),
    ]
    for query in queries:
        assert f", row {row}:" in failure(query)


@pytest.mark.parametrize("source", SOURCES)
def test_rows_of_a_filter(source, table, files):
    """A scan that filters by itself says its file and the row there."""
    frame, number, row = sources(table, files)[source]
    message = failure(frame.where(number > 5))
    if "parquet: cannot" in message:
        assert f"all.parquet: cannot cast 'bad' from string to int64, row {BAD}:" in message
    else:
        assert f", row {row}:" in message


@pytest.mark.parametrize("source", ["csv, blank lines", "csv, line ends in quotes"])
def test_no_number_where_it_is_not_known(source, table, files):
    frame, number, _ = sources(table, files)[source]
    assert "row" not in failure(frame.select(number.alias("n")))


def test_no_number_after_rows_were_moved(table):
    frame = gar.from_arrow(table)
    assert "row" not in failure(frame.sort("k", desc=True).select(col("s").cast("int64")))
    assert "row" not in failure(frame.distinct().select(col("s").cast("int64")))


def test_overflow_names_the_row():
    frame = gar.range(0, 1000)
    with pytest.raises(gar.GarError, match="row 923;"):
        frame.select((col("id") * 10**16).alias("x")).to_pydict()
    with pytest.raises(gar.GarError, match="row 930;"):
        frame.where("id >= 930").select((col("id") * 10**16).alias("x")).to_pydict()


def test_given_types_name_file_and_row(table, files):
    frame = gar.read_parquet(
        str(files / "all.parquet"), schema={"k": gar.DataType.int64(), "s": gar.DataType.int64()}
    )
    assert f"all.parquet: cannot cast 'bad' from string to int64, row {BAD}:" in failure(frame)


@pytest.mark.parametrize("offset", [0, 1, 29, 30, 49, 50, 51, 99, 100, 101, 299, 300, 301, 10**15])
def test_offsets(offset, table, files):
    keys = list(range(ROWS))
    frames = {
        "memory": (gar.from_arrow(table), keys),
        "parquet": (gar.read_parquet(str(files / "all.parquet")), keys),
        "two": (
            gar.read_parquet([str(files / "first.parquet"), str(files / "all.parquet")]),
            keys[:100] + keys,
        ),
        "csv": (gar.read_csv(str(files / "all.csv")), keys),
        "range": (gar.range(0, ROWS).select(col("id").alias("k")), keys),
        "concat": (gar.from_arrow(table).concat(gar.from_arrow(table)), keys + keys),
    }
    for frame, expected in frames.values():
        k = frame.select("k")
        assert k.offset(offset).to_pydict()["k"] == expected[offset:]
        assert k.offset(offset).count_rows() == len(expected[offset:])
        assert k.offset(offset).limit(7).to_pydict()["k"] == expected[offset : offset + 7]
        assert k.limit(120).offset(offset).to_pydict()["k"] == expected[:120][offset:]
        assert k.offset(offset).offset(13).limit(60).to_pydict()["k"] == expected[offset + 13 :][:60]
        assert k.offset(offset).where("k >= 60").to_pydict()["k"] == [x for x in expected[offset:] if x >= 60]
        assert k.where("k >= 60").offset(offset).to_pydict()["k"] == [x for x in expected if x >= 60][offset:]
        total = k.offset(offset).sum("k").to_pydict()["k"][0]
        assert total == (sum(expected[offset:]) or None)


def test_far_offsets_do_not_walk():
    frame = gar.range(0, 10**15)
    assert frame.offset(10**15 - 2).to_pydict() == {"id": [10**15 - 2, 10**15 - 1]}
    assert frame.offset(10**14).limit(1).to_pydict() == {"id": [10**14]}
    assert frame.select((col("id") + 1).alias("x")).offset(10**15 - 1).to_pydict() == {"x": [10**15]}


@pytest.mark.parametrize("read", [gar.read_csv, gar.read_parquet])
def test_planning_can_be_interrupted(read, tmp_path):
    """Ctrl-C while the start of a silent pipe is waited for."""
    path = tmp_path / "silent.csv"
    os.mkfifo(path)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        read(str(path))
    timer.join()
    assert time.monotonic() - begun >= 0.25


def test_pseudo_files():
    """Files of /proc say that they are empty."""
    assert gar.read_csv("/proc/mounts", has_headers=False, delimiter="\x01").count_rows() > 0


SIGNS = [(7, 3), (-7, 3), (7, -3), (-7, -3)]


@pytest.mark.parametrize("kind", ["int64", "int8", "float64", "decimal(9, 2)"])
def test_division_rounds_down_and_remainder_keeps_the_sign(kind):
    """The same for every type: // rounds down, % has the sign of the left side."""
    frame = gar.from_pydict({"a": [a for a, _ in SIGNS], "b": [b for _, b in SIGNS]})
    a, b = col("a").cast(kind), col("b").cast(kind)
    result = frame.select((a // b).alias("q"), (a % b).alias("r")).to_pydict()
    assert [int(q) for q in result["q"]] == [2, -3, -3, 2]
    assert [int(r) for r in result["r"]] == [1, -1, 1, -1]
    assert frame.where("a // b = -3 and a % b in (1, -1)").count_rows() == 2


FOOTERS = """
import os, sys, time, gar, pyarrow as pa, pyarrow.parquet as pq
path = sys.argv[1]
def write(value):
    pq.write_table(pa.table({"k": [value] * 100}), path, compression="none", use_dictionary=False)
write(1)
time.sleep(2.2)
first = os.stat(path)
for _ in range(3):
    assert gar.read_parquet(path).sum("k").to_pydict() == {"k": [100]}
    assert gar.read_parquet(path).where("k > 1").count_rows() == 0
write(7)
os.utime(path, ns=(first.st_atime_ns, first.st_mtime_ns))
second = os.stat(path)
assert (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)
assert gar.read_parquet(path).where("k > 1").count_rows() == 100
assert gar.read_parquet(path).sum("k").to_pydict() == {"k": [700]}
"""


def test_kept_footers_follow_the_file(tmp_path):
    """Statistics of an older file would prune the newer one, though its size and time of content are the same."""
    environment = {**os.environ, "GAR_FOOTER_CACHE": "1000000"}
    done = subprocess.run(
        [sys.executable, "-c", FOOTERS, str(tmp_path / "a.parquet")],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
