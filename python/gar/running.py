# SPDX-License-Identifier: Apache-2.0
"""Queries that run in the background: handles to look at them, stop them, wait for them, and asyncio."""

from __future__ import annotations

import _thread
import os

from gar import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Generator
    from typing import Any

    from gar.dataframe import DataFrame
    from gar.recordbatch import RecordBatch

# enum gar_run_mode
_BACKGROUND = 1
_TO_END = 2
_BUSY_S = 0.01  # how long a task pauses while a thread waits for the same handle


class Progress:
    """What a query has done so far."""

    __module__ = "gar"
    __slots__ = (
        "bytes",
        "elapsed",
        "memory_bytes",
        "memory_peak_bytes",
        "operators",
        "rows",
        "rows_read",
        "state",
        "waiting",
    )
    state: str  # "running", "done", "cancelled" or "failed"
    elapsed: float  # seconds since the start; stands still after the end
    rows_read: int  # rows that its scans gave
    rows: int  # of the result, made so far
    bytes: int  # of the result, made so far
    memory_bytes: int  # memory for columns that it holds
    memory_peak_bytes: int
    operators: list[dict[str, Any]]  # as in DataFrame.metrics
    waiting: str | None  # what a query waits for that has not moved for a while

    def __init__(self, found: dict[str, Any]) -> None:
        for name in self.__slots__:
            setattr(self, name, found[name])

    def __repr__(self) -> str:
        return (
            f"Progress({self.state} after {self.elapsed:.3f} s, {self.rows_read} rows read, "
            f"{self.rows} made, {self.memory_bytes} bytes held)"
        )


class QueryHandle:
    """A query that runs in the background, made by DataFrame.start().

    It may be used from several threads. Dropping the handle stops the query.
    """

    __module__ = "gar"
    __slots__ = ("__weakref__", "_lock", "_made", "_result")
    _lock: _thread.LockType  # held by the thread that waits in the engine
    _made: DataFrame | None
    _result: _native.Result

    def __init__(self, *args: object, **named: object) -> None:
        raise _native.GarTypeError("handles are made by DataFrame.start()")

    @classmethod
    def _start(cls, frame: _native.Frame, timeout_ms: int) -> QueryHandle:
        made = object.__new__(cls)
        made._lock = _thread.allocate_lock()
        made._made = None
        made._result = frame.run(0, timeout_ms, True, _TO_END)
        return made

    def progress(self) -> Progress:
        """What the query has done so far. Never waits."""
        found = self._result.progress()
        profile = self._result.profile().read()
        return Progress({**found, "waiting": profile["waiting"], "operators": profile["operators"]})

    @property
    def metrics(self) -> dict[str, Any]:
        """What the query and its operators have done so far; see DataFrame.metrics."""
        return self._result.profile().read()

    def done(self) -> bool:
        """Whether the query has ended, well or not: result() would not wait."""
        return bool(self._result.progress()["state"] != "running")

    def cancel(self) -> None:
        """Stop the query: result() raises GarCancelledError. A query that has ended keeps its rows."""
        self._result.cancel()

    def result(self, timeout: float | None = None) -> DataFrame:
        """The rows as a frame over memory. Waits for the end of the query and raises its error.

        timeout: wait at most so many seconds, then raise GarTimeoutError; the query goes on.
        """
        from gar.dataframe import _milliseconds

        timeout_ms = -1 if timeout is None else _milliseconds(timeout)
        if self._made is None and self._lock.acquire(timeout=-1 if timeout is None else timeout_ms / 1000):
            try:
                self._take(timeout_ms)
            finally:
                self._lock.release()
        if self._made is None:
            raise _native.GarTimeoutError(
                f"the query has not ended within {timeout} s; it goes on: wait again, or cancel it"
            )
        return self._made

    def _take(self, timeout_ms: int) -> DataFrame | None:
        """With the lock: the result if it is there in time."""
        if self._made is None:
            frame = self._result.collect(timeout_ms)
            if frame is not None:
                from gar.dataframe import DataFrame

                self._made = DataFrame._of(frame, is_collected=True)
        return self._made

    def __await__(self) -> Generator[Any, None, DataFrame]:
        """The rows as a frame over memory. A task that is cancelled here stops the query."""
        return self._wait().__await__()

    async def _wait(self) -> DataFrame:
        import asyncio

        try:
            while True:
                if self._made is not None:
                    return self._made
                if not self._lock.acquire(False):
                    await asyncio.sleep(_BUSY_S)
                    continue
                try:
                    made = self._take(0)
                    fd = -1 if made is not None else self._result.fd()
                finally:
                    self._lock.release()
                if fd >= 0:
                    await _readable(asyncio.get_running_loop(), fd)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __repr__(self) -> str:
        return f"<gar.QueryHandle {self.progress()!r}>"


class BatchStream:
    """The record batches of a running query for `async for`; made by iterating a frame so.

    The query is never far ahead of its reader. Dropping the stream, or cancelling the task that waits for it, stops it.
    """

    __module__ = "gar"
    __slots__ = ("_result",)
    _result: _native.Result

    def __init__(self, *args: object, **named: object) -> None:
        raise _native.GarTypeError("batch streams are made by `async for batch in frame`")

    @classmethod
    def _start(cls, frame: _native.Frame, batch_rows: int) -> BatchStream:
        made = object.__new__(cls)
        made._result = frame.run(batch_rows, 0, False, _BACKGROUND)
        return made

    def __aiter__(self) -> BatchStream:
        return self

    async def __anext__(self) -> RecordBatch:
        import asyncio

        from gar.recordbatch import RecordBatch

        try:
            await asyncio.sleep(0)  # other tasks have their turn, also when batches are always there
            while True:
                try:
                    batch = self._result.poll()
                except StopIteration:
                    raise StopAsyncIteration from None
                if batch is not None:
                    return RecordBatch(batch)
                await _readable(asyncio.get_running_loop(), self._result.fd())
        except asyncio.CancelledError:
            self._result.cancel()
            raise


async def _readable(loop: AbstractEventLoop, fd: int) -> None:
    """Until the descriptor is readable. It is watched under a number of its own: others may wait for it too."""
    own = os.dup(fd)
    ready = loop.create_future()

    def tell() -> None:
        loop.remove_reader(own)
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(own, tell)
        await ready
    finally:
        loop.remove_reader(own)
        os.close(own)
