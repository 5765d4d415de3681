# SPDX-License-Identifier: Apache-2.0
"""Memory of worker processes: counted, limited, and told when the kernel took it. Pools that grow."""

import os
import subprocess
import sys
import tempfile

import pytest

import gar
from gar.exceptions import GarError

pytest.importorskip("cloudpickle")
HANG_S = 120
pytestmark = pytest.mark.usefixtures("spawner")


def hoard(mib, **options):
    """A hundred rows through a worker process that holds so many MiB and takes its time."""

    @gar.cls(use_process=True, **options)
    class Hoarder:
        def __init__(self):
            self.held = b""

        @gar.method.batch(return_dtype="int64", batch_size=10)
        def take(self, a):
            import time

            if not self.held:
                self.held = b"x" * (mib << 20)
            time.sleep(0.3)
            return a

    frame = gar.range(0, 100)
    return frame.select(Hoarder().take(gar.col(frame.column_names[0])).alias("a"))


def test_a_worker_above_its_own_limit_ends_the_query():
    with pytest.raises(
        GarError, match=r"Hoarder\.take.*its process \d+ uses .* MiB .*more than the 300\.0 MiB that memory="
    ):
        hoard(400, memory="300MiB").collect()
    assert len(hoard(20, memory="300MiB").to_pydict()["a"]) == 100


def test_workers_count_in_the_query():
    """What its workers hold, the query uses; the ledger's counts are whole again afterwards."""
    code = """
import gar, tests_hoard
gar.set_execution_config(memory_limit="256MiB")
try:
    tests_hoard.hoard(400).collect()
except gar.GarError as error:
    assert "no room for: out of memory" in str(error), error
    assert "Hoarder.take" in str(error) and "its process" in str(error), error
else:
    raise AssertionError("400 MiB in 256")
assert len(tests_hoard.hoard(5).limit(10).to_pydict()["a"]) == 10
"""
    run(code)


def run(code, **options):
    """In a process of its own, which finds this file as tests_hoard."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(__file__), os.path.join(folder, "tests_hoard.py"))
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            **options,
        )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def small_group():
    """A control group of 400 MiB: the file that a process writes itself into."""
    for base, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = f"{base}/gar-test-{os.getpid()}"
        if not os.path.exists(f"{base}/cgroup.procs"):
            continue
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            with open(f"{path}/{limit}", "w") as file:
                file.write(str(400 << 20))
        except OSError:
            os.rmdir(path)
            continue
        yield f"{path}/cgroup.procs"
        os.rmdir(path)
        return
    pytest.skip("no control group can be made here")


def test_the_kernels_out_of_memory_is_told(small_group):
    code = f"""
import os
with open({small_group!r}, "w") as file:
    file.write(str(os.getpid()))
import gar, tests_hoard
try:
    tests_hoard.hoard(900).collect()
except gar.GarError as error:
    assert "was killed by the kernel: out of memory" in str(error), error
    assert "Hoarder.take" in str(error), error
else:
    raise AssertionError("900 MiB in 400")
"""
    run(code)


def test_pools_grow_when_batches_wait():
    """'auto' is one process while that is quick enough, and more when batches wait for it."""

    def pids(seconds, rows):
        @gar.cls(max_concurrency="auto", cpus=0.25)
        class Sleeper:
            @gar.method.batch(return_dtype="int64", batch_size=1)
            def work(self, a):
                import time

                time.sleep(seconds)
                return [os.getpid()]

        frame = gar.range(0, rows)
        column = Sleeper().work(gar.col(frame.column_names[0])).alias("p")
        return set(frame.select(column).to_pydict()["p"])

    assert len(pids(0, 20)) == 1
    assert len(pids(0.7, 10)) > 1
