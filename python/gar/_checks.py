# SPDX-License-Identifier: Apache-2.0
"""Checks of what users pass in, and the exceptions of others: every error that leaves the package is a GarError."""

from __future__ import annotations

import importlib
import operator
import os
import sys

from gar import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_SECONDS_MAX = 10**9  # of time limits
_SHOWN = 60  # characters of a value that a message shows
INT64_MAX = (1 << 63) - 1


def shown(value: Any) -> str:
    """A value for a message: its repr on one line, cut; where that fails, its type."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"a {type(value).__name__}"
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return (
        text
        if isinstance(value, (bool, int, float, str, bytes, type(None)))
        else f"{type(value).__name__} {text}"
    )


def integer(what: str, value: Any, least: int = -INT64_MAX - 1, most: int = INT64_MAX) -> int:
    """The value as an int within bounds; numpy's integers are good, bool and floats are not."""
    if isinstance(value, bool) or _is_numpy_bool(value) or not hasattr(type(value), "__index__"):
        raise _native.GarTypeError(f"{what} must be an integer, got {shown(value)}")
    try:
        number = operator.index(value)
    except TypeError:  # an array of several values
        raise _native.GarTypeError(f"{what} must be an integer, got {shown(value)}") from None
    except Exception as error:
        raise _native.adopted(error) from error
    if number < least:
        wanted = {0: "not be negative", 1: "be at least 1"}.get(least, f"be at least {least}")
        raise _native.GarValueError(f"{what} must {wanted}, got {shown(value)}")
    if number > most:
        raise _native.GarValueError(f"{what} must be at most {most}, got {shown(value)}")
    return number


def number(what: str, value: Any) -> float:
    """The number as a float; NaN is none."""
    if isinstance(value, (bool, str)) or not hasattr(type(value), "__float__"):
        raise _native.GarTypeError(f"{what} is a number, got {shown(value)}")
    try:
        made = float(value)
    except TypeError:  # an array of several values
        raise _native.GarTypeError(f"{what} is a number, got {shown(value)}") from None
    except Exception as error:
        raise _native.adopted(error) from error
    if made != made:
        raise _native.GarValueError(f"{what} is a number, got nan")
    return made


def flag(what: str, value: Any) -> bool:
    """The value as a bool; numpy's booleans are good, numbers are not."""
    if isinstance(value, bool):
        return value
    if _is_numpy_bool(value):
        return bool(value)
    raise _native.GarTypeError(f"{what} must be True or False, got {shown(value)}")


def _is_numpy_bool(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", None) == "b" and getattr(value, "ndim", 1) == 0


def text(what: str, value: Any) -> str:
    """The value as a str."""
    if not isinstance(value, str):
        raise _native.GarTypeError(f"{what} must be a str, got {shown(value)}")
    return value


def optional_text(what: str, value: Any) -> str | None:
    return None if value is None else text(what, value)


def milliseconds(what: str, value: Any) -> int:
    """A time limit in seconds as milliseconds, at least one; None is 0, no limit."""
    if value is None:
        return 0
    if isinstance(value, str) or not hasattr(type(value), "__float__"):
        raise _native.GarTypeError(f"{what} is a number of seconds, or None, got {shown(value)}")
    if not isinstance(value, float):
        value = integer(what, value)
    if not value >= 0:  # NaN neither
        raise _native.GarValueError(f"{what} must not be negative, got {shown(value)}")
    return max(1, int(min(value, _SECONDS_MAX) * 1000))


def path(what: str, value: Any) -> str:
    """The value as a path of text, ~ expanded."""
    if not isinstance(value, (str, os.PathLike)):
        raise _native.GarTypeError(f"{what} must be a str or a path object, got {shown(value)}")
    found = foreign(os.fspath, value)
    if not isinstance(found, str):
        raise _native.GarTypeError(f"{what} must be a path of text, got {shown(found)}")
    if not found:
        raise _native.GarValueError(f"{what} is empty")
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            raise _native.GarValueError(
                f"{what} is not valid UTF-8: {shown(found)}; rename it, or reach it by a link with another name"
            ) from None
    expanded: str = foreign(os.path.expanduser, found)
    return expanded


def items(what: str, value: Any) -> list[Any]:
    """What an iterable has, as a list; a text is one value and no iterable."""
    if isinstance(value, list):
        return value
    if isinstance(value, (str, bytes, bytearray)) or not hasattr(type(value), "__iter__"):
        raise _native.GarTypeError(f"{what} must be a list, got {shown(value)}")
    found: list[Any] = foreign(list, value)
    return found


def pairs(what: str, value: Any) -> list[tuple[Any, Any]]:
    """The items of a dict or another mapping."""
    if not hasattr(value, "items") or not hasattr(value, "keys"):
        raise _native.GarTypeError(f"{what} must be a dict, got {shown(value)}")
    found: list[tuple[Any, Any]] = foreign(lambda: list(value.items()))
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in found):
        raise _native.GarTypeError(f"{what} must be a dict, got {shown(value)}")
    return found


def io_config(value: Any) -> None:
    """Storage settings; files are local, so that they are only looked at."""
    from gar.io import IOConfig

    if value is not None and not isinstance(value, IOConfig):
        raise _native.GarTypeError(f"io_config must be an IOConfig, got {shown(value)}")


def package(name: str, what: str) -> ModuleType:
    """An optional package, or an error that says what to install."""
    there = sys.modules.get(name)
    if there is not None:
        return there
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _native.GarImportError(
            f"{what} needs the package {name}: pip install {name}", name=name
        ) from error


def foreign(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of code that is not ours; what it raises becomes a GarError with the exception as its cause."""
    try:
        return call(*args, **options)
    except _native.GarError:
        raise
    except Exception as error:
        raise _native.adopted(error) from error
