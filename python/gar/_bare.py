# SPDX-License-Identifier: Apache-2.0
"""The package in a worker process: its modules come when something asks for them, and the whole when user code does.

A worker needs a few of them, and its start is a good part of what a short query costs. _worker.command() puts a module `gar`
that has nothing but its path into sys.modules; here it gets the means to become the package.
"""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_lock = threading.RLock()
_begun: list[bool] = []


class _Bare(type(sys)):  # type: ignore[misc]
    """A name that is not here yet, and is no module of ours, runs the package's __init__, once."""

    def __getattr__(self, name: str) -> Any:
        if name[:1] != "_" or name == "__version__":
            with _lock:
                if not _begun:
                    _begun.append(True)
                    _run_init(self)
                if name in self.__dict__:
                    return self.__dict__[name]
                if "__getattr__" in self.__dict__:
                    return self.__dict__["__getattr__"](name)
        raise AttributeError(f"module 'gar' has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # `udf` is a module, but in the package a function of it.
        if name != "udf" or not isinstance(value, type(sys)):
            super().__setattr__(name, value)


def _run_init(package: Any) -> None:
    import importlib.util

    folder = package.__path__[0]
    spec = importlib.util.spec_from_file_location(
        "gar", f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import the package gar from {folder}")
    package.__spec__ = spec
    package.__loader__ = spec.loader
    package.__file__ = spec.origin
    spec.loader.exec_module(package)
    package.__class__ = type(sys)


sys.modules["gar"].__class__ = _Bare
