# SPDX-License-Identifier: Apache-2.0
"""Rows and batches of a running query as Python iterators, which several threads may share."""

from __future__ import annotations

import itertools
import threading

from gar import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_PIECE_ROWS = 512  # rows that are turned into objects at once: an open iterator holds few of them


class Batches:
    """The batches of a result, each made into something by `wrap`. A failed query fails at every further step."""

    __slots__ = ("_lock", "_result", "_wrap")

    def __init__(self, result: _native.Result, wrap: Callable[[_native.Array], Any]) -> None:
        self._lock = threading.RLock()
        self._result: _native.Result | None = result
        self._wrap = wrap

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if self._result is None:
                raise StopIteration
            batch = next(self._result)
        return self._wrap(batch)

    def close(self) -> None:
        """Stop the query; no further batch comes."""
        with self._lock:
            self._result = None


class Rows:
    """The rows of a result as dicts. Each row goes to one of the threads that read."""

    __slots__ = ("_batches", "_first", "_lock", "_names", "_piece", "_rows")

    def __init__(self, result: _native.Result, names: list[str]) -> None:
        self._lock = threading.RLock()
        self._batches: _native.Result | None = result
        self._names = names
        self._piece: _native.Array | None = None  # the batch at work
        self._first = 0  # its rows that were turned into objects
        self._rows: Iterator[dict[str, Any]] = iter(())

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> dict[str, Any]:
        for row in self._rows:
            return row
        with self._lock:
            while True:
                for row in self._rows:
                    return row
                self._refill()

    def _refill(self) -> None:
        if self._piece is None or self._first >= len(self._piece):
            if self._batches is None:
                raise StopIteration
            self._piece = None
            self._piece, self._first = next(self._batches), 0
        batch, first, names = self._piece, self._first, self._names
        if not names:
            self._rows = iter([{} for _ in range(min(_PIECE_ROWS, len(batch) - first))])
            self._first = first + _PIECE_ROWS
            return
        columns = batch.field_lists(first, _PIECE_ROWS)  # what fails here fails again at the next step
        self._first = first + _PIECE_ROWS
        # In C from here to the next piece, so that a step is whole even when threads share the iterator.
        self._rows = map(dict, map(zip, itertools.repeat(names), zip(*columns, strict=True)))

    def close(self) -> None:
        """Stop the query; no further row comes."""
        with self._lock:
            self._batches = self._piece = None
            self._rows = iter(())
