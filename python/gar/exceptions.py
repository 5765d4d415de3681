# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one tree under GarError, each also the built-in that a user would catch. Made from status.def."""

from __future__ import annotations

from gar._native import (
    GarCallbackError,
    GarCancelledError,
    GarCastError,
    GarColumnError,
    GarError,
    GarFileNotFoundError,
    GarFormatError,
    GarInternalError,
    GarIOError,
    GarMemoryError,
    GarOverflowError,
    GarPermissionError,
    GarSyntaxError,
    GarTimeoutError,
    GarTypeError,
    GarUnsupportedError,
    GarValueError,
)

__all__ = [
    "GarCallbackError",
    "GarCancelledError",
    "GarCastError",
    "GarColumnError",
    "GarError",
    "GarFileNotFoundError",
    "GarFormatError",
    "GarIOError",
    "GarInternalError",
    "GarMemoryError",
    "GarOverflowError",
    "GarPermissionError",
    "GarSyntaxError",
    "GarTimeoutError",
    "GarTypeError",
    "GarUnsupportedError",
    "GarValueError",
]
