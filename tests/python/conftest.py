# SPDX-License-Identifier: Apache-2.0
"""What every Python test shares: data folders, the settings of the run, and the census.

The engine reads its own settings from the environment (tools/run_tests.py sets them): GAR_MORSEL_ROWS,
GAR_INLINE, GAR_NUM_THREADS, GAR_ISA. The tests read:
  GAR_TEST_EXAMPLES=N    hypothesis examples per property
  GAR_TEST_SEED=N        seed of hypothesis and of the `rng` fixture
  GAR_TEST_LONG=1        `make test-long`

The census compares threads, descriptors, child processes, shared memory and the engine's own bytes
before and after each test. A difference that does not settle within SETTLE_S is a failure of that
test. Tests that leave something on purpose are marked no_census and say why.
"""

import gc
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / ".cache" / "data"
CORPORA = Path(os.environ.get("GAR_TEST_CORPORA", ROOT.parent / "shared" / "corpora"))
SETTLE_S = 5.0
# The pools keep queues and a small node for each span held for reuse, so the heap may grow a little in
# a test; over the whole session it must stay within HEAP_SESSION_BYTES.
HEAP_SLACK_BYTES = 512
HEAP_SESSION_BYTES = 64 * 1024
SPAN_BYTES_MIN = 64 * 1024
SPAN_NODE_BYTES = 48

# Threads of the engine's pools start on first use and stay; they are bounded, not compared.
POOL_NAMES = ("Compute-Thread", "IO-Thread", "Query-Loop", "Python-Thread", "Python-Async", "Actor-Spawn")
# Libraries that tests compare with start threads and open descriptors of their own.
FOREIGN = ("pyarrow", "duckdb", "polars", "pandas")
FOREIGN_THREADS = ("async-executor", "jemalloc", "tokio", "polars", "rayon", "mimalloc")

os.environ.setdefault("POLARS_MAX_THREADS", "2")
# What is kept on purpose would be a difference to the census; test_rows.py tests it in a process of its own.
os.environ["GAR_FOOTER_CACHE"] = "0"

import gar  # noqa: E402 (the environment comes first)

try:
    from gar import _native
except ImportError:
    _native = None


def pytest_configure(config):
    # A shell that starts the tests in the background has SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = int(os.environ.get("GAR_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    os.environ["GAR_TEST_SEED"] = str(seed)
    try:
        import hypothesis
    except ImportError:
        return
    hypothesis.settings.register_profile(
        "gar",
        max_examples=int(os.environ.get("GAR_TEST_EXAMPLES", "60")),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
    )
    hypothesis.settings.load_profile("gar")
    if hasattr(hypothesis, "seed"):
        config.option.hypothesis_seed = str(seed)


def pytest_report_header(config):
    names = ("GAR_TEST_SEED", "GAR_MORSEL_ROWS", "GAR_INLINE", "GAR_NUM_THREADS", "GAR_ISA")
    return "gar: " + ", ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)


@pytest.fixture(scope="session", autouse=True)
def warm_engine():
    """Start the pools, so that their threads and descriptors are there before the first count."""
    gar.from_pydict({"a": list(range(10))}).where(gar.col("a") > 3).collect()
    gar.range(0, 300_000).where(gar.col("id") > 3).count_rows()
    gc.collect()
    before = engine_statistics()
    yield
    gc.collect()
    after = engine_statistics()
    grown = after["heap_live_bytes"] - before["heap_live_bytes"]
    assert grown <= HEAP_SESSION_BYTES, f"the engine's heap grew by {grown} bytes over all tests"


@pytest.fixture(scope="session")
def spawner():
    """What the first pool of worker processes starts stays: modules that use pools have it before their first census."""
    first = gar.func(lambda a: a, return_dtype="int64", use_process=True)
    gar.from_pydict({"a": [1]}).select(first(gar.col("a"))).collect()


def thread_names():
    """How many threads bear each name, pool threads apart."""
    names = {}
    for task in os.listdir("/proc/self/task"):
        try:
            name = Path(f"/proc/self/task/{task}/comm").read_text().strip()
        except OSError:
            continue
        if not name.startswith(POOL_NAMES):
            names[name] = names.get(name, 0) + 1
    return names


def open_descriptors():
    """What each open descriptor points to, as a sorted list."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}").split("[")[0])
        except OSError:
            continue
    return sorted(found)


def child_processes():
    children = []
    for task in os.listdir("/proc/self/task"):
        try:
            children += Path(f"/proc/self/task/{task}/children").read_text().split()
        except OSError:
            continue
    return sorted(children)


def engine_statistics():
    """What the engine counts itself, where the extension tells: bytes alive and queries running."""
    read = getattr(_native, "statistics", None)
    found = read() if read is not None else {}
    keys = ("memory_live_bytes", "memory_held_bytes", "heap_live_bytes", "queries")
    return {key: found.get(key, 0) for key in keys}


def shared_memory():
    try:
        return sorted(name for name in os.listdir("/dev/shm") if "gar" in name)
    except OSError:
        return []


def take_census():
    return {
        "threads": thread_names(),
        # A dummy stands for an engine's thread on which Python code asked for its name.
        "python threads": sorted(t.name for t in threading.enumerate() if not t.name.startswith("Dummy-")),
        "descriptors": open_descriptors(),
        "children": child_processes(),
        "shared memory": shared_memory(),
        **engine_statistics(),
    }


def census_faults(before, after, is_foreign):
    """What grew, as text. Counts may shrink: garbage of earlier tests goes at any time."""
    faults = []
    for name, count in after["threads"].items():
        is_theirs = is_foreign and (name == own_thread_name() or name.startswith(FOREIGN_THREADS))
        if count > before["threads"].get(name, 0) and not is_theirs:
            faults.append(f"threads named {name}: {before['threads'].get(name, 0)} before, {count} after")
    for key in ("python threads", "children", "shared memory"):
        extra = list(after[key])
        for item in before[key]:
            if item in extra:
                extra.remove(item)
        if extra:
            faults.append(f"{key}: {', '.join(extra)} left over")
    extra = list(after["descriptors"])
    for item in before["descriptors"]:
        if item in extra:
            extra.remove(item)
    if extra and len(after["descriptors"]) > len(before["descriptors"]) and not is_foreign:
        faults.append(f"descriptors left open: {', '.join(extra)}")
    # The pool has a small block for each span of memory that it holds for reuse.
    spans = max(0, after["memory_held_bytes"] - before["memory_held_bytes"]) // SPAN_BYTES_MIN
    heap_slack = HEAP_SLACK_BYTES + spans * SPAN_NODE_BYTES
    for key, slack in (("memory_live_bytes", 0), ("heap_live_bytes", heap_slack), ("queries", 0)):
        if after[key] > before[key] + slack:
            faults.append(f"{key}: {before[key]} before, {after[key]} after")
    return faults


def own_thread_name():
    return Path("/proc/self/comm").read_text().strip()


def uses_foreign(module):
    return any(getattr(value, "__name__", "").split(".")[0] in FOREIGN for value in vars(module).values())


@pytest.fixture(autouse=True)
def census(request, warm_engine):
    if request.node.get_closest_marker("no_census"):
        yield
        return
    gc.collect()
    before = take_census()
    yield
    # Drop what the finished test still holds: its fixtures' values and the last traceback.
    request.node.funcargs.clear()
    sys.last_value = sys.last_traceback = None
    foreign = uses_foreign(request.module)
    deadline = time.monotonic() + SETTLE_S
    while True:
        gc.collect()
        faults = census_faults(before, take_census(), foreign)
        if not faults or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    # A failing test keeps its frame alive: its leak says nothing.
    if faults and not getattr(request.node, "call_failed", False):
        pytest.fail("census: " + "; ".join(faults), pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if call.when == "call" and report.failed:
        item.call_failed = True


@pytest.fixture
def rng():
    """A generator whose seed is printed in the header and can be given."""
    return random.Random(int(os.environ["GAR_TEST_SEED"]))


@pytest.fixture(scope="session")
def tpch():
    """The folder of TPC-H Parquet files at scale factor 0.1."""
    folder = DATA / "tpch-0.1"
    if not (folder / "lineitem.parquet").exists():
        pytest.fail(f"no {folder}: run tools/make_data.py test")
    return folder


@pytest.fixture(scope="session")
def corpora():
    """The folder of outside test files beside the repository; tests that need it skip without it."""
    if not CORPORA.is_dir():
        pytest.skip(f"no corpora at {CORPORA} (set GAR_TEST_CORPORA)")
    return CORPORA
