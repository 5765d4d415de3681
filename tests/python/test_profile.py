# SPDX-License-Identifier: Apache-2.0
"""Profiles, explain(analyze=True), traces, the watchdog's words, the progress line, and results without order."""

import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time

import pyarrow
import pyarrow.parquet
import pytest

import gar
from gar import col

LONG = "gar.range(0, 10**12).where(gar.col('id') % 7 == 3).agg(gar.col('id').sum())"


@pytest.fixture
def table(tmp_path):
    """Parquet with five row groups of 1,000 rows."""
    path = str(tmp_path / "t.parquet")
    rows = {"a": list(range(5000)), "b": [str(i % 3) for i in range(5000)]}
    pyarrow.parquet.write_table(pyarrow.table(rows), path, row_group_size=1000)
    return path


# ---- numbers


@pytest.mark.settings
def test_metrics(table):
    frame = gar.read_parquet(table).where(col("a") < 1500).groupby("b").agg(col("a").sum())
    assert frame.metrics is None
    frame.collect()
    found = frame.metrics
    assert found["is_finished"] and found["rows"] == 3 and found["rows_read"] == 1500
    assert 0 < found["wall_seconds"] < 60
    scan, group = found["operators"][:2]
    assert (scan["name"], group["name"]) == ("scan", "group by")
    assert (scan["pieces_total"], scan["pieces_skipped"], scan["pieces_read"]) == (5, 3, 2)
    assert (scan["files_total"], scan["files_read"]) == (1, 1)
    assert scan["rows_out"] == group["rows_in"] == 1500
    assert scan["rows_in"] == 2000
    assert 0 < scan["bytes_read"] <= os.path.getsize(table)
    assert group["memory_peak_bytes"] > 0
    assert [op["role"] for op in found["operators"]] == ["source", "sink", "source", "sink"]


@pytest.mark.settings
def test_metrics_of_results_and_handles(table):
    frame = gar.read_parquet(table)
    rows = sum(1 for _ in frame.iter_rows())
    assert frame.metrics["rows"] == rows == 5000
    handle = frame.where(col("a") >= 4000).start()
    assert len(handle.result()) == 1000
    progress = handle.progress()
    assert progress.state == "done" and progress.waiting is None
    assert progress.operators[0]["rows_out"] == 1000
    assert handle.metrics["operators"] == progress.operators


@pytest.mark.settings
def test_explain_analyze(table, capsys):
    frame = gar.read_parquet(table).where(col("a") < 1500)
    frame.explain(analyze=True)
    shown = capsys.readouterr().out
    assert "rows 1,500 of 2,000" in shown
    assert "pieces read 2 of 5 (3 skipped)" in shown
    assert re.search(r"1,500 rows in \S+ m?s, CPU", shown)
    assert not frame._is_collected
    frame.explain(show_all=True, analyze=True)
    shown = capsys.readouterr().out
    assert [
        f"== {name}" in shown for name in ("Logical", "Optimized", "Physical plan ==", "Physical plan, run")
    ]
    with pytest.raises(gar.GarError, match="'x'"):
        gar.from_pydict({"a": ["x"]}).select(col("a").cast("int64")).explain(analyze=True)


# ---- traces


def check_nesting(events):
    """Spans of one thread lie inside each other or apart."""
    for thread in {event["tid"] for event in events}:
        ends = []
        spans = [event for event in events if event["tid"] == thread]
        for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= event["ts"] + 1e-9:
                ends.pop()
            assert not ends or event["ts"] + event["dur"] <= ends[-1] + 1e-6
            ends.append(event["ts"] + event["dur"])


def check_trace(path):
    with open(path, encoding="utf8") as file:
        events = json.load(file)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    check_nesting(spans)
    named = {event["tid"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    assert {event["tid"] for event in spans} <= named
    return events


def test_trace(table, tmp_path):
    path = tmp_path / "trace.json"
    with gar.execution_config_ctx(enable_inline=False), gar.trace(path):
        gar.read_parquet(table).where(col("a") > 10).sort("a", desc=True).collect()
        check_trace(path)  # complete after each query
        with pytest.raises(gar.GarError, match="already"):
            gar.trace(str(tmp_path / "other.json")).__enter__()
    events = check_trace(path)
    names = {event["name"] for event in events}
    assert {"scan > sort", "scan: IO", "read", "next rows"} <= names
    reads = [event for event in events if event["name"] == "read"]
    assert all(event["args"]["path"].endswith("t.parquet") for event in reads)
    queries = [event["ph"] for event in events if event.get("cat") == "query"]
    assert sorted(queries) == ["b", "e"]
    threads = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert any(name.startswith("Compute-Thread") for name in threads)
    assert any(name.startswith("IO-Thread") for name in threads)


def test_trace_keeps_the_file_after_errors(tmp_path):
    path = tmp_path / "trace.json"
    bad = gar.from_pydict({"a": ["x"]}).select(col("a").cast("int64"))
    with pytest.raises(gar.GarError), gar.trace(path):
        bad.collect()
    assert {event["ph"] for event in check_trace(path)} >= {"b", "e", "X"}
    with pytest.raises(gar.GarError, match="path"):
        gar.trace(5)
    with pytest.raises(gar.GarError, match="nowhere"):
        gar.trace(tmp_path / "nowhere" / "trace.json").__enter__()


def test_trace_of_a_process(table, tmp_path):
    path = tmp_path / "trace.json"
    script = f"import gar; gar.read_parquet({table!r}).collect(); import os; os._exit(3)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "GAR_TRACE": str(path)}, timeout=60, check=False
    )
    assert done.returncode == 3
    assert any(event.get("cat") == "query" for event in check_trace(path))


# ---- the watchdog


def test_watchdog_names_the_read():
    script = """
import sys, time, gar
gar.set_execution_config(watchdog_seconds=0.2)
handle = gar.read_csv("-").start()
waiting = None
while waiting is None:
    time.sleep(0.02)
    waiting = handle.progress().waiting
print(waiting, flush=True)
handle.cancel()
"""
    env = {**os.environ, "GAR_INLINE": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    ) as process:
        process.stdin.write(b"a,b\n" + b"1,2\n" * 1_500_000)  # then nothing more comes, and no end
        process.stdin.flush()
        said = process.stdout.readline().decode()
        process.stdin.close()
        logged = process.stderr.read().decode()
        assert process.wait(60) == 0
    assert re.search(r"has not moved for 0\.\d s; reading '.*' at byte \d+", said), said
    assert "gar: warning: query" in logged and said.strip() in logged


# ---- the progress line


def run_in_terminal(script, stop=None, **environment):
    """What a script writes to a terminal that is its standard error, its output and its exit status."""
    master, slave = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key != "GAR_PROGRESS"}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**env, "TERM": "xterm", **environment},
    ) as process:
        os.close(slave)
        written = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # nobody has the terminal open any more
                break
            written += piece
            if not piece:
                break
            if stop is not None and stop in written:
                process.send_signal(signal.SIGINT)
                stop = None
        out = process.stdout.read().decode()
        status = process.wait(60)
    os.close(master)
    return written.decode(), out, status


def check_drawn(written):
    """Lines of one row each, the last taken away; what is left is the text behind it."""
    pieces = written.split("\r")
    drawn = [piece for piece in pieces[1:] if piece.endswith("\x1b[K") and piece != "\x1b[K"]
    assert drawn and all(len(piece.removesuffix("\x1b[K")) < 80 and "\n" not in piece for piece in drawn)
    assert re.match(r"\d\.\d s", drawn[0])
    assert "scan" in drawn[0] and "rows" in drawn[0]
    last = written.rindex("\r\x1b[K")
    assert last > written.rindex(drawn[-1])
    return written[last + len("\r\x1b[K") :]


def test_progress_line_in_a_terminal():
    script = f"""
import gar
try:
    {LONG}.collect(timeout=1.2)
except gar.GarError:
    print("stopped")
"""
    written, out, status = run_in_terminal(script)
    assert status == 0 and out == "stopped\n"
    assert check_drawn(written) == ""
    told = [float(seconds) for seconds in re.findall(r"\r(\d+\.\d) s", written)]
    assert told[0] >= 0.5 and len(told) <= 10 * (told[-1] - told[0]) + 3  # ten times a second at most
    for off in ({"GAR_PROGRESS": "0"}, {"TERM": "dumb"}):
        written, out, status = run_in_terminal(script, **off)
        assert (written, out, status) == ("", "stopped\n", 0)


def test_progress_line_after_ctrl_c():
    script = f"import gar\ntry:\n    {LONG}.collect()\nexcept KeyboardInterrupt:\n    print('stopped')\n"
    written, out, status = run_in_terminal(script, stop=b"\x1b[K")
    assert status == 0 and out == "stopped\n"
    assert check_drawn(written) == ""


def test_no_progress_line_elsewhere():
    script = f"import gar\ntry:\n    {LONG}.collect(timeout=0.8)\nexcept gar.GarError:\n    pass\n"
    env = {key: value for key, value in os.environ.items() if key != "GAR_PROGRESS"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, timeout=60, check=True
    )
    assert done.stderr == b""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**env, "GAR_PROGRESS": "1"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"\x1b[K" in done.stderr


def test_progress_in_notebooks():
    """A kernel is stood in for: what matters is what its display is asked for."""
    script = f"""
import sys, types
shown = []
class Handle:
    def update(self, data, raw):
        shown.append(data["text/plain"])
def display(data, raw, display_id):
    shown.append(data["text/plain"])
    return Handle()
shell = types.SimpleNamespace(kernel=object())
sys.modules["ipykernel"] = types.ModuleType("ipykernel")
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
sys.modules["IPython.display"] = types.SimpleNamespace(display=display)
import gar
try:
    {LONG}.collect(timeout=1)
except gar.GarError:
    pass
assert len(shown) >= 2 and "scan" in shown[0] and shown[-1] == "", shown
gar.set_execution_config(progress="off")
count = len(shown)
try:
    {LONG}.collect(timeout=0.8)
except gar.GarError:
    pass
assert len(shown) == count
"""
    env = {key: value for key, value in os.environ.items() if key != "GAR_PROGRESS"}
    subprocess.run([sys.executable, "-c", script], env=env, timeout=60, check=True)


def test_settings_of_progress():
    with gar.execution_config_ctx(progress="off", watchdog_seconds=1.5):
        assert gar._native.settings()["watchdog_ms"] == 1500
        assert gar._native.settings()["progress"] == 0
    assert gar._native.settings()["watchdog_ms"] == 30000
    for bad in ({"progress": "loud"}, {"progress": [1]}, {"watchdog_seconds": -1}, {"watchdog_seconds": "x"}):
        with pytest.raises(gar.GarError):
            gar.set_execution_config(**bad)
    for name in ("GAR_PROGRESS", "GAR_WATCHDOG_SECONDS", "GAR_LOG"):
        script = "import gar\ntry:\n gar.range(0, 1).collect()\nexcept gar.GarError as e:\n print(e)"
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, name: "maybe"},
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert name.encode() in done.stdout and b"maybe" in done.stdout


# ---- order


@pytest.mark.settings
def test_any_order_gives_the_same_rows(table):
    plain = gar.from_pydict(
        {"a": [random.Random(5).randrange(50) for _ in range(300)], "b": list(range(300))}
    )
    read = gar.read_parquet(table)
    makers = [
        lambda: read.where(col("a") % 3 == 1),
        lambda: read.select((col("a") * 2).alias("d"), "b"),
        lambda: read.groupby("b").agg(col("a").sum()),
        lambda: read.distinct("b").select("b"),
        lambda: read.concat(read.where(col("a") < 7)),
        lambda: plain.where(col("a") > 10),
        lambda: plain.groupby("a").agg(col("b").count()),
    ]
    for make in makers:
        ordered = make().to_pylist()
        with gar.execution_config_ctx(maintain_order=False):
            loose = make().to_pylist()
        key = lambda row: sorted((name, str(value)) for name, value in row.items())  # noqa: E731
        assert sorted(ordered, key=key) == sorted(loose, key=key)
    with gar.execution_config_ctx(maintain_order=False):
        assert len(read.limit(1234).to_pylist()) == 1234
        values = read.sort("a").to_pydict()["a"]
        assert values == list(range(5000))


def test_numbers_stand_still_after_the_end(table):
    frame = gar.read_parquet(table).collect()
    before = frame.metrics
    time.sleep(0.02)
    assert frame.metrics == before
