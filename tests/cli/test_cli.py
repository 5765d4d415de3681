# SPDX-License-Identifier: Apache-2.0
"""The command gar as a user meets it: output, exit status, standard input, closed pipes, Ctrl-C."""

import csv
import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GAR = os.environ.get("GAR_CLI", str(ROOT / "build" / "release" / "cli" / "gar"))
PEOPLE = str(ROOT / "examples" / "data" / "people.csv")
LINEITEM = ROOT / ".cache" / "data" / "tpch-0.1" / "lineitem.parquet"
LINEITEM_ROWS = 600_572


def gar(*arguments, status=0, **options):
    """Run the command and check its exit status; (stdout, stderr)."""
    done = subprocess.run(
        [GAR, *map(str, arguments)], capture_output=True, timeout=60, check=False, **options
    )
    assert done.returncode == status, (done.returncode, done.stdout[-500:], done.stderr[-500:])
    return done.stdout.decode(), done.stderr.decode()


@pytest.fixture(scope="session")
def lineitem():
    if not LINEITEM.exists():
        pytest.fail(f"no {LINEITEM}: run tools/make_data.py test")
    return str(LINEITEM)


def test_schema_of_csv():
    out, err = gar("schema", PEOPLE)
    assert out.splitlines() == [
        "name: string",
        "born: date",
        "city: string",
        "height_cm: float64",
        "note: string",
    ]
    assert err == ""


def test_schema_of_parquet(lineitem):
    lines = gar("schema", lineitem)[0].splitlines()
    assert len(lines) == 16
    assert lines[0] == "l_orderkey: int64"
    assert "l_extendedprice: decimal(15, 2)" in lines


def test_count(lineitem):
    assert gar("count", PEOPLE)[0] == "6\n"
    assert gar("count", lineitem)[0] == f"{LINEITEM_ROWS}\n"
    assert gar("count", lineitem, lineitem)[0] == f"{2 * LINEITEM_ROWS}\n"
    assert gar("count", lineitem, "--where", "l_quantity > 100")[0] == "0\n"
    assert gar("count", lineitem, "--limit", "7")[0] == "7\n"


def test_head_as_csv_keeps_every_field():
    rows = list(csv.reader(gar("head", PEOPLE, "--format", "csv")[0].splitlines(keepends=True)))
    with open(PEOPLE, newline="", encoding="utf8") as file:
        expected = list(csv.reader(file))
    assert rows[0] == expected[0]
    assert [row[0] for row in rows[1:]] == [row[0] for row in expected[1:]]
    assert [row[4] for row in rows[1:]] == [row[4] for row in expected[1:]]


def test_head_as_json_tells_null_from_empty():
    rows = [json.loads(line) for line in gar("head", PEOPLE, "--format=json")[0].splitlines()]
    assert len(rows) == 6
    assert rows[1]["height_cm"] is None
    assert rows[2]["note"] is None
    assert rows[4]["note"] == ""
    assert rows[1]["note"].count("\n") == 1


def test_head_as_table_is_aligned():
    lines = [
        line for line in gar("head", PEOPLE, "--limit", "2")[0].splitlines() if line.startswith(("│", "|"))
    ]
    assert len({len(line) for line in lines}) == 1


def test_select_where_limit(lineitem):
    out, _ = gar(
        "head", lineitem, "--format", "csv", "--limit", "3",
        "--select", "l_orderkey as k, l_quantity * 2 as q", "--where", "l_shipmode = 'AIR' and l_quantity between 5 and 10",
    )  # fmt: skip
    lines = out.splitlines()
    assert lines[0] == "k,q"
    assert len(lines) == 4


def test_describe():
    out, _ = gar("describe", PEOPLE, "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 5
    assert any(165.5 in row.values() or "165.5" in row.values() or "178" in str(row.values()) for row in rows)


def test_explain(lineitem):
    out, _ = gar("explain", lineitem, "--select", "l_orderkey", "--where", "l_quantity > 49")
    assert out.count("==") >= 6
    assert "l_quantity" in out


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "csv.zst"])
def test_convert_there_and_back(tmp_path, lineitem, suffix):
    target, back = tmp_path / f"part.{suffix}", tmp_path / "back.csv"
    select = [
        "--select",
        "l_orderkey, l_shipmode, l_shipdate, l_comment",
        "--where",
        "l_orderkey < 1000",
    ]
    codec = {"csv.gz": ["--compression", "gzip"], "csv.zst": ["--compression", "zstd"]}.get(suffix, [])
    gar("convert", lineitem, target, *select, *codec)
    gar("convert", target, back)
    gar("convert", lineitem, tmp_path / "straight.csv", *select)
    assert back.read_text() == (tmp_path / "straight.csv").read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_standard_input(lineitem):
    with open(PEOPLE, "rb") as file:
        assert gar("count", "-", stdin=file)[0] == "6\n"
    with open(lineitem, "rb") as file:
        assert gar("count", "-", stdin=file)[0] == f"{LINEITEM_ROWS}\n"
    assert gar("count", "-", input=b"a|b\n1|2\n")[0] == "1\n"


def test_gzip_and_delimiter(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a|b\n1|x\n2|y\n"))
    out, _ = gar("head", path, "--delimiter", "|", "--format", "csv")
    assert out == "a,b\n1,x\n2,y\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["count", "missing.parquet"], ["missing.parquet"]),
        (["schema", PEOPLE, "--select", "heigth_cm"], ["heigth_cm", "height_cm"]),
        (["head", PEOPLE, "--where", "name >"], ["name >"]),
        (["head", PEOPLE, "--where", "name > 1"], ["string", "int64"]),
        (["convert", PEOPLE, "people.xlsx"], ["people.xlsx", ".parquet"]),
        (["head", PEOPLE, "--select", "cast(name as int64)"], ["Lovelace"]),
    ],
)
def test_errors_go_to_stderr_with_status_1(arguments, words):
    out, err = gar(*arguments, status=1)
    assert out == ""
    assert err.startswith("gar: ")
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nosuch", PEOPLE],
        ["head"],
        ["head", PEOPLE, "--limit", "x"],
        ["head", PEOPLE, "--nosuch", "1"],
        ["convert", PEOPLE],
    ],
)
def test_usage_errors_have_status_2(arguments):
    out, err = gar(*arguments, status=2)
    assert out == ""
    assert err.startswith("gar: ")


def test_help_and_version():
    assert "usage: gar" in gar("--help")[0]
    assert gar("--version")[0].startswith("gar ")


def test_truncated_parquet(tmp_path, lineitem):
    data = Path(lineitem).read_bytes()
    path = tmp_path / "cut.parquet"
    path.write_bytes(data[:-20])
    assert "cut.parquet" in gar("count", path, status=1)[1]


def test_ragged_csv_names_its_line(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text("a,b\n1,2\n3\n")
    err = gar("count", path, status=1)[1] + gar("head", path, "--format", "csv", status=1)[1]
    assert "ragged.csv" in err
    assert "3" in err


@pytest.mark.parametrize("form", ["csv", "json"])
def test_closed_pipe_is_no_error(lineitem, form):
    process = subprocess.Popen(
        [GAR, "head", lineitem, "--limit", "600000", "--format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_interrupt_ends_with_130(lineitem):
    """Ctrl-C while output is stuck in a full pipe and the query is still running."""
    process = subprocess.Popen(
        [GAR, "head", lineitem, "--limit", "600000", "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    process.stdout.close()
    process.stderr.close()


def test_interrupt_while_reading_standard_input():
    process = subprocess.Popen(
        [GAR, "count", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
