# SPDX-License-Identifier: Apache-2.0
"""User functions: the decorators, the calls they make, their failures, and the threads they run on."""

import asyncio
import datetime
import decimal
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import typing

import pytest

import gar
from gar import col
from gar.exceptions import GarCallbackError, GarCancelledError, GarColumnError

try:  # with their threads, before the census of any test
    import numpy
    import pyarrow
except ImportError:
    numpy = pyarrow = None

needs_numpy = pytest.mark.skipif(numpy is None or pyarrow is None, reason="needs numpy and pyarrow")

settings = pytest.mark.settings
HANG_S = 60


@gar.func
def plus(a: int, by: int = 1) -> int:
    return a + by


@gar.func
def shout(text: str | None) -> str | None:
    return None if text is None else text.upper() + "!"


@gar.func.batch(return_dtype="int64", batch_size=7)
def same(a):
    return a


@pytest.fixture(autouse=True, scope="module")
def _what_stays():
    """The event loop, its descriptors and the account of the machine are there before the census of the first test."""
    gar.resources()

    @gar.func
    async def nothing(a: int) -> int:
        return a

    gar.from_pydict({"a": [1]}).select(nothing(col("a"))).collect()


def numbers(count=100):
    return gar.range(0, count).select(col(gar.range(0, 1).column_names[0]).alias("a"))


def values(frame, name="a"):
    return frame.to_pydict()[name]


# ---- rows


@settings
def test_a_function_of_rows():
    frame = gar.from_pydict({"a": [1, 2, 3], "s": ["x", None, "z"]})
    made = frame.select(plus(col("a")), shout(col("s")).alias("s"), plus(col("a"), by=10).alias("b"))
    assert made.to_pydict() == {"a": [2, 3, 4], "s": ["X!", None, "Z!"], "b": [11, 12, 13]}
    assert [str(t) for t in made._frame.column_types()] == ["int64", "string", "int64"]


def test_without_expressions_it_simply_runs():
    assert plus(3) == 4
    assert shout("a") == "A!"
    assert plus.name == "plus"
    assert plus.__wrapped__(1, 2) == 3


@settings
def test_everywhere_an_expression_may_stand():
    frame = numbers(20)
    assert values(frame.where(plus(col("a")) > 18)) == [18, 19]
    assert values(frame.sort(plus(-col("a")))) == list(reversed(range(20)))
    assert values(frame.select(plus(plus(col("a") * 2)) + 1)) == [2 * a + 3 for a in range(20)]
    assert values(frame.agg(plus(col("a")).sum())) == [sum(range(1, 21))]
    assert values(frame.select(plus(col("a").sum()))) == [sum(range(20)) + 1]
    grouped = frame.groupby((plus(col("a")) % 3).alias("k")).agg(col("a").sum()).sort("k").to_pydict()
    expected = {0: 0, 1: 0, 2: 0}
    for a in range(20):
        expected[(a + 1) % 3] += a
    assert grouped == {"k": [0, 1, 2], "a": list(expected.values())}
    assert sorted(values(frame.distinct(plus(col("a")) % 2))) == [0, 1]
    both = frame.concat(frame.select(plus(col("a"))))
    assert values(both) == [*range(20), *range(1, 21)]
    assert values(numbers(5).select(col("a").apply(lambda a: a * a, int))) == [0, 1, 4, 9, 16]


@settings
def test_all_types_go_in_and_come_out():
    row = {
        "bool": True,
        "int": 5,
        "float": 2.5,
        "text": "héllo, a longer one",
        "bytes": b"\x00\xff",
        "date": datetime.date(2024, 2, 29),
        "stamp": datetime.datetime(2024, 2, 29, 12, 30, 1, 5),
        "span": datetime.timedelta(days=1, microseconds=7),
        "time": datetime.time(1, 2, 3),
        "decimal": decimal.Decimal("12.34"),
    }
    frame = gar.from_pydict({name: [value, None, value] for name, value in row.items()})
    types = dict(zip(frame.column_names, frame._frame.column_types(), strict=True))
    same_value = {
        name: gar.func(lambda value: value, return_dtype=types[name])(col(name)).alias(name) for name in row
    }
    assert frame.select(*same_value.values()).to_pydict() == frame.to_pydict()


def test_hints_give_the_type():
    def typed(hint):
        def function(a):
            return a

        function.__annotations__["return"] = hint
        return str(gar.func(function).return_dtype)

    assert typed(int) == "int64"
    assert typed(float | None) == "float64"
    assert typed(typing.Optional[str]) == "string"  # noqa: UP045 (what users write)
    assert typed(bytes) == "binary"
    assert typed(datetime.date) == "date"
    assert typed(typing.Annotated[bool, "x"]) == "bool"
    assert typed(gar.DataType.int8()) == "int8"
    assert typed("int") == "int64"
    if numpy is not None:
        assert typed(numpy.int16) == "int16"
    with pytest.raises(gar.GarError, match=r"return_dtype"):
        typed(list[int])
    with pytest.raises(ValueError, match=r"no return type"):
        gar.func(lambda a: a)


# ---- columns


@settings
def test_batches_are_exact():
    sizes = []
    lock = threading.Lock()

    @gar.func.batch(return_dtype="int64", batch_size=7)
    def measured(a):
        with lock:
            sizes.append(len(a))
        return a

    assert values(numbers(100).select(measured(col("a")))) == list(range(100))
    assert sorted(sizes, reverse=True) == [7] * 14 + [2]
    sizes.clear()
    assert values(numbers(100).where(col("a") % 3 == 0).select(measured(col("a")))) == list(range(0, 100, 3))
    assert sorted(sizes, reverse=True) == [7] * 4 + [6]
    sizes.clear()
    assert values(numbers(0).select(measured(col("a")))) == []
    assert sizes == []


@settings
@needs_numpy
def test_columns_of_every_kind():
    frame = gar.from_pydict({"a": [1.5, 2.5, 4.0]})
    for give in (
        lambda a: a,
        lambda a: a.to_pylist(),
        lambda a: a.to_numpy(),
        lambda a: a.to_arrow(),
        lambda a: gar.Series.from_pylist(a.to_pylist()),
        lambda a: numpy.array(a.to_numpy()),
        lambda a: pyarrow.array(a.to_pylist()),
    ):
        made = gar.func.batch(give, return_dtype="float64")
        assert values(frame.select(made(col("a")))) == [1.5, 2.5, 4.0]
    names = []
    told = gar.func.batch(lambda a, b: names.extend([a.name(), b.name()]) or a, return_dtype="float64")
    frame.select(told(col("a"), col("a").alias("other"))).collect()
    assert names[:2] == ["a", "other"]


@needs_numpy
def test_numbers_without_a_copy():
    data = numpy.arange(1000, dtype="float64")
    seen = []

    @gar.func.batch(return_dtype="float64", batch_size=1000)
    def look(a):
        view = a.to_numpy()
        seen.append(view.__array_interface__["data"][0])
        return view

    frame = gar.from_pydict({"a": data})
    made = frame.select(look(col("a"))).to_arrow()["a"].chunk(0)
    assert seen == [data.__array_interface__["data"][0]]
    assert made.buffers()[1].address == seen[0]


@settings
def test_results_are_checked():
    frame = gar.from_pydict({"a": [1, 2, 3]})

    def run(result, dtype="int64"):
        return values(frame.select(gar.func.batch(lambda a: result, return_dtype=dtype)(col("a"))))

    with pytest.raises(ValueError, match=r"UDF 'lambda' returned [0-9]+ values, expected [0-9]+"):
        run([1, 2, 3, 4])
    if gar._native.settings()["morsel_rows"] >= 3:
        with pytest.raises(ValueError, match=r"UDF 'lambda' returned 2 values, expected 3"):
            run([1, 2])
        assert run([1, None, 3], "int8") == [1, None, 3]
        assert run([1, 2, 3], "float64") == [1.0, 2.0, 3.0]
        assert run([None, None, None], "string") == [None, None, None]
        with pytest.raises(TypeError, match=r"returned string, expected int64"):
            run(["1", "2", "3"])
        with pytest.raises(TypeError, match=r"returned float64, expected int64"):
            run([1.5, 2.0, 3.0])
        with pytest.raises(gar.GarError, match=r"does not fit.*300.*int8"):
            run([1, 2, 300], "int8")
    with pytest.raises(TypeError, match=r"returned None, expected a Series"):
        run(None)
    with pytest.raises(TypeError, match=r"no column"):
        run([object(), object(), object()])


# ---- coroutines and generators


@settings
def test_coroutines_run_side_by_side():
    running = []
    most = [0]

    @gar.func(max_concurrency=4)
    async def slow(a: int) -> str:
        running.append(a)
        most[0] = max(most[0], len(running))
        await asyncio.sleep(0.001)
        running.remove(a)
        return str(a)

    assert values(numbers(40).select(slow(col("a")))) == [str(a) for a in range(40)]
    # Batches of one row each have threads of their own.
    assert most[0] <= 4 * 64
    names = []

    @gar.func.batch(return_dtype="int64")
    async def named(a):
        names.append(threading.current_thread().name)
        return a

    assert values(numbers(3).select(named(col("a")))) == [0, 1, 2]
    assert set(names) == {"Python-Async"}


@settings
def test_generators_give_rows():
    @gar.func
    def count(a: int) -> typing.Iterator[int]:
        yield from range(a)

    frame = gar.from_pydict({"a": [2, 0, 3], "s": ["x", "y", "z"]})
    made = frame.select(count(col("a")).alias("n"), "s").to_pydict()
    assert made == {"n": [0, 1, None, 0, 1, 2], "s": ["x", "x", "y", "z", "z", "z"]}
    assert values(frame.select(count(col("a")).alias("n")).limit(2), "n") == [0, 1]

    @gar.func(return_dtype="int64")
    async def stream(a):
        for i in range(a):
            yield i

    assert values(frame.select(stream(col("a")).alias("n")), "n") == [0, 1, None, 0, 1, 2]
    with pytest.raises(gar.GarError, match=r"select it alone"):
        frame.where(count(col("a")) > 1)
    with pytest.raises(gar.GarError, match=r"second generator"):
        frame.select(count(col("a")), stream(col("a")).alias("b"))
    with pytest.raises(gar.GarError, match=r"Iterator"):

        @gar.func
        def wrong(a) -> int:
            yield a


# ---- classes


@settings
def test_a_class_is_constructed_once_a_query():
    events = []

    @gar.cls
    class Model:
        def __init__(self, factor, plus=0):
            events.append("made")
            self.factor, self.plus = factor, plus

        def scale(self, a: int) -> int:
            return a * self.factor + self.plus

        @gar.method.batch(return_dtype="int64", batch_size=3)
        def sizes(self, a):
            return [len(a)] * len(a)

        @gar.method(return_dtype="string")
        def text(self, a):
            return str(a)

        def __call__(self, a: int) -> int:
            return -a

        def close(self):
            events.append("closed")

    model = Model(10, plus=1)
    assert events == []
    frame = numbers(8)
    made = frame.select(
        model.scale(col("a")).alias("s"),
        model.sizes(col("a")).alias("n"),
        model.text(col("a")).alias("t"),
        model(col("a")).alias("m"),
    )
    for _ in range(2):
        events.clear()
        got = gar.DataFrame._of(made._frame).to_pydict()
        assert got["s"] == [10 * a + 1 for a in range(8)]
        assert got["n"] == [3] * 6 + [2] * 2
        assert got["t"] == [str(a) for a in range(8)]
        assert got["m"] == [-a for a in range(8)]
        assert events == ["made", "closed"]
    assert model.scale(4) == 41


@settings
def test_calls_of_a_class_do_not_overlap():
    inside = []
    most = [0]

    @gar.cls
    class Counter:
        def next(self, a: int) -> int:
            inside.append(1)
            most[0] = max(most[0], len(inside))
            time.sleep(0.0005)
            inside.pop()
            return a

    assert values(numbers(30).select(Counter().next(col("a")))) == list(range(30))
    assert most[0] == 1


@settings
def test_a_constructor_that_fails():
    calls = []

    @gar.cls
    class Broken:
        def __init__(self):
            calls.append(1)
            raise OSError("no model")

        def run(self, a: int) -> int:
            return a

    with pytest.raises(
        GarCallbackError, match=r"UDF 'Broken': the constructor failed: OSError: no model"
    ) as e:
        numbers(50).select(Broken().run(col("a"))).collect()
    assert isinstance(e.value.__cause__, OSError)
    assert len(calls) == 1


@settings
def test_the_older_decorator():
    @gar.udf(return_dtype=gar.DataType.int64(), batch_size=4)
    def double(a, by=2):
        return [x * by for x in a.to_pylist()]

    assert values(numbers(9).select(double(col("a")))) == [2 * a for a in range(9)]
    assert values(numbers(9).select(double(col("a"), by=3))) == [3 * a for a in range(9)]
    sized = double.override_options(batch_size=2)
    assert values(numbers(5).select(sized(col("a")))) == [2 * a for a in range(5)]

    @gar.udf(return_dtype="int64")
    class Adder:
        def __init__(self, by=1):
            self.by = by

        def __call__(self, a):
            return [x + self.by for x in a.to_pylist()]

    assert values(numbers(4).select(Adder(col("a")))) == [1, 2, 3, 4]
    assert values(numbers(4).select(Adder.with_init_args(by=10)(col("a")))) == [10, 11, 12, 13]
    with pytest.raises(ValueError, match=r"concurrency is for classes"):
        double.with_concurrency(2)
    with pytest.raises(ValueError, match=r"init arguments are for classes"):
        double.with_init_args(1)


# ---- failures


def failing(error):
    @gar.func(return_dtype="int64")
    def bad(a):
        if a == 37:
            raise error
        return a

    return numbers(100).select(bad(col("a")))


class Strange(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    def __reduce__(self):
        raise TypeError("not to be pickled")


@settings
@pytest.mark.parametrize(
    ("kind", "args", "text"),
    [
        (ValueError, ("bad value\nsecond line",), "ValueError: bad value second line"),
        (KeyError, ("k",), "KeyError: 'k'"),
        (Strange, (), "Strange: "),
        (SystemExit, (3,), "SystemExit: 3"),
        (KeyboardInterrupt, (), "KeyboardInterrupt"),
        (MemoryError, (), "MemoryError"),
        (asyncio.CancelledError, (), "CancelledError"),
        (StopIteration, (), "StopIteration"),
    ],
)
def test_exceptions_of_any_kind(kind, args, text):
    error = kind(*args)
    with pytest.raises(GarCallbackError) as found:
        failing(error).collect()
    message = str(found.value)
    assert message.startswith(f"UDF 'bad' failed on row 37: {text}")
    assert "a: int64" in message
    assert "\n" not in message
    if not isinstance(error, StopIteration):
        assert found.value.__cause__ is error
        assert found.value.__cause__.__traceback__ is not None
    assert values(numbers(3).select(plus(col("a")))) == [1, 2, 3]
    error.__traceback__ = None  # its frames hold rows


@settings
def test_failures_of_columns_coroutines_and_arguments():
    @gar.func.batch(return_dtype="int64", batch_size=10)
    def bad(a):
        if 37 in a.to_pylist():
            raise ValueError("thirty-seven")
        return a

    with pytest.raises(
        GarCallbackError, match=r"UDF 'bad' failed on rows 30 to 39: ValueError: thirty-seven"
    ):
        numbers(100).select(bad(col("a"))).collect()

    @gar.func
    async def never(a: int) -> int:
        await asyncio.sleep(0)
        raise ValueError("async")

    with pytest.raises(GarCallbackError, match=r"UDF 'never' failed on row .*ValueError: async"):
        numbers(10).select(never(col("a"))).collect()
    with pytest.raises(GarCallbackError, match=r"TypeError: .*takes 1 positional argument"):
        numbers(3).select(gar.func(lambda a: a, return_dtype="int64")(col("a"), col("a"))).collect()
    with pytest.raises(GarColumnError):
        numbers(3).select(plus(col("b")))


@settings
@pytest.mark.parametrize("mode", ["ignore", "null", "log"])
def test_bad_rows_become_null(mode, caplog):
    def check(a):
        if a % 10 == 3:
            raise ValueError(f"bad {a}")
        return a

    def check_all(a):
        return [check(x) for x in a.to_pylist()]

    async def check_later(a):
        return check(a)

    expected = [None if a % 10 == 3 else a for a in range(40)]
    frame = numbers(40)
    with caplog.at_level(logging.WARNING, "gar"):
        row = gar.func(check, return_dtype="int64", on_error=mode)
        batch = gar.func.batch(check_all, return_dtype="int64", on_error=mode)
        later = gar.func(check_later, return_dtype="int64", on_error=mode)
        assert values(frame.select(row(col("a")))) == expected
        assert values(frame.select(batch(col("a")))) == expected
        assert values(frame.select(later(col("a")))) == expected
    assert len(caplog.records) == (12 if mode == "log" else 0)
    if mode == "log":
        assert "failed on row 3, which is null now: ValueError: bad 3" in caplog.text
    caplog.clear()


@settings
def test_retries():
    tries = {}
    lock = threading.Lock()

    def flaky(a):
        with lock:
            tries[a] = tries.get(a, 0) + 1
            if a % 5 == 0 and tries[a] < 3:
                raise gar.RetryAfterError(0.001)
        return a

    async def flaky_later(a):
        return flaky(a)

    for function in (flaky, flaky_later):
        tries.clear()
        made = gar.func(function, return_dtype="int64", max_retries=2)
        assert values(numbers(10).select(made(col("a")))) == list(range(10))
        assert tries == {a: 3 if a % 5 == 0 else 1 for a in range(10)}
    calls = []

    @gar.func.batch(return_dtype="int64", max_retries=1)
    def once(a):
        calls.append(1)
        raise gar.RetryAfterError(0)

    with pytest.raises(GarCallbackError, match=r"RetryAfterError"):
        numbers(1).select(once(col("a"))).collect()
    assert len(calls) == 2


# ---- running


@settings
def test_only_what_is_needed_is_called():
    seen = []
    lock = threading.Lock()

    @gar.func
    def note(a: int) -> int:
        with lock:
            seen.append(a)
        return a

    frame = numbers(1000).with_column("n", note(col("a")))
    assert frame.count_rows() == 1000
    assert seen == []
    assert values(frame.select("a").limit(3)) == [0, 1, 2]
    assert seen == []
    assert values(frame.limit(3), "n") == [0, 1, 2]
    assert sorted(seen) == [0, 1, 2]
    seen.clear()
    assert values(frame.where(col("a") < 5), "n") == [0, 1, 2, 3, 4]
    assert sorted(seen) == [0, 1, 2, 3, 4]
    seen.clear()
    assert len(values(frame.select("a").where(note(col("a")) >= 0).limit(2))) == 2
    assert len(seen) <= 1000


def test_a_limit_stops_the_function():
    calls = []

    @gar.func.batch(return_dtype="int64", batch_size=10)
    def count(a):
        calls.append(len(a))
        time.sleep(0.002)
        return a

    assert values(numbers(100_000).where(count(col("a")) % 2 == 0).limit(3)) == [0, 2, 4]
    assert len(calls) < 1000


@settings
def test_a_query_inside_a_function():
    @gar.func.batch(return_dtype="int64", batch_size=1)
    def nested(a):
        (n,) = a.to_pylist()
        inner = numbers(n).select(plus(col("a")))
        return values(inner.agg(col("a").sum()))

    assert values(numbers(12).select(nested(col("a")))) == [n * (n + 1) // 2 or None for n in range(12)]

    @gar.func.batch(return_dtype="int64", batch_size=2)
    def deeper(a):
        return values(a_frame(a).select(nested(col("a"))))

    def a_frame(a):
        return gar.from_pydict({"a": a})

    assert values(numbers(6).select(deeper(col("a")))) == [n * (n + 1) // 2 or None for n in range(6)]


@settings
def test_order_is_kept_when_calls_overtake():
    @gar.func.batch(return_dtype="int64", batch_size=3)
    def uneven(a):
        first = a.to_pylist()[0]
        time.sleep(0.002 * (first % 2))
        return a

    frame = numbers(60).with_column("b", uneven(col("a")))
    assert frame.to_pydict() == {"a": list(range(60)), "b": list(range(60))}


def test_several_queries_and_functions_at_once():
    results = {}

    def run(i):
        frame = numbers(2000).select(plus(same(plus(col("a"))), by=i).alias("a"))
        results[i] = values(frame) == [a + 1 + i for a in range(2000)]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert results == dict.fromkeys(range(6), True)


def test_rows_against_plain_python(rng):
    data = [rng.randrange(-1000, 1000) if rng.random() > 0.1 else None for _ in range(5000)]
    words = ["w" * rng.randrange(0, 40) + str(i) for i in range(5000)]

    def check(a, w):
        return None if a is None else f"{a % 7}:{w[:5]}:{len(w)}"

    frame = gar.from_pydict({"a": data, "w": words})
    made = gar.func(check, return_dtype="string")
    got = frame.where(col("a").is_null() | (col("a") % 2 == 0)).select(made(col("a"), col("w")).alias("r"))
    expected = [check(a, w) for a, w in zip(data, words, strict=True) if a is None or a % 2 == 0]
    assert values(got, "r") == expected


# ---- stopping


@gar.func(return_dtype="int64")
def sleepy(a):
    time.sleep(0.01)
    return a


def test_timeouts_and_cancel():
    frame = numbers(100_000).select(sleepy(col("a")))
    with pytest.raises(TimeoutError):
        gar.DataFrame._of(frame._frame).collect(timeout=0.2)
    handle = frame.start()
    time.sleep(0.1)
    handle.cancel()
    with pytest.raises(GarCancelledError):
        handle.result()
    rows = iter(frame)
    next(rows)
    del rows


def test_interrupts():
    frame = numbers(100_000).select(sleepy(col("a")))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        frame.collect()
    assert time.monotonic() - began < HANG_S / 2
    timer.join()

    @gar.func
    async def wait(a: int) -> int:
        await asyncio.sleep(1000)
        return a

    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        numbers(10).select(wait(col("a"))).collect()
    timer.join()
    assert values(numbers(3).select(plus(col("a")))) == [1, 2, 3]


# ---- options


def test_options_are_checked():
    def function(a: int) -> int:
        return a

    for options, text in (
        ({"gpus": -1}, "gpus must be nonnegative, got -1"),
        ({"gpus": 1.5}, "gpus greater than 1 must be an integer, got 1.5"),
        ({"cpus": -0.5}, "cpus must be nonnegative, got -0.5"),
        ({"cpus": 100_000}, "Requested 100000 CPUs but found only [0-9]+ available"),
        ({"on_error": "explode"}, "on_error must be"),
        ({"max_retries": -1}, "max_retries must not be negative"),
        ({"max_concurrency": 2}, "max_concurrency is for async functions"),
        ({"max_concurrency": "auto"}, "is for classes in worker processes"),
        ({"max_concurrency": "all"}, "must be a number or .auto., got .all."),
        ({"gpu_strategy": "spread"}, "ask for some with gpus or gpu_memory"),
        ({"gpus": 1, "gpu_strategy": "even"}, "must be .pack. or .spread., got .even."),
        ({"inherit_devices": True}, "is for worker processes"),
        ({"gpus": 1, "inherit_devices": True}, "cannot go with gpus"),
        ({"use_process": True, "memory": "1 apple"}, "no amount of memory"),
    ):
        with pytest.raises(ValueError, match=text):
            gar.func(function, **options)
    for options, text in (
        ({"ray_options": {}}, "Ray"),
        ({"memory": "1GiB"}, "for worker processes only"),
        ({"unnest": True}, "struct"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            gar.func(function, **options)
    with pytest.raises(ValueError, match=r"batch_size must be at least 1, got 0"):
        gar.func.batch(function, return_dtype=int, batch_size=0)
    with pytest.raises(ValueError, match=r"needs return_dtype"):
        gar.func.batch(function)
    with pytest.raises(TypeError, match=r"takes a function"):
        gar.func(3)
    with pytest.raises(TypeError, match=r"takes a class"):
        gar.cls(function)


def test_cpus_bound_the_calls():
    inside = []
    most = [0]
    count = len(os.sched_getaffinity(0))

    @gar.func.batch(return_dtype="int64", batch_size=1, cpus=count)
    def alone(a):
        inside.append(1)
        most[0] = max(most[0], len(inside))
        time.sleep(0.001)
        inside.pop()
        return a

    assert values(numbers(20).select(alone(col("a")))) == list(range(20))
    assert most[0] == 1 or count == 1


def test_explain_shows_functions(capsys):
    numbers(3).with_column("b", same(col("a"))).explain(show_all=True)
    text = capsys.readouterr().out
    assert "Udf same(" in text
    assert "batches of 7 rows" in text
    assert "in this process" in text
    numbers(3).with_column("b", same(col("a"))).explain(resources=True)
    assert "same: in this process, batches of 7 rows" in capsys.readouterr().out
    numbers(3).explain(resources=True)
    assert "nothing is booked" in capsys.readouterr().out


# ---- threads


CENSUS = """
import os, threading, time, gar
def names():
    return sorted(open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task"))
@gar.func
def where(a: int) -> str:
    return open(f"/proc/self/task/{threading.get_native_id()}/comm").read().strip()
frame = gar.from_pydict({"a": list(range(10))})
frame.select(gar.col("a") + 1).collect()
assert not any(name.startswith("Python-") for name in names()), names()
made = set(frame.select(where(gar.col("a"))).to_pydict()["a"])
assert made and all(name.startswith("Python-Thread-") for name in made), made
time.sleep(0.2)
before = names()
local = threading.local()
@gar.func.batch(return_dtype="int64", batch_size=1)
def kept(a):
    local.n = getattr(local, "n", 0) + 1
    return [local.n]
counts = frame.select(kept(gar.col("a"))).to_pydict()["a"]
assert sum(counts) > len(counts), counts
for _ in range(20):
    frame.select(where(gar.col("a"))).to_pydict()
assert names() == before, (names(), before)
print("ok", sum(name.startswith("Python-Thread-") for name in before))
"""


@pytest.mark.parametrize("threads", ["1", "2", "4"])
def test_threads_of_functions(threads):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GAR_")}
    done = subprocess.run(
        [sys.executable, "-c", CENSUS],
        capture_output=True,
        text=True,
        env=environment | {"GAR_NUM_THREADS": threads},
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ok", str(max(2, int(threads)))]


def test_a_process_that_ends_while_functions_run():
    code = """
import gar, time
@gar.func(return_dtype="int64")
def slow(a):
    time.sleep(0.05)
    return a
handle = gar.range(0, 10000).select(slow(gar.col(gar.range(0, 1).column_names[0]))).start()
time.sleep(0.2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr


# ---- groups


@gar.func.batch(return_dtype="float64")
def largest(v, count):
    return sorted(v.to_pylist(), reverse=True)[:count]


def test_a_call_for_each_group(rng):
    keys = [rng.choice([None, "a", "b" * 20, *map(str, range(40))]) for _ in range(600)]
    values = [rng.random() for _ in keys]
    expected = {}
    for key, value in zip(keys, values, strict=True):
        expected.setdefault(key, []).append(value)
    frame = gar.from_pydict({"k": keys, "v": values, "n": [1] * len(keys)})
    found = {}
    for row in frame.groupby("k", "n").map_groups(largest(col("v"), 2).alias("top")).to_pylist():
        assert list(row) == ["k", "n", "top"]
        found.setdefault(row["k"], []).append(row["top"])
    assert found == {key: sorted(group, reverse=True)[:2] for key, group in expected.items()}

    @gar.func.batch(return_dtype="float64")
    def in_order(v, n):
        return v

    found = frame.groupby("k").map_groups(in_order(col("v"), col("n"))).to_pydict()
    assert dict(zip(found["k"], found["v"], strict=True)) == {
        key: group[-1] for key, group in expected.items()
    }
    assert sorted(found["v"]) == sorted(values)


def test_groups_of_every_size():
    sizes = {0: 1, 1: 700, 2: 3, 3: 1, 4: 2000, 5: 1}
    frame = gar.from_pydict({"k": [k for k, size in sizes.items() for _ in range(size)]})

    @gar.cls
    class Counter:
        def __init__(self):
            self.calls = 0

        @gar.method.batch(return_dtype="int64")
        def count(self, k):
            self.calls += 1
            assert set(k.to_pylist()) == {self.calls - 1}
            return [len(k)] if k.to_pylist()[0] != 3 else []

    counted = frame.groupby("k").map_groups(Counter().count(col("k")).alias("rows")).to_pydict()
    assert dict(zip(counted["k"], counted["rows"], strict=True)) == {k: n for k, n in sizes.items() if k != 3}
    nothing = frame.where("k > 9").groupby("k").map_groups(Counter().count(col("k")).alias("rows"))
    assert nothing.to_pydict() == {"k": [], "rows": []}
    by_parity = frame.groupby((col("k") % 2).alias("odd")).map_groups(
        largest(col("k").cast("float64"), 1).alias("m")
    )
    assert sorted(by_parity.to_pydict()["m"]) == [4.0, 5.0]


def test_what_map_groups_refuses():
    groups = gar.from_pydict({"a": [1, 1, 2]}).groupby("a")
    for call, error, text in (
        (col("a"), TypeError, "map_groups takes a call of a function of columns"),
        (same(col("a")), ValueError, "leave batch_size out"),
        (gar.func(lambda a: a, return_dtype="int64")(col("a")), TypeError, "works on single rows"),
        (
            gar.func.batch(lambda a: a, return_dtype="int64", on_error="log")(col("a")),
            NotImplementedError,
            "on_error",
        ),
    ):
        with pytest.raises(error, match=text):
            groups.map_groups(call)

    @gar.func.batch(return_dtype="int64")
    def fail(a):
        raise KeyError("of this group")

    with pytest.raises(
        GarCallbackError, match=r"'fail' failed on a group of [12] rows: KeyError: .*a: int64"
    ) as caught:
        groups.map_groups(fail(col("a")).alias("b")).collect()
    assert isinstance(caught.value.__cause__, KeyError)
    tries = []

    @gar.func.batch(return_dtype="int64", max_retries=1)
    def second(a):
        tries.append(1)
        if len(tries) == 1:
            raise gar.RetryAfterError(0)
        return a

    assert values(groups.map_groups(second(col("a")).alias("b")), "b") == [1, 1, 2]
