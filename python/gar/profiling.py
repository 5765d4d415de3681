# SPDX-License-Identifier: Apache-2.0
"""Traces of what the engine's threads do, and the progress line of notebooks."""

from __future__ import annotations

import os
import sys

from gar import _checks, _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

# enum gar_progress_mode
_MODES = {"off": 0, "auto": 1, "on": 2}


class trace:
    """Write a trace of all queries in a with block: `with gar.trace("trace.json"): df.collect()`.

    The file shows one track for each thread in ui.perfetto.dev and chrome://tracing: tasks, reads, writes and
    waits. One trace is written at a time. The environment variable GAR_TRACE=path traces a whole process.
    """

    __module__ = "gar"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = _checks.path("path", path)

    def __enter__(self) -> trace:
        _native.trace_start(self._path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _native.trace_stop()


def progress_mode(value: Any) -> int:
    """The engine's number for "auto", "on" or True, "off" or False."""
    name = ("on" if value else "off") if isinstance(value, bool) else value
    if not isinstance(name, str) or name not in _MODES:
        raise _native.GarValueError(f"progress must be 'auto', 'on' or 'off', got {_checks.shown(value)}")
    _show_in_notebook(name != "off")
    return _MODES[name]


class _NotebookLine:
    """One line of text in the output of the cell that runs; emptied when the query is through."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, line: str | None) -> None:
        from IPython.display import display

        data = {"text/plain": line or ""}
        if self._handle is None:
            if line is not None:
                self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
            if line is None:
                self._handle = None


def _is_notebook() -> bool:
    """Whether a kernel runs this process: its standard error is no terminal, but it can show things."""
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _show_in_notebook(wanted: bool) -> None:
    _native.show_progress(_NotebookLine() if wanted and _is_notebook() else None)


if os.environ.get("GAR_PROGRESS") != "0" and _is_notebook():
    _show_in_notebook(True)
