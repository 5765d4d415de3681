# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear message with the place and the value, a class that users would catch, and an engine that goes on.

The census of conftest.py looks for leaks after each of these.
"""

import fcntl
import gzip
import io
import os
import pickle
import random
import resource
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gar
from gar import col


def fails(action, kinds, *words):
    """The action raises one GarError that is also each of `kinds` and whose text has every word."""
    with pytest.raises(gar.GarError) as caught:
        action()
    for kind in kinds:
        assert isinstance(caught.value, kind), type(caught.value).__mro__
    text = str(caught.value)
    for word in words:
        assert str(word) in text, text
    # The engine is as usable as before.
    assert gar.from_pydict({"a": [1, 2]}).where(col("a") > 1).to_pydict() == {"a": [2]}
    return text


def small_parquet(path, **options):
    table = pa.table({"i": list(range(1000)), "s": [f"text {n % 50}" for n in range(1000)]})
    pq.write_table(table, path, **{"row_group_size": 400, "compression": "snappy", **options})
    return path


@pytest.mark.parametrize("read", [gar.read_parquet, gar.read_csv])
def test_missing_file(tmp_path, read):
    fails(lambda: read(str(tmp_path / "nosuch.file")).collect(), [OSError], "nosuch.file")


@pytest.mark.parametrize("read", [gar.read_parquet, gar.read_csv])
def test_folder_without_files(tmp_path, read):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").write_text("")
    (tmp_path / "empty" / ".hidden.parquet").write_text("")
    fails(lambda: read(str(tmp_path / "empty")).collect(), [OSError], "empty")


def test_glob_without_match(tmp_path):
    fails(lambda: gar.read_parquet(str(tmp_path / "*.parquet")).collect(), [OSError], "*.parquet")


def test_file_without_permission_is_named(tmp_path):
    fails(lambda: gar.read_csv(str(tmp_path) + "/a\x00b").collect(), [ValueError])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"", ValueError),
        (b"PAR", ValueError),
        (b"a,b\n1,2\n", ValueError),
        (b"PAR1" + b"x" * 100 + b"PAR1", ValueError),
        (b"PARE" + b"x" * 100 + b"PARE", NotImplementedError),
    ],
)
def test_what_is_no_parquet_file(tmp_path, text, kind):
    path = tmp_path / "not.parquet"
    path.write_bytes(text)
    fails(lambda: gar.read_parquet(str(path)).collect(), [kind], "not.parquet")


def test_corrupt_page_with_crc(tmp_path):
    path = small_parquet(
        tmp_path / "crc.parquet", write_page_checksum=True, compression="none", use_dictionary=False
    )
    data = bytearray(path.read_bytes())
    place = data.index((500).to_bytes(8, "little"))
    data[place] ^= 1
    path.write_bytes(data)
    fails(lambda: gar.read_parquet(str(path)).collect(), [ValueError], "crc.parquet", "'i'")


def test_corrupt_compressed_page(tmp_path):
    path = small_parquet(tmp_path / "flip.parquet", compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    magic = data.index(b"\x28\xb5\x2f\xfd")
    data[magic : magic + 4] = b"\0\0\0\0"
    path.write_bytes(data)
    fails(lambda: gar.read_parquet(str(path)).collect(), [ValueError], "flip.parquet", "'i'")


@pytest.mark.parametrize("seed", range(8))
def test_any_damage_reads_or_fails_cleanly(tmp_path, seed):
    """Flipped bits, lying lengths and cuts all over the file; memory stays near what the file could hold."""
    numbers = random.Random(seed)
    sink = io.BytesIO()
    table = pa.table(
        {"i": list(range(300)), "s": [f"text {n % 9}" for n in range(300)], "f": [n / 3 for n in range(300)]}
    )
    pq.write_table(
        table,
        sink,
        row_group_size=100,
        compression=["none", "snappy", "zstd", "gzip"][seed % 4],
        data_page_version="2.0" if seed % 2 else "1.0",
    )
    good = sink.getvalue()
    path = tmp_path / "damaged.parquet"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = {"read": 0, "refused": 0}
    for _ in range(150):
        data = bytearray(good)
        for _ in range(numbers.randrange(1, 4)):
            place = numbers.randrange(4, len(data) - 8)
            kind = numbers.randrange(3)
            if kind == 0:
                data[place] ^= 1 << numbers.randrange(8)
            elif kind == 1:
                data[place : place + 5] = b"\xff\xff\xff\xff\x7f"
            else:
                del data[place : place + numbers.randrange(1, 9)]
        path.write_bytes(data)
        try:
            gar.read_parquet(str(path)).to_arrow().validate(full=True)
            outcomes["read"] += 1
        except gar.GarError as error:
            assert "damaged.parquet" in str(error)
            outcomes["refused"] += 1
    assert outcomes["refused"] > 20, outcomes
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 256 * 1024, f"{grown_kib} KiB more after files of {len(good)} bytes"


def test_nested_column_is_refused_by_name(tmp_path):
    path = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"x": [1, 2], "deep": [[1], [2, 3]]}), path)
    frame = gar.read_parquet(str(path))
    fails(lambda: frame.collect(), [], "deep")
    assert frame.select("x").to_pydict() == {"x": [1, 2]}


def write_csv(tmp_path, text, name="bad.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3\n", ["bad.csv", "3"]),
        ("a,b\n1,2\n3,4,5\n", ["bad.csv", "3"]),
        ('a,b\n1,"open\n2,3\n', ["bad.csv", "2"]),
        (b"a,b\n1,ok\n2,\xff\xfe\n", ["bad.csv", "3", "UTF-8"]),
    ],
)
def test_bad_csv(tmp_path, text, words):
    path = write_csv(tmp_path, text)
    fails(lambda: gar.read_csv(path).collect(), [ValueError], *words)


def test_csv_in_another_encoding(tmp_path):
    path = write_csv(tmp_path, b"\xff\xfea\x00,\x00b\x00\n\x00")
    fails(lambda: gar.read_csv(path).collect(), [NotImplementedError], "bad.csv", "UTF-16")


def test_csv_value_that_does_not_fit_its_given_type(tmp_path):
    path = write_csv(tmp_path, "a,b\n1,2\nx7,4\n")
    schema = {"a": gar.DataType.int64(), "b": gar.DataType.int64()}
    fails(lambda: gar.read_csv(path, schema=schema).collect(), [ValueError], "bad.csv", "3", "'a'", "x7")


def test_csv_value_that_does_not_fit_its_inferred_type(tmp_path):
    rows = "".join(f"{n}\n" for n in range(400_000))
    path = write_csv(tmp_path, f"a\n{rows}late\n")
    fails(lambda: gar.read_csv(path).collect(), [ValueError], "bad.csv", "400002", "'a'", "late")


def test_csv_with_a_cut_gzip_stream(tmp_path):
    data = gzip.compress(b"a,b\n" + b"1,2\n" * 50_000)
    path = write_csv(tmp_path, data[: len(data) // 2], "bad.csv.gz")
    fails(lambda: gar.read_csv(path).collect(), [], "bad.csv.gz")


def test_integer_overflow_names_operation_and_row():
    frame = gar.from_pydict({"a": [1, 2**63 - 1]})
    fails(lambda: frame.select(col("a") + 1).collect(), [], "overflow", "int64")
    fails(lambda: frame.select((col("a") * 2).alias("b")).collect(), [], "overflow")
    fails(lambda: frame.agg(col("a").sum()).collect(), [], "sum", "out of range", "int64")


def test_cast_that_fails_names_the_value():
    frame = gar.from_pydict({"s": ["1", "two", None]})
    fails(lambda: frame.select(col("s").cast(gar.DataType.int64())).collect(), [ValueError], "two")
    assert frame.select(col("s").try_cast(gar.DataType.int64())).to_pydict() == {"s": [1, None, None]}


def test_unknown_column_names_the_nearest():
    frame = gar.from_pydict({"price": [1.0], "quantity": [2]})
    for action in (
        lambda: frame.select("prise"),
        lambda: frame.where(col("prise") > 1),
        lambda: frame.where("prise > 1"),
        lambda: frame.sort("prise"),
        lambda: frame.groupby("prise").agg(col("quantity").sum()),
    ):
        fails(action, [], "prise", "price")


def test_type_error_at_plan_time():
    frame = gar.from_pydict({"s": ["a"], "n": [1]})
    fails(lambda: frame.select(col("s") + col("n") * 2 > 1), [TypeError], "s")
    fails(lambda: frame.where(col("n")), [TypeError])
    fails(lambda: frame.where("s"), [TypeError])


def test_bad_sql_expression_points_at_the_place():
    frame = gar.from_pydict({"a": [1]})
    fails(lambda: frame.where("a > "), [ValueError])
    fails(lambda: frame.where("a >> > 1"), [ValueError])
    fails(lambda: frame.where("(" * 2000 + "a" + ")" * 2000 + " > 1"), [ValueError])


def test_same_name_twice():
    frame = gar.from_pydict({"a": [1], "b": [2]})
    fails(lambda: frame.select(col("a"), col("b").alias("a")), [ValueError], "a")


def test_columns_of_unequal_length():
    fails(lambda: gar.from_pydict({"a": [1, 2], "b": [1]}), [ValueError], "b")


def test_negative_limit():
    fails(lambda: gar.from_pydict({"a": [1]}).limit(-1), [ValueError], "-1")


def test_failed_write_leaves_nothing(tmp_path):
    frame = gar.from_pydict({"s": ["1", "x"] * 1000}).select(col("s").cast(gar.DataType.int64()))
    target = tmp_path / "out"
    fails(lambda: frame.write_parquet(str(target)), [ValueError])
    assert not target.exists() or list(target.iterdir()) == []
    fails(lambda: frame.write_csv(str(target)), [ValueError])
    assert not target.exists() or list(target.iterdir()) == []


def test_write_where_it_cannot(tmp_path):
    (tmp_path / "file").write_text("")
    frame = gar.from_pydict({"a": [1]})
    fails(lambda: frame.write_parquet(str(tmp_path / "file" / "inside")), [OSError], "file")


def test_source_file_that_shrinks_between_plan_and_run(tmp_path):
    path = small_parquet(tmp_path / "shrinks.parquet")
    frame = gar.read_parquet(str(path))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 3])
    fails(lambda: frame.collect(), [], "shrinks.parquet")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gar.read_parquet(None), "path must be a str, a path object, or a list of them, got None"),
        (lambda: gar.read_csv(7), "path must be a str, a path object, or a list of them, got 7"),
        (lambda: gar.range(3).sort("id", "id"), "sort takes the columns as one list, as sort(['id', 'id'])"),
        (lambda: gar.range(3).collect(timeout="1"), "timeout is a number of seconds, or None, got '1'"),
        (lambda: gar.read_csv("/tmp/\udcff.csv"), "is not valid UTF-8"),
        (lambda: gar.range(3).write_csv("/tmp/\udcff"), "is not valid UTF-8"),
    ],
)
def test_slips_are_named(call, message):
    fails(call, [], message)


def test_what_can_be_pickled():
    schema = gar.from_pydict({"a": [1], "s": ["x"]}).schema()
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert pickle.loads(pickle.dumps(schema["a"])) == schema["a"]
    series = gar.Series.from_pylist([1, None, 3], "n", gar.DataType.int32())
    back = pickle.loads(pickle.dumps(series))
    assert (back.name(), back.to_pylist(), back.datatype()) == ("n", [1, None, 3], gar.DataType.int32())
    fails(lambda: pickle.dumps(gar.range(3)), [TypeError], "a DataFrame cannot be pickled")
    fails(lambda: pickle.dumps(col("a") + 1), [TypeError], "an expression cannot be pickled")


def test_leftovers_of_killed_writers_go(tmp_path):
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    pid = gone.stdout.strip()
    old = time.time() - 3600
    names = {
        "stale": f".out.csv.{pid}.0123456789abcdef.tmp",
        "recent": f".out.csv.{pid}.0123456789abcde0.tmp",
        "ours": f".out.csv.{os.getpid()}.0123456789abcdef.tmp",
        "another name": f".out.csv.{pid}.0123456789abcdeg.tmp",
        "held": f".out.csv.{pid}.0123456789abcde1.tmp",
    }
    for name in names.values():
        (tmp_path / name).write_text("x")
        if name != names["recent"]:
            os.utime(tmp_path / name, (old, old))
    with open(tmp_path / names["held"]) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        gar.range(3).write_csv(str(tmp_path / "out.csv"), single_file=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["out.csv", *(name for what, name in names.items() if what != "stale")]
    )
