# SPDX-License-Identifier: Apache-2.0
"""The worker process of Python actors: what runs there, and how it is started."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import traceback
from typing import Any


def command() -> list[str]:
    """The program and arguments of a worker: this interpreter with its flags, its path, and nothing of the current folder.

    GAR_PYTHON names the interpreter where this program is not one (an application that embeds Python).
    """
    program = os.environ.get("GAR_PYTHON") or sys.executable
    if not program:
        raise RuntimeError("no Python interpreter is known to run workers with; set GAR_PYTHON to its path")
    path = json.dumps([entry for entry in sys.path if entry])
    start = f"import sys; sys.path[:] = {path}; from gar._worker import main; main()"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [program, *flags, "-c", start]


def describe(error: BaseException) -> tuple[str, str, str, int]:
    """What an exception says, whatever its methods do: type, text, traceback, nanoseconds to wait before a retry or -1."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        text = "(its text cannot be made: __str__ fails)"
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException:
        trace = ""
    wait = -1
    try:
        seconds = getattr(error, "retry_after", None)
        if seconds is not None:
            wait = max(int(float(seconds) * 1e9), 0)
    except BaseException:
        wait = -1
    clean = [
        part.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
        for part in (name, text, trace)
    ]
    return clean[0], clean[1], clean[2], wait


class Shell:
    """Stands between the worker's C code and the user's object; never raises."""

    def __init__(self) -> None:
        self._actor: Any = None

    def create(self, name: str, index: int, count: int, code: bytes, inputs: Any, outputs: Any) -> Any:
        """Make the actor: `code` is a pickled function of (name, index, count, input schema, output schema)."""
        try:
            self._actor = pickle.loads(code)(name, index, count, inputs, outputs)
        except BaseException as error:
            return describe(error)
        return None

    def call(self, columns: list[Any], rows: int) -> Any:
        """A list of columns, or the description of an exception."""
        try:
            return self._actor.call(columns, rows)
        except BaseException as error:
            return describe(error)

    def close(self) -> None:
        """Tear the actor down: its close(), where it has one, then its end."""
        try:
            close = getattr(self._actor, "close", None)
            if close is not None:
                close()
            self._actor = None
        except BaseException:
            traceback.print_exc()


def main() -> None:
    """Serve the pool that started this process, then leave without the interpreter's tear-down of other people's threads."""
    from gar import _native

    status = _native.run_worker(Shell())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
