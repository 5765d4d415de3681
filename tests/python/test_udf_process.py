# SPDX-License-Identifier: Apache-2.0
"""User functions in worker processes: placement, failures, retries, stopping; nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import gar
from gar import col
from gar.exceptions import GarCallbackError, GarError

pytest.importorskip("cloudpickle")
HANG_S = 60


pytestmark = pytest.mark.usefixtures("spawner")


def numbers(count=100):
    return gar.range(0, count).select(col(gar.range(0, 1).column_names[0]).alias("a"))


def values(frame, name="a"):
    return frame.to_pydict()[name]


def model(**options):
    @gar.cls(**options)
    class Model:
        def __init__(self, by=10):
            self.by = by
            self.calls = 0

        def add(self, a: int) -> int:
            return a + self.by

        @gar.method.batch(return_dtype="string", batch_size=10)
        def who(self, a):
            self.calls += 1
            return [f"{os.getpid()} {len(a)} {os.environ.get('CUDA_VISIBLE_DEVICES')}"] * len(a)

        @gar.method.batch(return_dtype="int64", batch_size=10)
        def check(self, a):
            if 37 in a.to_pylist():
                raise ValueError("thirty-seven")
            return a

        @gar.method.batch(return_dtype="int64", batch_size=10)
        def leave(self, a):
            if 37 in a.to_pylist():
                os._exit(7)
            return a

        @gar.method.batch(return_dtype="int64", batch_size=1)
        def slow(self, a):
            time.sleep(0.02)
            return a

        @gar.method.batch(return_dtype="int64", batch_size=10)
        def short(self, a):
            return a.to_pylist()[1:]

    return Model


def test_a_pool_of_processes():
    made = model(max_concurrency=2)(by=5)
    frame = numbers(1000)
    assert values(frame.select(made.add(col("a")))) == [a + 5 for a in range(1000)]
    told = values(frame.select("a", made.who(col("a")).alias("w")), "w")
    assert {line.split()[1] for line in told} == {"10"}
    assert str(os.getpid()) not in {line.split()[0] for line in told}
    assert made.add(1) == 6


def test_a_function_in_a_process():
    @gar.func(use_process=True)
    def where(a: int) -> int:
        return os.getpid()

    assert os.getpid() not in values(numbers(3).select(where(col("a"))))
    text = gar.from_pydict({"s": ["a", None, "longer than twelve bytes"], "b": [b"\x00", b"", None]})

    @gar.func(use_process=True)
    def join(s: str | None, b: bytes | None) -> str:
        return f"{s}{b!r}"

    assert values(text.select(join(col("s"), col("b")).alias("r")), "r") == [
        "ab'\\x00'",
        "Noneb''",
        "longer than twelve bytesNone",
    ]


def test_devices_are_placed():
    code = """
import os, gar
from gar import col
@gar.cls(gpus=2, max_concurrency=2)
class Model:
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    @gar.method.batch(return_dtype="string", batch_size=1)
    def devices(self, a):
        import time
        time.sleep(0.05)
        return [os.environ["CUDA_VISIBLE_DEVICES"]] * len(a)
frame = gar.range(0, 40)
frame.select(Model().devices(col(frame.column_names[0])).alias("d")).explain(resources=True)
made = set(frame.select(Model().devices(col(frame.column_names[0])).alias("d")).to_pydict()["d"])
assert made == {"3,4", "5,6"}, made
def shown(**options):
    @gar.cls(**options)
    class Seen:
        @gar.method.batch(return_dtype="string", batch_size=1)
        def devices(self, a):
            import time
            time.sleep(0.05)
            return [os.environ.get("CUDA_VISIBLE_DEVICES", "unset")] * len(a)
    return set(frame.select(Seen().devices(col(frame.column_names[0])).alias("d")).to_pydict()["d"])
assert shown(gpus=0.5, max_concurrency=2) == {"3"}
assert shown(gpus=0.5, max_concurrency=2, gpu_strategy="spread") == {"3", "4"}
assert shown(gpus=1, max_concurrency="auto") <= {"3", "4", "5", "6"}
assert shown(use_process=True, inherit_devices=True) == {"3,4,5,6"}
@gar.func(gpus=0.5)
def half(a: int) -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]
assert set(frame.select(half(col(frame.column_names[0])).alias("d")).to_pydict()["d"]) == {"3"}
@gar.func(use_process=True)
def none(a: int) -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]
assert set(frame.select(none(col(frame.column_names[0])).alias("d")).to_pydict()["d"]) == {""}
try:
    many = gar.func(lambda a: a, return_dtype="int64", gpus=8)
    frame.select(many(col(frame.column_names[0]))).collect()
except gar.GarError as error:
    assert "Requested 8 GPUs but found only 4 available" in str(error), error
else:
    raise AssertionError("eight devices of four")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "3,4,5,6"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "Model.devices: in worker processes, 2 actors, each asks for 2 GPUs, batches of 1 rows" in done.stdout
    )
    assert "actor 0: device 3,4" in done.stdout
    assert "actor 1: device 5,6" in done.stdout


def test_failures_in_processes():
    made = model(max_concurrency=1)()
    frame = numbers(100)
    with pytest.raises(
        GarCallbackError, match=r"UDF 'Model.check' failed in rows 30 to 39: ValueError: thirty-seven"
    ) as caught:
        frame.select(made.check(col("a"))).collect()
    cause = caught.value.__cause__
    assert isinstance(cause, gar.exceptions.WorkerTraceback)
    assert cause.text.startswith(f'Traceback (most recent call last):\n  File "{__file__}", line ')
    assert 'raise ValueError("thirty-seven")' in cause.text and ", in check" in str(cause)
    with pytest.raises(GarError, match=r"Model.leave.*exited with code 7"):
        frame.select(made.leave(col("a"))).collect()
    with pytest.raises(GarError, match=r"returned 9 values, expected 10"):
        frame.select(made.short(col("a"))).collect()

    @gar.cls(use_process=True)
    class Broken:
        def __init__(self):
            raise OSError("no model")

        def run(self, a: int) -> int:
            return a

    with pytest.raises(GarError, match=r"OSError: no model") as caught:
        frame.select(Broken().run(col("a"))).collect()
    assert "in __init__" in str(caught.value.__cause__)
    assert values(frame.select(made.add(col("a")))) == [a + 10 for a in range(100)]


def test_bad_rows_become_null_in_processes():
    made = model(max_concurrency=1, on_error="ignore")()
    expected = [None if a == 37 else a for a in range(100)]
    assert values(numbers(100).select(made.check(col("a")))) == expected


def test_stopping_processes():
    made = model(max_concurrency=2)()
    frame = numbers(10_000).select(made.slow(col("a")))
    assert values(frame.limit(3)) == [0, 1, 2]
    with pytest.raises(TimeoutError):
        frame.collect(timeout=1)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        frame.collect()
    timer.join()
    rows = iter(frame)
    next(rows)
    del rows
    assert values(numbers(3).select(made.add(col("a")))) == [10, 11, 12]


def test_functions_here_and_there_in_one_query():
    made = model(max_concurrency=1)()
    plus = gar.func(lambda a: a + 1, return_dtype="int64")
    frame = numbers(500).select(plus(made.add(plus(col("a")))))
    assert values(frame) == [a + 12 for a in range(500)]


def test_options_of_processes():
    with pytest.raises(ValueError, match=r"leave use_process out"):
        gar.func(lambda a: a, return_dtype="int64", gpus=1, use_process=False)
    unsendable = threading.Lock()
    with pytest.raises(ValueError, match=r"cannot be sent to worker processes"):
        gar.func(lambda a: unsendable, return_dtype="int64", use_process=True)(col("a"))


def test_the_package_in_a_worker():
    """It comes in parts there, and as a whole when a function uses it."""

    @gar.func(use_process=True)
    def look(a: int) -> str:
        import sys

        parts = "gar.dataframe" in sys.modules
        import gar.udf as one_way
        from gar import func, udf

        made = gar.from_pydict({"b": [a, 2]}).select(gar.col("b") + 1).to_pydict()
        return f"{parts} {made} {callable(udf)} {one_way is udf} {callable(func)} {gar.__version__}"

    assert values(numbers(1).select(look(col("a")).alias("t")), "t") == [
        f"False {{'b': [1, 3]}} True True True {gar.__version__}"
    ]

    @gar.func(use_process=True)
    def wrong(a: int) -> str:
        return gar.nothing_of_that_name

    with pytest.raises(
        GarCallbackError, match="AttributeError: module 'gar' has no attribute 'nothing_of_that_name'"
    ):
        numbers(1).select(wrong(col("a"))).collect()


class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__("lone \udcff and zero \0")
        self.lock = threading.Lock()


class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class OfAnyKind(BaseException):
    pass


def awkward():
    raise Awkward(1, 2)


def no_text():
    raise NoText


def any_kind():
    raise OfAnyKind("any")


def leave():
    sys.exit(3)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def stop():
    raise KeyboardInterrupt


FAULTS = {
    awkward: "Awkward: lone . and zero",
    no_text: "NoText",
    any_kind: "OfAnyKind: any",
    leave: "SystemExit: 3",
    stop: "KeyboardInterrupt",
    die: "killed by signal 9",
}
RESULTS = {
    "no column": (lambda: None, "returned None, expected a Series"),
    "a number": (lambda: 5, "returned 5, expected a Series"),
    "a set": (lambda: {1, 2, 3}, "returned set .*expected a Series"),
    "too few": (lambda: [1], "returned 1 values, expected 3"),
    "texts": (lambda: ["a", "b", "c"], "returned string, expected int64"),
    "objects": (lambda: [object()] * 3, "values of object are not supported"),
    "too large": (lambda: [2**70] * 3, "fit neither int64 nor uint64"),
}


@pytest.mark.parametrize("in_process", [True, False], ids=["there", "here"])
def test_every_fault_is_one_clear_error(in_process):
    class Work:
        def __init__(self, begin):
            if begin is not None:
                begin()

        @gar.method.batch(return_dtype="int64")
        def run(self, a, work):
            return work()

    pool = gar.cls(Work, use_process=in_process or None)
    frame = gar.from_pydict({"a": [1, 2, 3]})
    for fault, text in FAULTS.items():
        if fault is die and not in_process:
            continue
        with pytest.raises(GarCallbackError, match=text):
            frame.select(pool(fault).run(col("a"), fault)).collect()
        with pytest.raises(GarCallbackError, match=text):
            frame.select(pool(None).run(col("a"), fault)).collect()
    for work, text in RESULTS.values():
        with pytest.raises(GarError, match=text):
            frame.select(pool(None).run(col("a"), work)).collect()
    assert values(frame.select(pool(None).run(col("a"), lambda: [4, 5, 6]))) == [4, 5, 6]


def test_lines_of_workers_come_whole():
    code = """
import gar, sys
from gar import col
@gar.func(use_process=True)
def say(a: int) -> int:
    print("one", "two", a)
    print("three\\nfour", file=sys.stderr)
    return a
gar.from_pydict({"a": [7]}).select(say(col("a"))).collect()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("say, actor 0: ")[-1] for line in done.stderr.splitlines()]
    assert sorted(lines) == ["four", "one two 7", "three"]


def test_pools_in_profiles(capsys):
    made = model(max_concurrency=2)(by=5)
    numbers(100).select(made.add(col("a"))).explain(analyze=True)
    assert "actors of Model.add: 2, ready 0, busy 0; rows 100, restarts 0" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "float64"])
def test_results_are_cast_to_the_type_that_is_declared(dtype):
    one = gar.func(return_dtype=dtype, use_process=True)(lambda x: x + 1)
    made = gar.range(3).select(one(col("id")).alias("x"))
    assert str(made.schema()["x"].dtype) == dtype
    assert made.to_pydict() == {"x": [1, 2, 3]}


def test_a_result_that_does_not_fit_is_named():
    large = gar.func(return_dtype="int32", use_process=True)(lambda x: 2**40)
    with pytest.raises(gar.GarError, match="1099511627776"):
        gar.range(2).select(large(col("id"))).collect()
