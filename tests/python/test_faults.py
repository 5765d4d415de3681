# SPDX-License-Identifier: Apache-2.0
"""Faults from outside: full disks, few descriptors, memory that runs out at random, jumping clocks, busy machines, misuse.
docs/reliability.md lists which fault is tested where."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gar
from gar import col

ROOT = Path(__file__).resolve().parents[2]
CLI = os.environ.get("GAR_CLI", str(ROOT / "build" / "release" / "cli" / "gar"))
HANG_S = 120
LONG = os.environ.get("GAR_TEST_LONG") == "1"


def run_python(code, *args, prefix=(), **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GAR_")}
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        env=inherited | environment,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def preload(tmp_path_factory):
    """A library that lets parts of the C library fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("preload") / "preload.so"
    source = ROOT / "tests" / "faults" / "preload.c"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True, timeout=HANG_S
    )
    return str(made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("faults")
    df = gar.range(120_000).select(
        col("id"),
        (gar.lit("t") + (col("id") * 7919 % 5000).cast("string")).alias("text"),
        (col("id") * 0.5).alias("x"),
    )
    for codec in ("zstd", "snappy", "gzip", "brotli", "lz4_raw"):
        df.write_parquet(
            made / f"{codec}.parquet", compression=codec, single_file=True, row_group_rows=30_000
        )
    df.write_csv(made / "plain.csv", single_file=True)
    return made


# ---- disks


FULL_DISK = """
import os, resource, sys
import gar
from gar import col
target = sys.argv[1]
df = gar.range(2_000_000).with_column("x", col("id") * 2654435761 % 1000003)
gar.range(10).write_parquet(target)
before = sorted(os.listdir(target))
code = int(sys.argv[2])
if code == 27:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for write in (df.write_parquet, df.write_csv):
    try:
        write(target, write_mode="overwrite")
        raise SystemExit("nothing failed")
    except gar.exceptions.GarIOError as error:
        assert isinstance(error, OSError) and error.errno == code, (error.errno, error)
        assert target in str(error), error
    assert sorted(os.listdir(target)) == before
    assert gar.read_parquet(target).count_rows() == 10
"""


def test_a_file_that_grows_beyond_its_limit(tmp_path):
    run_python(FULL_DISK, tmp_path / "out", 27)


def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs more rights")
    try:
        run_python(FULL_DISK, disk / "out", 28)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_output_to_a_full_device(folder):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [CLI, "head", "--limit", "100000", "--format", "csv", folder / "zstd.parquet"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=HANG_S,
            check=False,
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr


# ---- limits of the process


def test_few_descriptors(tmp_path):
    for number in range(300):
        gar.range(number, number + 3).write_parquet(tmp_path / "in" / f"{number}.parquet", single_file=True)
    out = run_python(
        """
import resource, sys
import gar
from gar import col
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
df = gar.read_parquet(sys.argv[1])
print(df.count_rows(), df.where(col("id") >= 0).count_rows(), len(df.sort("id").to_pydict()["id"]))
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError:
    pass
try:
    df.where(col("id") > 5).count_rows()
    raise SystemExit("nothing failed")
except gar.exceptions.GarIOError as error:
    assert error.errno == 24, error
del held
print(df.where(col("id") >= 0).count_rows())
""",
        tmp_path / "in",
    )
    assert out.split() == ["900", "900", "900", "900"]


# ---- memory that runs out at random


@pytest.mark.parametrize(
    "command",
    [
        ("count",),
        ("head", "--limit", "100000", "--format", "csv"),
        ("head", "--where", "x > 100 and text like '%77%'", "--format", "json"),
        ("describe",),
    ],
    ids=["count", "head", "where", "describe"],
)
def test_memory_fails_at_random(preload, folder, command):
    rng = random.Random(int(os.environ["GAR_TEST_SEED"]))
    files = [folder / f"{codec}.parquet" for codec in ("zstd", "snappy", "gzip", "brotli", "lz4_raw")]
    files.append(folder / "plain.csv")
    right, failed = {}, 0
    for turn in range(300 if LONG else 60):
        file = files[turn % len(files)]
        if file not in right:
            right[file] = subprocess.run([CLI, *command, file], capture_output=True, check=True).stdout
        chance = rng.choice((10, 100, 1000))
        seed = rng.randrange(1 << 31)
        done = subprocess.run(
            [CLI, *command, file],
            capture_output=True,
            env={**os.environ, "LD_PRELOAD": preload, "FAULT_MALLOC": f"{seed}:{chance}"},
            timeout=HANG_S,
            check=False,
        )
        said = f"{file.name}, FAULT_MALLOC={seed}:{chance}: {done.returncode}, {done.stderr[-400:]!r}"
        assert done.returncode in (0, 1), said
        if done.returncode == 0:
            assert done.stdout == right[file], said
        else:
            failed += 1
            assert done.stderr.startswith(b"gar: "), said
    assert failed > 0


# ---- clocks


def test_the_time_of_day_jumps(preload):
    run_python(
        """
import gar
from gar import col
endless = gar.range(1 << 45).agg((col("id") % 7).sum())
for _ in range(3):
    try:
        endless.collect(timeout=0.1)
        raise SystemExit("no deadline")
    except gar.exceptions.GarTimeoutError:
        pass
    handle = endless.start()
    try:
        handle.result(timeout=0.05)
        raise SystemExit("no deadline")
    except TimeoutError:
        handle.cancel()
    assert gar.range(3_000_000).where(col("id") % 2 == 0).count_rows() == 1_500_000
    assert gar.range(300_000).where(col("id") % 2 == 0).start(timeout=3600).result().count_rows() == 150_000
""",
        LD_PRELOAD=preload,
        FAULT_CLOCK="1",
    )


# ---- a busy machine


def test_one_cpu_that_others_want():
    hogs = [
        subprocess.Popen(
            [sys.executable, "-c", "import os\nos.nice(10)\nwhile True: pass"], stdout=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    try:
        run_python(
            """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import threading
import gar
from gar import col
gar.set_runner_native(num_threads=4, io_threads=2, compute_nice=19)
wrong = []
def work(n):
    for k in range(15):
        df = gar.range(200_000).with_column("k", col("id") % n).groupby("k").agg(col("id").count())
        if len(df.to_pydict()["k"]) != n:
            wrong.append((n, k))
threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
"""
        )
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


# ---- misuse


def test_one_plan_from_eight_threads():
    df = gar.range(300_000).with_column("k", col("id") % 10).groupby("k").agg(col("id").sum()).sort("k")
    expected = df.to_pydict()
    fresh = gar.range(300_000).with_column("k", col("id") % 10).groupby("k").agg(col("id").sum()).sort("k")
    found = []
    threads = [threading.Thread(target=lambda: found.append(fresh.to_pydict())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert found == [expected] * 8


def test_a_result_read_by_two_threads():
    result = gar.range(1 << 45).agg(col("id").sum())._run()
    errors = []

    def read():
        try:
            next(result)
        except gar.GarError as error:
            errors.append(error)

    first = threading.Thread(target=read)
    first.start()
    while not errors:  # the second is refused, whichever it is
        second = threading.Thread(target=read)
        second.start()
        second.join(0.2)
        if second.is_alive():
            break
    result.cancel()
    result.cancel()
    first.join(HANG_S)
    second.join(HANG_S)
    assert any(isinstance(error, gar.exceptions.GarCancelledError) for error in errors)
    assert any("another thread" in str(error) or "cancelled" in str(error) for error in errors)
    with pytest.raises(gar.exceptions.GarCancelledError):
        next(result)


def test_an_iterator_closed_by_another_thread():
    iterator = gar.range(1 << 45).where(col("id") >= 0).iter_rows()
    next(iterator)
    stop = threading.Event()

    def close():
        while not stop.is_set():
            try:
                iterator.close()
                return
            except ValueError:  # it is just running
                continue

    thread = threading.Thread(target=close)
    thread.start()
    try:
        for _ in iterator:
            pass
    finally:
        stop.set()
        thread.join(HANG_S)
    assert gar.range(10).count_rows() == 10


def test_import_in_a_subinterpreter():
    out = run_python(
        """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        print("none")
        raise SystemExit(0)
import gar
made = interpreters.create()
code = '''
try:
    import gar
    assert gar.range(10).count_rows() == 10
    assert gar.range(300_000).where(gar.col("id") % 2 == 0).count_rows() == 150_000
except ImportError:
    pass
'''
result = interpreters.run_string(made, code)
assert result is None, result
interpreters.destroy(made)
assert gar.range(300_000).where(gar.col("id") % 2 == 0).count_rows() == 150_000
print("good")
"""
    )
    assert out.split()[-1] in ("good", "none")


# ---- a second fault while the first is handled


def test_interrupts_while_a_write_fails(tmp_path):
    run_python(
        """
import os, random, resource, signal, sys, threading, time
import gar
from gar import col
signal.signal(signal.SIGINT, signal.default_int_handler)
target = sys.argv[1]
rng = random.Random(int(sys.argv[2]))
gar.range(10).write_parquet(target)
before = sorted(os.listdir(target))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))
df = gar.range(1_000_000).with_column("x", col("id") * 2654435761 % 1000003)
outcomes = {"interrupted": 0, "failed": 0}
for _ in range(25):
    def send(after=rng.uniform(0, 0.05)):
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
    try:
        try:
            df.write_parquet(target, write_mode="overwrite")
            raise SystemExit("nothing failed")
        except gar.exceptions.GarIOError as error:
            assert error.errno == 27, error
            outcomes["failed"] += 1
        while True:
            time.sleep(0.001)
    except KeyboardInterrupt:
        outcomes["interrupted"] += 1
    limit = time.monotonic() + 30
    while sorted(os.listdir(target)) != before or gar._native.statistics()["queries"] > 0:
        assert time.monotonic() < limit, os.listdir(target)
        time.sleep(0.001)
    assert gar.range(300_000).where(col("id") % 2 == 0).count_rows() == 150_000
assert outcomes["interrupted"] == 25
print(outcomes)
""",
        tmp_path / "out",
        os.environ["GAR_TEST_SEED"],
    )


def test_sigterm_runs_the_hosts_handler():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            """
import os, signal, sys, threading
import gar
from gar import col
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
gar.range(1 << 45).agg(col("id").sum()).collect()
""",
        ],
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 7
    plain = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import gar\nprint('go', flush=True)\ngar.range(1 << 45).agg(gar.col('id').sum()).collect()",
        ],
        stdout=subprocess.PIPE,
    )
    assert plain.stdout.readline() == b"go\n"
    plain.send_signal(signal.SIGTERM)
    assert plain.wait(HANG_S) == -signal.SIGTERM
    plain.stdout.close()
