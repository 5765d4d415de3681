# SPDX-License-Identifier: Apache-2.0
"""What every Python test shares: data folders, the settings of the run, and the census.

Settings come from the environment (tools/run_tests.py sets them):
  GAR_TEST_MORSEL=N      default_morsel_size for every test
  GAR_TEST_INLINE=0      no query runs inline on the calling thread
  GAR_TEST_THREADS=N     compute threads
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
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / ".cache" / "data"
CORPORA = Path(os.environ.get("GAR_TEST_CORPORA", ROOT.parent / "shared" / "corpora"))
SETTLE_S = 5.0

# Threads of the engine's pools start on first use and stay; they are bounded, not compared.
POOL_NAMES = ("Compute-Thread", "IO-Thread", "Query-Loop")
# Libraries that tests compare with start unnamed threads and open descriptors of their own.
FOREIGN = ("pyarrow", "duckdb", "polars", "pandas", "numpy", "daft")

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import gar  # noqa: E402 (the environment comes first)

try:
    from gar import _native
except ImportError:
    _native = None


def pytest_configure(config):
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
    names = ("GAR_TEST_SEED", "GAR_TEST_MORSEL", "GAR_TEST_INLINE", "GAR_TEST_THREADS", "GAR_ISA")
    return "gar: " + ", ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)


@pytest.fixture(scope="session", autouse=True)
def run_settings():
    """Apply GAR_TEST_THREADS, GAR_TEST_MORSEL and GAR_TEST_INLINE through the public settings."""
    if "GAR_TEST_THREADS" in os.environ:
        gar.set_runner_native(num_threads=int(os.environ["GAR_TEST_THREADS"]))
    apply_execution_settings()
    # The pools start here, so that their threads and descriptors are there before the first count.
    gar.from_pydict({"a": list(range(10))}).where(gar.col("a") > 3).collect()
    yield


def apply_execution_settings():
    if "GAR_TEST_MORSEL" in os.environ:
        gar.set_execution_config(default_morsel_size=int(os.environ["GAR_TEST_MORSEL"]))


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


def engine_bytes():
    """Bytes alive in the engine, where the extension tells."""
    count = getattr(_native, "live_bytes", None)
    return count() if count is not None else 0


def engine_handles():
    """Objects alive in the engine (queries, streams, plans), where the extension tells."""
    count = getattr(_native, "live_handles", None)
    return count() if count is not None else 0


def shared_memory():
    try:
        return sorted(name for name in os.listdir("/dev/shm") if "gar" in name)
    except OSError:
        return []


def take_census():
    return {
        "threads": thread_names(),
        "python threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": open_descriptors(),
        "children": child_processes(),
        "shared memory": shared_memory(),
        "engine bytes": engine_bytes(),
        "engine objects": engine_handles(),
    }


def census_faults(before, after, is_foreign):
    """What grew, as text. Counts may shrink: garbage of earlier tests goes at any time."""
    faults = []
    for name, count in after["threads"].items():
        unnamed = name == own_thread_name()
        if count > before["threads"].get(name, 0) and not (unnamed and is_foreign):
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
    for key in ("engine bytes", "engine objects"):
        if after[key] > before[key]:
            faults.append(f"{key}: {before[key]} before, {after[key]} after")
    return faults


def own_thread_name():
    return Path("/proc/self/comm").read_text().strip()


def uses_foreign(module):
    return any(getattr(value, "__name__", "").split(".")[0] in FOREIGN[:4] for value in vars(module).values())


@pytest.fixture(autouse=True)
def census(request, run_settings):
    if request.node.get_closest_marker("no_census"):
        yield
        return
    gc.collect()
    before = take_census()
    yield
    # Drop what the failed or finished test still holds through the last traceback.
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
