# SPDX-License-Identifier: Apache-2.0
"""How batches go through user functions, on the engine's Python threads: rows, columns, coroutines, generators; retries,
failures, and the objects of classes."""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time

from gar import _checks, _native
from gar.series import Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from typing import Any

    Cancelled = Callable[[], bool]

ASYNC_ROWS = 64  # of an async function at work at once
_LOOK_S = 0.005  # how long rows run between two looks at whether the query goes on
_STEP_MAX = 8192
_RETRY_S = 0.1
_RETRY_MAX_S = 60.0
_JITTER = 0.25
_TICK_S = 0.05
_TEXT_MAX = 400


class RetryAfterError(Exception):
    """Raised by a user function: try again, but not before `retry_after` seconds."""

    __module__ = "gar"

    def __init__(self, retry_after: float, original: BaseException | None = None) -> None:
        super().__init__(f"retry after {retry_after} s" + ("" if original is None else f": {original}"))
        self.retry_after = retry_after
        self.original = original


class Template:
    """Which arguments of a call are columns, and which are the same for all rows."""

    __slots__ = ("_args", "_kwargs", "expressions", "is_plain", "names")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from gar.expressions import Expression

        self.expressions: list[Any] = []

        def place(value: Any) -> tuple[bool, Any]:
            if not isinstance(value, Expression):
                return False, value
            self.expressions.append(value)
            return True, len(self.expressions) - 1

        self._args = [place(value) for value in args]
        self._kwargs = {name: place(value) for name, value in kwargs.items()}
        self.is_plain = not kwargs and all(is_column for is_column, _ in self._args)
        self.names = [expression.name() for expression in self.expressions]

    def __getstate__(self) -> Any:
        """For a worker process, which needs no expressions."""
        return None, {
            "_args": self._args,
            "_kwargs": self._kwargs,
            "is_plain": self.is_plain,
            "names": self.names,
        }

    def bound(self, function: Any) -> Any:
        """A function of the columns' values alone."""
        if self.is_plain:
            return function
        args, kwargs = self._args, self._kwargs

        @functools.wraps(function)
        def call(*values: Any) -> Any:
            return function(
                *(values[value] if is_column else value for is_column, value in args),
                **{
                    name: values[value] if is_column else value for name, (is_column, value) in kwargs.items()
                },
            )

        return call


class Owner:
    """A class and its arguments, and the objects of it that running queries use."""

    def __init__(self, wrapped: type, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> None:
        self.wrapped = wrapped
        self.args = args
        self.kwargs = kwargs
        self.name = name
        self._lock = threading.Lock()
        self._shared: dict[int, _Shared] = {}

    def construct(self) -> Any:
        return self.wrapped(*self.args, **self.kwargs)

    def open(self, query: int) -> _Shared:
        with self._lock:
            shared = self._shared.get(query)
            if shared is None:
                shared = self._shared[query] = _Shared(self, query)
            shared.users += 1
            return shared

    def close(self, shared: _Shared) -> bool:
        """True for the last user."""
        with self._lock:
            shared.users -= 1
            if shared.users == 0:
                self._shared.pop(shared.query, None)
            return shared.users == 0

    def __reduce__(self) -> Any:
        return (Owner, (self.wrapped, self.args, self.kwargs, self.name))


class _Shared:
    """The object of one query."""

    def __init__(self, owner: Owner, query: int) -> None:
        self.owner = owner
        self.query = query
        self.users = 0
        self.lock = threading.Lock()  # around calls that must not overlap
        self._making = threading.Lock()
        self._is_made = False
        self._made: Any = None
        self._error: BaseException | None = None

    def get(self) -> Any:
        with self._making:
            if not self._is_made:
                self._is_made = True
                try:
                    self._made = self.owner.construct()
                except BaseException as error:
                    self._error = error
            if self._error is not None:
                raise _failed(
                    f"UDF '{self.owner.name}': the constructor failed: {told(self._error)}"
                ) from self._error
            return self._made

    def end(self) -> None:
        made, self._made = self._made, None
        close = getattr(made, "close", None)
        if callable(close):
            close()


class Spec:
    """A user function and how it is to run."""

    def __init__(
        self,
        *,
        name: str,
        function: Any,
        owner: Owner | None,
        is_batch: bool,
        is_async: bool,
        is_expanding: bool,
        retries: int,
        on_error: str,
        at_once: int,
        thread_safe: bool,
        in_process: bool,
        is_grouped: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.owner = owner
        self.is_batch = is_batch
        self.is_async = is_async
        self.is_expanding = is_expanding
        self.retries = retries
        self.on_error = on_error
        self.at_once = at_once
        self.thread_safe = thread_safe
        self.in_process = in_process  # in worker processes
        self.is_grouped = is_grouped  # the first column numbers groups, each of which is a call

    def for_groups(self) -> Spec:
        made = Spec(**vars(self))
        made.is_grouped = made.is_expanding = True
        return made

    def for_process(self) -> Spec:
        """What a worker does: the pool tries again and makes bad rows null."""
        made = Spec(**vars(self))
        made.retries, made.on_error = 0, "raise"
        return made


def told(error: BaseException) -> str:
    """Type and text of an exception on one line."""
    try:
        text = " ".join(str(error).encode("utf-8", "replace").decode().replace("\0", "\ufffd").split())
    except Exception:
        text = "(its text cannot be shown)"
    text = text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _failed(message: str) -> _native.GarCallbackError:
    return _native.GarCallbackError(message)


class Runner:
    """One function in one query: called by the engine with batches, on several threads at once."""

    def __init__(self, spec: Spec, template: Template, query: int) -> None:
        self._spec = spec
        self._template = template
        self._shared = None if spec.owner is None else spec.owner.open(query)
        # The function of the columns' values alone; of a class, when its object is made.
        self._bound: Any = template.bound(spec.function) if spec.owner is None else None
        self._is_serial = not spec.thread_safe and not spec.is_async

    def close(self) -> None:
        """No more calls come."""
        shared, self._shared, self._bound = self._shared, None, None
        if shared is not None and shared.owner.close(shared):
            shared.end()

    def __call__(self, batch: _native.Array | _Columns, first_row: int, cancelled: Cancelled) -> Any:
        call = _Call(self._spec, self._template, batch, first_row, cancelled)
        if self._shared is None:
            return call.run(self._bound)
        if self._bound is None:
            function = functools.partial(self._spec.function, self._shared.get())
            self._bound = self._template.bound(function)
        if not self._is_serial:
            return call.run(self._bound)
        with self._shared.lock:
            return call.run(self._bound)


class _Call:
    """One batch."""

    __slots__ = ("_batch", "_cancelled", "_first_row", "_rows", "_spec", "_template")

    def __init__(
        self,
        spec: Spec,
        template: Template,
        batch: _native.Array | _Columns,
        first_row: int,
        cancelled: Cancelled,
    ) -> None:
        self._spec = spec
        self._template = template
        self._batch = batch
        self._rows = len(batch)
        self._first_row = first_row
        self._cancelled = cancelled

    def run(self, bound: Any) -> Any:
        spec = self._spec
        if spec.is_grouped:
            return self._run_groups(bound)
        if spec.is_batch:
            return self._run_batch(bound)
        columns = self._batch.field_lists()
        if spec.is_expanding:
            return self._run_generator(bound, columns)
        values = self._run_async(bound, columns) if spec.is_async else self._run_rows(bound, columns)
        return self._array(values)

    # ---- results and failures

    def _array(self, values: Any) -> _native.Array:
        if isinstance(values, Series):
            return values._array
        if isinstance(values, _native.Array):
            return values
        if values is None or isinstance(values, (str, bytes, dict, int, float, set, frozenset)):
            raise _native.GarTypeError(
                f"UDF '{self._spec.name}' returned {_checks.shown(values)}, "
                "expected a Series, a list, a numpy or an Arrow array"
            )
        try:
            return _native.array(values)
        except _native.GarError as error:
            raise _native.GarTypeError(
                f"UDF '{self._spec.name}' returned values that are no column: {error}"
            ) from error

    def _stop_if_cancelled(self) -> None:
        if self._cancelled():
            raise _native.GarCancelledError("the query has been stopped")

    def _inputs(self) -> str:
        parts = [
            f"{name}: {field.type_text()}"
            for name, field in zip(self._template.names, self._fields(), strict=True)
        ]
        return f"{', '.join(parts) or 'no arguments'}; {self._rows} rows"

    def _fields(self) -> list[_native.Array]:
        """The columns that the function gets."""
        fields = self._batch.fields()
        return fields[1:] if self._spec.is_grouped else fields

    def _fail(self, error: BaseException, row: int | None) -> BaseException:
        where = (
            f"rows {self._first_row} to {self._first_row + self._rows - 1}"
            if row is None
            else f"row {self._first_row + row}"
        )
        return _failed(f"UDF '{self._spec.name}' failed on {where}: {told(error)} (inputs: {self._inputs()})")

    def _log(self, error: BaseException, row: int) -> None:
        if self._spec.on_error == "log":
            import logging
            import traceback

            # As text: a record that holds the exception would hold the rows.
            logging.getLogger("gar").warning(
                "UDF '%s' failed on row %d, which is null now: %s\n%s",
                self._spec.name,
                self._first_row + row,
                told(error),
                "".join(traceback.format_exception(error)).rstrip(),
            )

    def _pauses(self) -> Iterator[float]:
        """How long to wait before each retry, if the exception does not say."""
        import random

        pause = _RETRY_S
        for _ in range(self._spec.retries):
            yield pause * (1 + random.uniform(-_JITTER, _JITTER))
            pause = min(2 * pause, _RETRY_MAX_S)

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._stop_if_cancelled()
            time.sleep(min(left, _TICK_S))

    def _retried(self, error: BaseException, function: Any, args: list[Any]) -> Any:
        """The result of a later try; the last failure when there is none."""
        for pause in self._pauses():
            self._sleep(_pause_of(error, pause))
            try:
                return function(*args)
            except BaseException as again:
                error = again
        raise error

    # ---- rows

    def _run_rows(self, function: Any, columns: list[list[Any]]) -> list[Any]:
        rows = self._rows
        if not columns:
            results = map(lambda _: function(), range(rows))
        else:
            results = map(function, *columns)
        out: list[Any] = []
        step = 1
        began = time.perf_counter()
        while len(out) < rows:
            wanted = min(step, rows - len(out))
            before = len(out)
            try:
                # What was appended before an exception stays, and the next result is that of the next row.
                out.extend(itertools.islice(results, wanted))
            except BaseException as error:
                out.append(self._other(error, function, [column[len(out)] for column in columns], len(out)))
                self._stop_if_cancelled()
                continue
            if len(out) - before < wanted:
                stop = StopIteration("the function raised StopIteration")
                raise self._fail(stop, len(out)) from stop
            now = time.perf_counter()
            step = min(2 * step, _STEP_MAX) if now - began < _LOOK_S else max(1, step // 2)
            began = now
            if len(out) < rows:
                self._stop_if_cancelled()
        return out

    def _other(self, error: BaseException, function: Any, args: list[Any], row: int) -> Any:
        """A row whose first try failed."""
        if self._spec.retries > 0:
            try:
                return self._retried(error, function, args)
            except _native.GarCancelledError:
                raise
            except BaseException as last:
                error = last
        if self._spec.on_error == "raise":
            raise self._fail(error, row) from error
        self._log(error, row)
        return None

    # ---- coroutines

    def _run_async(self, function: Any, columns: list[list[Any]]) -> list[Any]:
        out: list[Any] = [None] * self._rows
        numbers = iter(range(self._rows))

        async def work() -> None:
            for row in numbers:
                out[row] = await self._one_async(function, [column[row] for column in columns], row)

        await_on_loop(_all(work, min(self._spec.at_once, self._rows)), self._cancelled)
        return out

    async def _one_async(self, function: Any, args: list[Any], row: int) -> Any:
        import asyncio

        pauses = self._pauses()
        while True:
            try:
                return await function(*args)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                pause = next(pauses, None)
                if pause is None:
                    if self._spec.on_error == "raise":
                        raise self._fail(error, row) from error
                    self._log(error, row)
                    return None
                await asyncio.sleep(_pause_of(error, pause))

    # ---- generators

    def _run_generator(self, function: Any, columns: list[list[Any]]) -> Any:
        values: list[Any] = []
        counts: list[int] = []
        for row in range(self._rows):
            args = [column[row] for column in columns]
            before = len(values)
            try:
                if self._spec.is_async:
                    values.extend(await_on_loop(_listed(function(*args)), self._cancelled))
                else:
                    for value in function(*args):
                        values.append(value)
                        if len(values) % _STEP_MAX == 0:
                            self._stop_if_cancelled()
            except _native.GarCancelledError:
                raise
            except BaseException as error:
                del values[before:]
                if self._spec.retries == 0:
                    raise self._fail(error, row) from error
                retry = functools.partial(self._again, function)
                try:
                    values.extend(self._retried(error, retry, args))
                except _native.GarCancelledError:
                    raise
                except BaseException as last:
                    raise self._fail(last, row) from last
            if len(values) == before:
                values.append(None)
            counts.append(len(values) - before)
            self._stop_if_cancelled()
        return self._array(values), _native.array(counts)

    def _again(self, function: Any, *args: Any) -> list[Any]:
        if self._spec.is_async:
            made: list[Any] = await_on_loop(_listed(function(*args)), self._cancelled)
            return made
        return list(function(*args))

    # ---- whole columns

    def _series(self) -> list[Any]:
        return list(map(Series._of, self._template.names, self._fields()))

    def _run_groups(self, function: Any) -> Any:
        columns = self._series()
        values: list[Any] = []
        counts: list[int] = []
        first = 0
        for _, run in itertools.groupby(self._batch.fields()[0].to_list()):
            end = first + sum(1 for _ in run)
            args = [column.slice(first, end) for column in columns]
            before = len(values)
            values.extend(self._of_group(function, args, end - first))
            counts.append(len(values) - before)
            counts.extend([0] * (end - first - 1))
            first = end
            self._stop_if_cancelled()
        return self._array(values), _native.array(counts)

    def _of_group(self, function: Any, args: list[Any], rows: int) -> list[Any]:
        def once(*columns: Any) -> list[Any]:
            result = function(*columns)
            if self._spec.is_async:
                result = await_on_loop(result, self._cancelled)
            return self._array(result).to_list()

        try:
            try:
                return once(*args)
            except _native.GarCancelledError:
                raise
            except BaseException as error:
                return list(self._retried(error, once, args))
        except _native.GarCancelledError:
            raise
        except BaseException as error:
            raise _failed(
                f"UDF '{self._spec.name}' failed on a group of {rows} rows: {told(error)} (inputs: {self._inputs()})"
            ) from error

    def _run_batch(self, function: Any) -> Any:
        columns = self._series()
        try:
            return self._checked(function, columns, self._rows)
        except _native.GarCancelledError:
            raise
        except BaseException as error:
            failure = error
        if self._spec.retries > 0:
            retry = functools.partial(self._checked, function, rows=self._rows)
            try:
                return self._retried(failure, lambda *args: retry(list(args)), columns)
            except _native.GarCancelledError:
                raise
            except BaseException as last:
                failure = last
        if self._spec.on_error != "raise":
            values: list[Any] = []
            self._halve(function, columns, 0, self._rows, failure, values)
            return _native.array(values)
        if isinstance(failure, _Wrong):
            raise failure.error
        raise self._fail(failure, None) from failure

    def _checked(self, function: Any, columns: list[Any], rows: int) -> _native.Array:
        """The function's result, of the right length."""
        result = function(*columns)
        if self._spec.is_async:
            result = await_on_loop(result, self._cancelled)
        try:
            array = self._array(result)
        except _native.GarTypeError as error:
            raise _Wrong(error) from error
        if len(array) != rows:
            text = f"UDF '{self._spec.name}' returned {len(array)} values, expected {rows}"
            raise _Wrong(_native.GarValueError(text))
        return array

    def _halve(
        self, function: Any, columns: list[Any], first: int, end: int, error: BaseException, out: list[Any]
    ) -> None:
        """The rows of a batch that failed, those null that fail alone."""
        if end - first == 1:
            self._log(error, first)
            out.append(None)
            return
        middle = (first + end) // 2
        for low, high in ((first, middle), (middle, end)):
            self._stop_if_cancelled()
            try:
                part: _native.Array | None = self._checked(
                    function, [column.slice(low, high) for column in columns], high - low
                )
            except _native.GarCancelledError:
                raise
            except BaseException as failure:
                part, error = None, failure
            if part is None:
                self._halve(function, columns, low, high, error, out)
            else:
                out.extend(part.to_list())


class _Wrong(Exception):
    """A result that is no column of the right length; `error` says it to the user."""

    def __init__(self, error: _native.GarError) -> None:
        super().__init__(str(error))
        self.error = error


# ---- in a worker process


class _Columns:
    """A batch as the worker has it."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: list[_native.Array], rows: int) -> None:
        self._columns = columns
        self._rows = rows

    def fields(self) -> list[_native.Array]:
        return self._columns

    def field_lists(self) -> list[list[Any]]:
        return [column.to_list() for column in self._columns]

    def __len__(self) -> int:
        return self._rows


class ProcessActor:
    """A user function in a worker process. Retries and bad rows are the pool's matter."""

    def __init__(
        self, spec: Spec, template: Template, dtype: str, name: str, index: int, count: int, *schemas: Any
    ) -> None:
        self._dtype = dtype
        self._runner = Runner(spec, template, 0)
        shared = self._runner._shared
        if shared is not None:
            try:
                shared.get()
            except _native.GarCallbackError as error:
                raise error.__cause__ or error from None

    def call(self, columns: list[_native.Array], rows: int) -> list[_native.Array]:
        try:
            array = self._runner(_Columns(columns, rows), 0, _never)
        except _native.GarCallbackError as error:
            raise error.__cause__ or error from None
        if array.type_text() != self._dtype:
            array = self._adapted(array)
        return [array]

    def _adapted(self, array: _native.Array) -> _native.Array:
        given, wanted = array.type_text(), self._dtype
        numbers = ("int", "uint", "float")
        is_close = given == "null" or (
            given.startswith(numbers)
            and wanted.startswith(numbers)
            and (wanted.startswith("float") or not given.startswith("float"))
        )
        if not is_close and given.split("[")[0].split("(")[0] != wanted.split("[")[0].split("(")[0]:
            raise _native.GarTypeError(
                f"UDF '{self._runner._spec.name}' returned {given}, expected {wanted}; "
                "convert the values, or declare the type they have"
            )
        return Series("result", array).cast(wanted)._array

    def close(self) -> None:
        self._runner.close()


def _never() -> bool:
    return False


def _pause_of(error: BaseException, pause: float) -> float:
    after = getattr(error, "retry_after", None)
    if isinstance(after, (int, float)) and not isinstance(after, bool) and after >= 0:
        return float(after)
    return pause


# ---- the event loop of async functions

_loop_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def _forget_loop() -> None:
    global _loop, _loop_lock
    _loop = None
    _loop_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_loop)


def _event_loop() -> asyncio.AbstractEventLoop:
    """The loop of the thread Python-Async, started at its first use."""
    global _loop
    import asyncio

    with _loop_lock:
        if _loop is None:
            loop = asyncio.new_event_loop()

            def run() -> None:
                _native.name_thread("Python-Async")
                asyncio.set_event_loop(loop)
                loop.run_forever()

            threading.Thread(target=run, name="Python-Async", daemon=True).start()
            _loop = loop
        return _loop


def await_on_loop(awaitable: Any, cancelled: Cancelled) -> Any:
    """The result of a coroutine that runs on the event loop; it is cancelled when the query is."""
    import asyncio
    import concurrent.futures

    async def run() -> Any:
        return await awaitable

    future = asyncio.run_coroutine_threadsafe(run(), _event_loop())
    while not concurrent.futures.wait([future], _TICK_S).done:
        if cancelled():
            future.cancel()
            raise _native.GarCancelledError("the query has been stopped")
    return future.result()


async def _all(work: Callable[[], Any], count: int) -> None:
    """Workers side by side; the first failure stops the others."""
    import asyncio

    tasks = [asyncio.ensure_future(work()) for _ in range(count)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _listed(stream: Any) -> list[Any]:
    return [value async for value in stream]
