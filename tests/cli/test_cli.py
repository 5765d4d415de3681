# SPDX-License-Identifier: Apache-2.0
"""The command gar as a user meets it: output, exit status, standard input, closed pipes, Ctrl-C."""

import csv
import gzip
import json
import os
import resource
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

# A shell that starts the tests in the background has signals ignored; children inherit that, and gar respects it.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


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


def test_explain_analyze():
    out, _ = gar("explain", PEOPLE, "--analyze", "--where", "height_cm > 160")
    assert "== physical plan, run ==" in out and "== physical plan ==" not in out
    assert "busy" in out and "scan csv" in out
    gar("count", PEOPLE, "--analyze", status=2)


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


def test_empty_standard_input_has_a_name():
    for options in ([], ["--input-format", "parquet"]):
        err = gar("count", "-", *options, input=b"", status=1)[1]
        assert "<stdin>" in err
        assert "empty" in err
        assert "/proc" not in err


def test_standard_input_that_was_read_already(tmp_path):
    """The shell's other readers of the same input have taken their part."""
    path = tmp_path / "rest.csv"
    path.write_bytes(b"a,b\n1,2\n3,4\n")
    with open(path, "rb", buffering=0) as file:
        file.read(4)
        assert gar("count", "-", "--no-header", stdin=file)[0] == "2\n"


def test_endless_standard_input(tmp_path):
    """Rows are taken as they come, and reading stops when they are enough."""
    yes = subprocess.Popen(["yes", "1,2"], stdout=subprocess.PIPE)
    out, _ = gar("head", "-", "--no-header", "--format", "csv", "--limit", "2", stdin=yes.stdout)
    assert out == "column_1,column_2\n1,2\n1,2\n"
    yes.stdout.close()
    yes.wait(10)
    yes = subprocess.Popen(["yes", "1,2"], stdout=subprocess.PIPE)
    err = gar("count", "-", "--input-format", "parquet", status=1, stdin=yes.stdout)[1]
    assert "<stdin>: not a Parquet file" in err
    yes.stdout.close()
    yes.wait(10)


def test_parquet_from_a_pipe_leaves_no_temporary_file(tmp_path, lineitem):
    cat = subprocess.Popen(["cat", lineitem], stdout=subprocess.PIPE)
    out, _ = gar(
        "count",
        "-",
        "--where",
        "l_orderkey > 0",
        stdin=cat.stdout,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    cat.stdout.close()
    assert cat.wait(10) == 0
    assert out == f"{LINEITEM_ROWS}\n"
    assert list(tmp_path.iterdir()) == []


def test_pseudo_files_are_not_empty():
    out, _ = gar("count", "/proc/self/mounts", "--input-format", "csv", "--no-header", "--delimiter", "\x01")
    assert int(out) > 0


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
        (["head", PEOPLE, "--select", "cast(name as int64)"], ["Lovelace"]),
        (
            ["convert", PEOPLE, "/nonexistent/folder/out.csv"],
            ["the folder '/nonexistent/folder' is not there"],
        ),
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
        ["convert", PEOPLE, "people.xlsx"],
        ["convert", PEOPLE, "people"],
        ["convert", PEOPLE, "people.csv", "--compression", "snappy"],
        ["convert", PEOPLE, "people.parquet", "--compression", "lzma"],
        ["head", PEOPLE, "--compression", "gzip"],
        ["count", PEOPLE, "--format", "csv"],
        ["schema", PEOPLE, "--limit", "1"],
        ["head", PEOPLE, "--threads", "0"],
        ["head", PEOPLE, "--threads=-1"],
        ["head", PEOPLE, "--limit", "-1"],
        ["head", PEOPLE, "--delimiter", ""],
        ["head", PEOPLE, "--delimiter", "ab"],
        ["head", PEOPLE, "--delimiter", "ä"],
        ["head", PEOPLE, "--no-header=yes"],
        ["head", PEOPLE, "--select"],
        ["head", PEOPLE, "--select", ""],
        ["count", PEOPLE, "--where", "  "],
        ["count", "-", "-"],
        ["head", PEOPLE, "--input-format", "xlsx"],
        ["head", "data.parquet", "--delimiter", ";"],
        ["head", PEOPLE, "--input-format", "parquet", "--no-header"],
    ],
)
def test_usage_errors_have_status_2(arguments, tmp_path):
    out, err = gar(*arguments, status=2, cwd=tmp_path)
    assert out == ""
    assert err.startswith("gar: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_usage_messages_name_the_value():
    assert (
        "--delimiter is one ASCII character, or \\t for a tab, got ''"
        in gar("head", PEOPLE, "--delimiter", "", status=2)[1]
    )
    assert (
        "--threads takes a whole number from 1 to 1024, got '0'"
        in gar("head", PEOPLE, "--threads", "0", status=2)[1]
    )
    assert (
        "head does not take --compression; see gar head --help"
        in gar("head", PEOPLE, "--compression", "zstd", status=2)[1]
    )


def test_help_and_version():
    assert "usage: gar" in gar("--help")[0]
    assert gar("--version")[0].startswith("gar ")


COMMANDS = ["schema", "head", "count", "describe", "convert", "explain"]


def test_resources():
    """Reads no file, starts no engine."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    out, err = gar("resources", env=environment)
    assert err == ""
    assert out.startswith("CPUs free")
    seen = json.loads(gar("resources", "--format", "json", env=environment)[0])
    assert seen["num_cpus"] >= 1
    assert seen["memory_bytes"] > 0
    assert seen["holders"] == []
    assert "table or json" in gar("resources", "--format", "csv", status=2)[1]
    assert "takes no file" in gar("resources", PEOPLE, status=2)[1]
    assert "does not take --limit" in gar("resources", "--limit", "1", status=2)[1]
    text = gar("resources", "--help")[0]
    assert text.startswith("usage: gar resources [OPTIONS]")
    assert "FILE" not in text
    assert "resources" in gar("--help")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_its_help(command):
    text, err = gar(command, "--help")
    assert err == ""
    assert text == gar("-h", command)[0]
    assert text.startswith(f"usage: gar {command} [OPTIONS] FILE...")
    assert ("--compression" in text) == (command == "convert")
    assert ("  --format" in text) == (command in ("head", "describe"))
    assert command in gar("--help")[0]


def test_help_names_exactly_the_options_taken(tmp_path):
    """An option that a command's help names is taken, one that it does not name is refused."""
    values = {
        "--select": "name", "--where": "name is not null", "--limit": "1", "--format": "csv", "--input-format": "csv",
        "--delimiter": ",", "--no-header": None, "--compression": "none", "--threads": "1",
    }  # fmt: skip
    for command in COMMANDS:
        text = gar(command, "--help")[0]
        target = [str(tmp_path / "out.csv")] if command == "convert" else []
        for name, value in values.items():
            if name in ("--no-header", "--select", "--where"):
                continue
            arguments = [command, PEOPLE, *target, name, *([] if value is None else [value])]
            gar(*arguments, status=0 if f"  {name} " in text else 2)


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


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("rows", [1, 100_000])
def test_files_that_may_not_grow(tmp_path, rows, suffix):
    """A short query writes on the caller's thread, a long one on others."""
    source = tmp_path / "in.csv"
    source.write_text("a,b\n" + "1234567,2\n" * rows)
    target = tmp_path / f"out.{suffix}"
    err = gar("convert", source, target, status=1, preexec_fn=limit_files)[1]
    assert err.count("\n") == 1
    assert str(target) in err
    assert "File too large" in err
    with open(tmp_path / "shown", "wb") as shown:
        done = subprocess.run(
            [GAR, "head", source], stdout=shown, stderr=subprocess.PIPE, preexec_fn=limit_files, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"gar: cannot write to standard output: File too large\n")
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "shown"]


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "command", [["count"], ["head", "--input-format", "csv"], ["count", "--input-format", "parquet"]]
)
def test_signals_while_a_pipe_is_silent(tmp_path, number, command):
    """Planning reads the start of the file, and stops when asked to."""
    fifo = tmp_path / "silent.csv"
    os.mkfifo(fifo)
    process = subprocess.Popen([GAR, *command, fifo], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(10) == 128 + number
    assert process.communicate() == (b"", b"")


def test_ignored_signals_stay_ignored(tmp_path):
    """As under nohup."""
    fifo = tmp_path / "silent.csv"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [GAR, "count", fifo],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    time.sleep(0.3)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.terminate()
    assert process.wait(10) == 143
    process.communicate()


def test_sigterm_leaves_no_file_behind(tmp_path):
    """A conversion that is ended in its middle."""
    yes = subprocess.Popen(["yes", "1,2"], stdout=subprocess.PIPE)
    process = subprocess.Popen(
        [GAR, "convert", "-", tmp_path / "out.parquet"],
        stdin=yes.stdout,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yes.stdout.close()
    time.sleep(0.7)
    process.terminate()
    assert process.wait(20) == 143
    yes.wait(10)
    process.communicate()
    assert list(tmp_path.iterdir()) == []
