# SPDX-License-Identifier: Apache-2.0
"""The worker process of Python actors: what runs there, and how it is started."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The package with nothing in it; _bare.py lets it become whole.
_START = """import sys
sys.path[:] = {path}
gar = type(sys)("gar")
gar.__path__ = [{package}]
gar.__spec__ = type(sys.__spec__)("gar", None, is_package=True)
sys.modules["gar"] = gar
import gar._bare
from gar._worker import main
del gar
main()
"""


def command() -> list[str]:
    """The program and arguments of a worker: this interpreter with its flags, its path, and nothing of the current folder.

    GAR_PYTHON names the interpreter where this program is not one (an application that embeds Python).
    """
    import json
    import subprocess

    program = os.environ.get("GAR_PYTHON") or sys.executable
    if not program:
        raise RuntimeError("no Python interpreter is known to run workers with; set GAR_PYTHON to its path")
    path = json.dumps([entry for entry in sys.path if entry])
    start = _START.format(path=path, package=json.dumps(os.path.dirname(os.path.abspath(__file__))))
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [program, *flags, "-c", start]


def describe(error: BaseException) -> tuple[str, str, str, int]:
    """What an exception says, whatever its methods do: type, text, traceback, nanoseconds to wait before a retry or -1."""
    import traceback

    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        text = "(its text cannot be made: __str__ fails)"
    try:
        trace = "".join(traceback.format_exception(type(error), error, _users(error.__traceback__)))
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


def _users(trace: Any) -> Any:
    """A traceback without the frames of this package that it begins with."""
    folder, rest = os.path.dirname(__file__), trace
    while rest is not None and os.path.dirname(rest.tb_frame.f_code.co_filename) == folder:
        rest = rest.tb_next
    return trace if rest is None else rest


class Shell:
    """Stands between the worker's C code and the user's object; never raises."""

    def __init__(self) -> None:
        self._actor: Any = None

    def create(self, name: str, index: int, count: int, code: bytes, inputs: Any, outputs: Any) -> Any:
        """Make the actor: `code` is a pickled function of (name, index, count, input schema, output schema)."""
        import pickle

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
            import traceback

            traceback.print_exc()


def main() -> None:
    """Serve the pool that started this process, then leave without the interpreter's tear-down of other people's threads."""
    from gar import _native

    for stream in (
        sys.stdout,
        sys.stderr,
    ):  # a write for each line, so that lines of several workers do not mix
        if stream is not None:
            stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    status = _native.run_worker(Shell())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
