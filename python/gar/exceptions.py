# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one tree under GarError, each also the built-in that a user would catch. Made from status.def."""

from __future__ import annotations

from gar._native import (
    GarAttributeError,
    GarCallbackError,
    GarCancelledError,
    GarCastError,
    GarColumnError,
    GarError,
    GarFileNotFoundError,
    GarFormatError,
    GarImportError,
    GarIndexError,
    GarInternalError,
    GarIOError,
    GarMemoryError,
    GarOverflowError,
    GarPermissionError,
    GarStateError,
    GarSyntaxError,
    GarTimeoutError,
    GarTypeError,
    GarUnsupportedError,
    GarValueError,
)

__all__ = [
    "GarAttributeError",
    "GarCallbackError",
    "GarCancelledError",
    "GarCastError",
    "GarColumnError",
    "GarError",
    "GarFileNotFoundError",
    "GarFormatError",
    "GarIOError",
    "GarImportError",
    "GarIndexError",
    "GarInternalError",
    "GarMemoryError",
    "GarOverflowError",
    "GarPermissionError",
    "GarStateError",
    "GarSyntaxError",
    "GarTimeoutError",
    "GarTypeError",
    "GarUnsupportedError",
    "GarValueError",
    "WorkerTraceback",
]


class WorkerTraceback(GarError):
    """The `__cause__` of an error from a worker process: the traceback of the exception there, as text."""

    __module__ = "gar"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text.rstrip()}\n"""'
