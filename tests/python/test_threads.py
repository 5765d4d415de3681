# SPDX-License-Identifier: Apache-2.0
"""Threads: how many, how they are called and scheduled; open iterators, an idle engine, forks, several queries at once."""

import gc
import importlib.util
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import gar
from gar import col

ROOT = Path(__file__).resolve().parents[2]
HANG_S = 60
POOLS = ("Compute-Thread", "IO-Thread", "Query-Loop")


def run_python(code, *args, **environment):
    """Standard output of a fresh process; the settings of this run do not reach it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GAR_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        env=inherited | environment,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# What the scripts below start with.
HEAD = """
import collections, os, sys, time
import gar
from gar import col

def threads():
    own = open("/proc/self/comm").read().strip()
    for _ in range(1000):  # a thread names itself when it first runs
        names = collections.Counter()
        for task in os.listdir("/proc/self/task"):
            name = open(f"/proc/self/task/{task}/comm").read().strip()
            names["other" if task == str(os.getpid()) else name.rstrip("0123456789-")] += 1
        if own.rstrip("0123456789-") not in names:
            break
        time.sleep(0.005)
    return dict(names)

def work():
    assert gar.range(1_000_000).where(col("id") % 2 == 0).count_rows() == 500_000
"""


# ---- the pools


def test_import_and_small_queries_start_no_thread():
    out = run_python(
        HEAD + "gar.from_pydict({'a': [1, 2]}).where(col('a') > 1).collect(); print(sum(threads().values()))"
    )
    assert out == "1\n"


def test_pools_have_the_sizes_asked_for():
    code = HEAD + "gar.set_runner_native(num_threads=3, io_threads=2)\nwork()\nprint(threads())"
    assert eval(run_python(code)) == {"other": 1, "Compute-Thread": 3, "IO-Thread": 2, "Query-Loop": 1}
    code = HEAD + "work()\nprint(threads())"
    found = eval(run_python(code, GAR_NUM_THREADS="5", GAR_IO_THREADS="1"))
    assert found == {"other": 1, "Compute-Thread": 5, "IO-Thread": 1, "Query-Loop": 1}


def test_pools_follow_the_affinity_mask():
    first = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{first}}})\n" + HEAD + "work()\nprint(threads())"
    found = eval(run_python(code))
    assert found == {"other": 1, "Compute-Thread": 1, "IO-Thread": 1, "Query-Loop": 1}


def test_pools_may_change_between_queries():
    code = (
        HEAD
        + """
for count in (1, 4, 2):
    gar.set_runner_native(num_threads=count)
    work()
    assert threads()["Compute-Thread"] == count, threads()
rows = gar.range(1 << 40).iter_rows()
next(rows)
try:
    gar.set_runner_native(num_threads=3)
except gar.GarError as error:
    print(error)
rows.close()
"""
    )
    assert "cannot change while queries run" in run_python(code)


PRIORITIES = (
    HEAD
    + """
work()
for task in os.listdir("/proc/self/task"):
    name = open(f"/proc/self/task/{task}/comm").read().strip()
    print(name.rstrip("0123456789-"), os.getpriority(os.PRIO_PROCESS, int(task)) - os.getpriority(os.PRIO_PROCESS, 0),
          os.sched_getscheduler(int(task)) == os.SCHED_BATCH)
"""
)


def read_priorities(out):
    return {(name, int(nice), batch == "True") for name, nice, batch in map(str.split, out.splitlines())}


def test_priorities_of_pools():
    setting = "\ngar.set_runner_native(num_threads=2, compute_nice=3, io_nice=5, compute_batch=True)"
    by_call = read_priorities(run_python(PRIORITIES.replace("\nwork()", setting + "\nwork()", 1)))
    assert ("Compute-Thread", 3, True) in by_call
    assert ("IO-Thread", 5, False) in by_call
    assert ("Query-Loop", 0, False) in by_call
    by_environment = read_priorities(
        run_python(PRIORITIES, GAR_COMPUTE_NICE="2", GAR_IO_NICE="1", GAR_COMPUTE_BATCH="1")
    )
    assert ("Compute-Thread", 2, True) in by_environment
    assert ("IO-Thread", 1, False) in by_environment
    plain = read_priorities(run_python(PRIORITIES))
    assert {("Compute-Thread", 0, False), ("IO-Thread", 0, False)} <= plain


def test_bad_pool_settings():
    for wrong in ({"num_threads": -1}, {"num_threads": 5000}, {"compute_nice": 20}, {"io_nice": -21}):
        with pytest.raises(ValueError, match=r"threads must be|must not be negative"):
            gar.set_runner_native(**wrong)
    with pytest.raises((OverflowError, ValueError)):
        gar.set_runner_native(io_threads=1 << 40)
    with pytest.raises(TypeError):
        gar.set_runner_native(io_threads="many")


# ---- open iterators


def pool_threads():
    count = 0
    for task in os.listdir("/proc/self/task"):
        try:
            count += Path(f"/proc/self/task/{task}/comm").read_text().startswith(POOLS)
        except OSError:
            continue
    return count


def test_thread_count_example():
    for name in ("numpy", "psutil"):  # not imported here: numpy starts threads
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"no {name}")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "thread_count.py")],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = done.stdout.split()
    assert len(counts) == 100
    assert len(set(counts)) == 1


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A file of many row groups: far above what runs inline."""
    folder = tmp_path_factory.mktemp("threads")
    gar.range(400_000).with_column("x", col("id") * 3).write_parquet(
        folder / "a.parquet", row_group_rows=20_000
    )
    for _ in range(3):  # what the engine keeps of a file that is read again is kept before any census
        list(gar.read_parquet(str(folder / "a.parquet")).where(col("id") % 100_000 == 1).iter_rows())
    return folder / "a.parquet"


def in_memory(number, parquet):
    df = gar.from_pydict({"a": [number, number + 1, number + 2]}).with_column("b", col("a") + 1)
    return df, [{"a": number + k, "b": number + k + 1} for k in range(3)]


def filtered_scan(number, parquet):
    df = gar.read_parquet(str(parquet)).where(col("id") % 100_000 == number % 100_000)
    return df, [{"id": k, "x": 3 * k} for k in range(number % 100_000, 400_000, 100_000)]


@pytest.mark.parametrize(
    ("make", "inline", "count"),
    [
        (in_memory, True, 10),
        (in_memory, True, 1000),
        (in_memory, False, 10),
        (in_memory, False, 1000),
        (filtered_scan, True, 10),
        (filtered_scan, True, 1000),
    ],
)
def test_open_iterators_need_no_thread(make, inline, count, parquet):
    with gar.execution_config_ctx(enable_inline=inline):
        alone, _ = make(0, parquet)
        next(alone.iter_rows())
        before = pool_threads()
        made = [make(number, parquet) for number in range(count)]
        iterators = [df.iter_rows() for df, _ in made]
        rows = [[next(iterator)] for iterator in iterators]
        assert pool_threads() == before
        for got, iterator in zip(rows, iterators, strict=True):
            got.append(next(iterator))
        assert pool_threads() == before
        assert rows == [expected[:2] for _, expected in made]
        for number in range(0, count, 7):
            assert rows[number] + list(iterators[number]) == made[number][1]
        assert pool_threads() == before


# ---- dropping


def drop_in_a_thread(holder):
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()


def drop_in_a_cycle(holder):
    cycle = {"iterator": holder.pop()}
    cycle["self"] = cycle
    del cycle
    thread = threading.Thread(target=gc.collect)  # collected on another thread
    thread.start()
    thread.join()


@pytest.mark.parametrize("drop", [list.clear, drop_in_a_thread, drop_in_a_cycle])
@pytest.mark.parametrize("rows_read", [0, 1, 70_000])
def test_a_dropped_iterator_stops_its_query(drop, rows_read):
    iterator = gar.range(1 << 45).where(col("id") % 3 == 0).iter_rows()
    for number in range(rows_read):
        assert next(iterator) == {"id": 3 * number}
    holder = [iterator]
    del iterator
    drop(holder)
    limit = time.monotonic() + HANG_S
    while gar._native.statistics()["queries"] > 0:
        assert time.monotonic() < limit
        time.sleep(0.001)


def test_iterators_that_are_open_at_exit():
    code = (
        HEAD
        + """
class Held: pass
kept = [gar.range(1 << 45).iter_rows() for _ in range(20)]
for rows in kept: next(rows)
held = Held(); held.me = held; held.rows = gar.range(1 << 45).iter_rows(); next(held.rows)
sys.modules["kept_for_ever"] = kept
handle = gar.range(1 << 45).agg(col("id").sum()).start()
print("end")
"""
    )
    assert run_python(code) == "end\n"


# ---- idle


def switches_of_pools():
    """Context switches of every engine thread."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        text = Path(f"/proc/self/task/{task}/status").read_text()
        if text.split("\n")[0].split("\t")[1].startswith(POOLS):
            found[task] = sum(map(int, re.findall(r"ctxt_switches:\t(\d+)", text)))
    return found


def test_an_idle_engine_never_wakes_up(parquet):
    scan = gar.read_parquet(str(parquet)).where(col("x") % 2 == 0)
    iterators = [gar.range(1 << 45).iter_rows() for _ in range(5)] + [scan.iter_rows() for _ in range(5)]
    for iterator in iterators:
        next(iterator)
    handle = scan.start(timeout=3600)
    handle.result()
    limit = time.monotonic() + HANG_S
    while True:  # until the queues are full
        before = switches_of_pools()
        time.sleep(0.3)
        if switches_of_pools() == before:
            break
        assert time.monotonic() < limit
    assert len(before) >= 3
    time.sleep(1)
    assert switches_of_pools() == before


def test_a_slow_consumer_stops_the_producer():
    result = gar.range(1 << 45).where(col("id") % 2 == 0)._run()
    next(result)
    limit = time.monotonic() + HANG_S
    seen = result.progress()["rows"]
    while True:
        time.sleep(0.2)
        now = result.progress()["rows"]
        if now == seen:
            break
        seen = now
        assert time.monotonic() < limit
    assert result.progress()["state"] == "running"
    assert seen < 50_000_000
    assert result.progress()["memory_bytes"] < 256 << 20
    for _ in range(200):
        next(result)
    assert result.progress()["rows"] > seen


# ---- several queries


@pytest.mark.settings
def test_a_query_inside_the_loop_of_another():
    total = 0
    for row in gar.range(300).with_column("n", col("id") % 5).iter_rows():
        inner = gar.range(row["n"] + 1).agg(col("id").sum()).to_pydict()["id"][0]
        for third in gar.range(200).where(col("id") < row["n"]).iter_rows():
            total += third["id"]
        total += inner
    assert total == 60 * sum(sum(range(n + 1)) + sum(range(n)) for n in range(5))


def test_eight_threads_on_a_pool_of_two():
    code = (
        HEAD
        + """
import threading
gar.set_runner_native(num_threads=2)
found = []
def query(n):
    for _ in range(5):
        df = gar.range(500_000).with_column("k", col("id") % n).groupby("k").agg(col("id").sum())
        found.append((n, sorted(df.to_pydict()["k"]) == list(range(n))))
many = [threading.Thread(target=query, args=(n,)) for n in range(1, 9)]
for thread in many: thread.start()
for thread in many: thread.join()
assert len(found) == 40 and all(ok for _, ok in found)
print(threads()["Compute-Thread"])
"""
    )
    assert run_python(code) == "2\n"


def test_the_same_plan_runs_many_times_at_once(parquet):
    df = gar.read_parquet(str(parquet)).where(col("id") % 7 == 0).sort("x", desc=True).limit(50)
    iterators = [df.iter_rows() for _ in range(4)]
    expected = [{"id": k, "x": 3 * k} for k in range(399_994, 0, -7)][:50]
    assert [list(rows) for rows in zip(*iterators, strict=True)] == [[row] * 4 for row in expected]
    results = []
    threads = [threading.Thread(target=lambda: results.append(list(df.iter_rows()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert results == [expected] * 8


# ---- fork


def child_checks(queue, frame, iterator, handle):
    try:
        refused = 0
        for read in (lambda: next(iterator), handle.result, lambda: list(frame._parents_result)):
            try:
                read()
            except gar.exceptions.GarUnsupportedError as error:
                refused += "fork" in str(error)
        rows = frame.df.where(col("a") > 1).to_pydict()
        count = gar.range(2_000_000).where(col("id") % 2 == 0).count_rows()
        queue.put((refused, rows, count))
    except BaseException as error:
        queue.put(repr(error))


class Shared:
    """What a forked child finds."""


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("is_read", [False, True])
def test_fork_while_queries_run(is_read):
    context = multiprocessing.get_context("fork")
    shared = Shared()
    shared.df = gar.from_pydict({"a": [1, 2, 3]})
    shared._parents_result = shared.df.where(col("a") > 1)._run()  # inline
    iterator = gar.range(1 << 45)._run()
    handle = gar.range(1 << 45).agg(col("id").sum()).start()
    if is_read:
        next(iterator)
        next(shared._parents_result)
    for _ in range(5):
        queue = context.SimpleQueue()
        child = context.Process(target=child_checks, args=(queue, shared, iterator, handle))
        child.start()
        assert queue.get() == (3, {"a": [2, 3]}, 1_000_000)
        child.join(HANG_S)
        assert child.exitcode == 0
        queue.close()
    next(iterator)  # the parent goes on
    assert handle.progress().state == "running"
    assert gar.range(300_000).where(col("id") >= 0).count_rows() == 300_000


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork_while_threads_start_queries():
    stop = threading.Event()

    def query():
        while not stop.is_set():
            gar.range(200_000).where(col("id") % 2 == 0).count_rows()

    threads = [threading.Thread(target=query) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    status = 0 if gar.range(200_000).where(col("id") % 2 == 0).count_rows() == 100_000 else 2
                finally:
                    os._exit(status)
            limit = time.monotonic() + HANG_S
            while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0):
                assert time.monotonic() < limit, "the child hangs"
                time.sleep(0.002)
            assert done[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
