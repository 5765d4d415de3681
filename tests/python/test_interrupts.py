# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: exactly one KeyboardInterrupt, soon, wherever the engine is; afterwards everything works and nothing is left."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gar
from gar import col

HERE = Path(__file__).resolve().parent
HANG_S = 120  # the only bound on time that is asserted
LONG = os.environ.get("GAR_TEST_LONG") == "1"
SWEEP = 1000 if LONG else 200  # signals over all operations
OPERATIONS = (
    "scan",
    "scan_csv",
    "group_by",
    "group_by_few",
    "sort",
    "sort_numbers",
    "distinct",
    "write_parquet",
    "write_csv",
    "iterate",
    "convert",
    "handle",
)


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GAR_")}
    return kept | {"GAR_PROGRESS": "0"}


def run_process(*command):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=HANG_S * (5 if LONG else 1),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("interrupts")
    rows = 800_000
    df = gar.range(rows).select(
        (col("id") * 2654435761 % 1000003).alias("a"),
        (col("id") * 40503 % rows).alias("b"),
        (col("id") % 1000 * 0.25).alias("c"),
        (col("id") * 7919 % 300_000).cast("string").alias("text"),
    )
    df.write_parquet(made / "data.parquet", single_file=True)
    df.write_csv(made / "data.csv", single_file=True)
    return made


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sweep(operation, folder, record_property):
    count = -(-SWEEP // len(OPERATIONS))
    seed = int(os.environ["GAR_TEST_SEED"])
    out = run_process(HERE / "interrupted_process.py", operation, count, seed, folder)
    found = json.loads(out)
    latencies = sorted(found["latencies"])
    assert len(latencies) == count
    record_property("median_ms", latencies[count // 2])
    record_property("slowest_ms", latencies[-1])
    print(
        f"{operation}: median {latencies[count // 2]} ms, slowest {latencies[-1]} ms, {found['inside']} inside"
    )


# What the scripts below start with. interrupt_in(seconds) sends one SIGINT; check() says that the engine is as it was.
HEAD = """
import os, signal, sys, threading, time
import gar
from gar import col
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt_in(seconds):
    def send():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread

def endless():
    return gar.range(1 << 45).agg((col("id") % 7).sum().alias("s"))

def check():
    assert gar.range(300_000).where(col("id") % 2 == 0).count_rows() == 150_000
    limit = time.monotonic() + 30
    while gar._native.statistics()["queries"] > 0:
        assert time.monotonic() < limit
        time.sleep(0.001)
    time.sleep(0.05)  # a second exception would come here
    print("good")
"""


def run_script(body, *args):
    assert run_process("-c", HEAD + body + "\ncheck()\n", *args).split()[-1] == "good"


def test_inside_one_long_task(folder):
    run_script(
        """
gar.set_runner_native(num_threads=1)
gar.set_execution_config(default_morsel_size=1 << 40)
for query in (endless(), gar.range(1 << 45).where(col("id") < 0), gar.range(1 << 45).distinct().limit(1 << 44)):
    thread = interrupt_in(0.1)
    try:
        query.collect()
        raise SystemExit("not interrupted")
    except KeyboardInterrupt:
        thread.join()
"""
    )


@pytest.mark.parametrize("has_header", [False, True])
def test_reading_a_silent_pipe(tmp_path, has_header):
    run_script(
        """
path, has_header = sys.argv[1], sys.argv[2] == "True"
os.mkfifo(path)
writer = os.open(path, os.O_RDWR)
if has_header:
    os.write(writer, b"a,b\\n1,2\\n")
thread = interrupt_in(0.2)
try:
    gar.read_csv(path).collect()
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    thread.join()
os.close(writer)
""",
        tmp_path / "pipe",
        has_header,
    )


def test_other_queries_go_on_beside_a_silent_pipe(tmp_path, folder):
    run_script(
        """
path = sys.argv[1]
os.mkfifo(path)
writer = os.open(path, os.O_RDWR)
silent = threading.Thread(target=lambda: gar.read_csv(path).collect(), daemon=True)
silent.start()
for _ in range(5):
    assert gar.read_parquet(sys.argv[2] + "/data.parquet").where(col("a") >= 0).count_rows() == 800_000
assert silent.is_alive()
os.write(writer, b"a,b\\n1,2\\n")
os.close(writer)
silent.join(60)
assert not silent.is_alive()
""",
        tmp_path / "pipe",
        folder,
    )


def test_handlers_of_the_user():
    run_script(
        """
class Stopped(Exception): pass
calls = []
def raising(number, frame):
    calls.append(number)
    raise Stopped("by the user's handler")
signal.signal(signal.SIGINT, raising)
interrupt_in(0.1)
try:
    endless().collect()
    raise SystemExit("not interrupted")
except Stopped as error:
    assert "user's handler" in str(error)
assert len(calls) == 1
signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
thread = interrupt_in(0.02)
df = gar.range(60_000_000).where(col("id") % 3 == 0)
assert df.count_rows() == 20_000_000  # a handler that returns lets the query go on
thread.join()
deadline = time.monotonic() + 10
while len(calls) < 2 and time.monotonic() < deadline:
    time.sleep(0.001)
assert len(calls) == 2
signal.signal(signal.SIGTERM, raising)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
try:
    endless().collect()
    raise SystemExit("not stopped")
except Stopped:
    pass
"""
    )


def test_a_second_signal_while_the_first_stops_the_query():
    run_script(
        """
calls = []
def handler(number, frame):
    calls.append(number)
    if len(calls) == 1:
        os.kill(os.getpid(), signal.SIGINT)  # the user presses again before the engine has stopped
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
for query in (endless().collect, endless().start().result, lambda: list(endless().iter_rows())):
    calls.clear()
    thread = interrupt_in(0.1)
    raised = 0
    try:
        query()
    except KeyboardInterrupt:
        raised += 1
    thread.join()
    assert (raised, len(calls)) == (1, 2), (raised, calls)
"""
    )


def test_a_result_tells_of_its_interrupt_once():
    run_script(
        """
handle = endless().start()
interrupt_in(0.1)
try:
    handle.result()
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
for _ in range(2):
    try:
        handle.result()
        raise SystemExit("a cut query gave rows")
    except gar.exceptions.GarCancelledError as error:
        assert "interrupted" in str(error)
del handle
"""
    )


def test_a_notebook_kernel_gets_one_exception():
    """As in ipykernel: cells run in the main thread inside an event loop that runs for ever."""
    run_script(
        """
import asyncio
cells = ["endless().collect()", "endless().show()", "[row for row in endless().iter_rows()]", "1 + 1",
         "gar.range(10).count_rows()"]
outcomes = []
async def kernel():
    for cell in cells:
        thread = interrupt_in(0.1) if "endless" in cell else None
        try:
            eval(cell)
            outcomes.append("done")
        except KeyboardInterrupt:
            outcomes.append("interrupted")
        if thread is not None:
            thread.join()
        await asyncio.sleep(0.01)
loop = asyncio.new_event_loop()
loop.run_until_complete(kernel())
loop.close()
assert outcomes == ["interrupted"] * 3 + ["done"] * 2, outcomes
"""
    )


def test_asyncio_run_is_interrupted():
    run_script(
        """
import asyncio
async def main():
    interrupt_in(0.1)
    return await endless().start()
try:
    asyncio.run(main())
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
"""
    )


def test_queries_of_other_threads_go_on():
    run_script(
        """
found = []
def query():
    found.append(gar.range(100_000_000).where(col("id") % 5 == 0).count_rows())
thread = threading.Thread(target=query)
sender = interrupt_in(0.05)
raised = 0
thread.start()
try:
    while True:
        time.sleep(0.001)
except KeyboardInterrupt:
    raised += 1
while not found:  # not join: interrupted, it may believe that the thread has ended
    time.sleep(0.001)
assert (raised, found) == (1, [20_000_000])
"""
    )


def test_streams_of_other_libraries_are_interrupted():
    if importlib.util.find_spec("pyarrow") is None:  # not imported here: it starts threads
        pytest.skip("no pyarrow")
    run_script(
        """
import pyarrow
interrupt_in(0.2)
try:
    pyarrow.RecordBatchReader.from_stream(endless()).read_all()
    time.sleep(10)
    raise SystemExit("not interrupted")
except (KeyboardInterrupt, pyarrow.ArrowException, OSError):
    try:
        for _ in range(200):
            time.sleep(0.001)
    except KeyboardInterrupt:
        pass
"""
    )
