# SPDX-License-Identifier: Apache-2.0
"""Gar: a dataframe engine on Arrow data.

import gar
from gar import col

gar.from_pydict({"a": [1, 2, 3]}).where(col("a") > 1).show()
"""

from __future__ import annotations

from gar import _native
from gar.context import (
    execution_config_ctx,
    get_or_infer_runner_type,
    planning_config_ctx,
    set_execution_config,
    set_planning_config,
    set_runner_native,
    set_runner_ray,
)
from gar.convert import from_arrow, from_pandas, from_pydict, from_pylist, range
from gar.dataframe import DataFrame, GroupedDataFrame, concat
from gar.datatype import DataType, TimeUnit
from gar.exceptions import GarError
from gar.expressions import CountMode, Expression, coalesce, col, interval, lit, sql_expr, when
from gar.io import IOConfig, S3Config, from_glob_path, read_blob, read_csv, read_parquet
from gar.machine import ResourceRequest, resources, restore_device, set_device_aside
from gar.profiling import trace
from gar.recordbatch import RecordBatch
from gar.running import QueryHandle
from gar.schema import Field, Schema
from gar.series import Series
from gar.udf import RetryAfterError, cls, func, method, udf
from gar.window import Window

__version__: str = _native.version()

__all__ = [
    "CountMode",
    "DataFrame",
    "DataType",
    "Expression",
    "Field",
    "GarError",
    "GroupedDataFrame",
    "IOConfig",
    "QueryHandle",
    "RecordBatch",
    "ResourceRequest",
    "RetryAfterError",
    "S3Config",
    "Schema",
    "Series",
    "TimeUnit",
    "Window",
    "__version__",
    "cls",
    "coalesce",
    "col",
    "concat",
    "execution_config_ctx",
    "from_arrow",
    "from_glob_path",
    "from_pandas",
    "from_pydict",
    "from_pylist",
    "func",
    "functions",
    "get_or_infer_runner_type",
    "install_as",
    "interval",
    "lit",
    "method",
    "planning_config_ctx",
    "range",
    "read_blob",
    "read_csv",
    "read_parquet",
    "resources",
    "restore_device",
    "set_device_aside",
    "set_execution_config",
    "set_planning_config",
    "set_runner_native",
    "set_runner_ray",
    "sql_expr",
    "trace",
    "udf",
    "when",
]

_SUBMODULES = (
    "context",
    "convert",
    "dataframe",
    "datatype",
    "exceptions",
    "expressions",
    "functions",
    "io",
    "machine",
    "profiling",
    "recordbatch",
    "running",
    "schema",
    "series",
    "udf",
    "window",
)


def install_as(name: str) -> None:
    """Let `import name` and `import name.submodule` give this package, for code that imports it itself.

    gar.install_as("daft") makes scripts and libraries written for that flat API run on Gar. Call it before
    they import theirs; a module of that name that was imported already is an error.
    """
    import importlib
    import sys

    if not isinstance(name, str) or not name.isidentifier():
        raise _native.GarValueError(f"not the name of a module: {name!r}")
    package = sys.modules[__name__]
    if sys.modules.get(name, package) is not package:
        raise _native.GarValueError(f"'{name}' is already imported; call install_as before its import")
    modules = {name: package}
    for part in _SUBMODULES:
        modules[f"{name}.{part}"] = importlib.import_module(f"{__name__}.{part}")
    sys.modules.update(modules)


def __getattr__(name: str) -> object:
    if name == "functions":
        import importlib

        return importlib.import_module("gar.functions")
    if name.startswith("Gar"):  # one of the less common exceptions: also where pickle looks for them
        from gar import exceptions

        if name in exceptions.__all__:
            return getattr(exceptions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
