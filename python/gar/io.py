# SPDX-License-Identifier: Apache-2.0
"""Reading files, and the settings of object stores."""

from __future__ import annotations

import os

from gar import _checks, _native
from gar.dataframe import DataFrame
from gar.datatype import TimeUnit
from gar.schema import _given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Paths = str | os.PathLike[str] | list[str] | list[os.PathLike[str]]

_S3_NAMES = (
    "region_name",
    "endpoint_url",
    "key_id",
    "access_key",
    "session_token",
    "credentials_provider",
    "buffer_time",
    "max_connections",
    "num_tries",
    "retry_mode",
    "retry_initial_backoff_ms",
    "connect_timeout_ms",
    "read_timeout_ms",
    "anonymous",
    "use_ssl",
    "verify_ssl",
    "check_hostname_ssl",
    "requester_pays",
    "force_virtual_addressing",
    "profile_name",
    "multipart_size",
    "multipart_max_concurrency",
    "custom_retry_msgs",
)
_SECRETS = ("key_id", "access_key", "session_token", "credentials_provider")
_IO_NAMES = (
    "s3",
    "azure",
    "gcs",
    "http",
    "unity",
    "hf",
    "tos",
    "gravitino",
    "cos",
    "goosefs",
    "hdfs",
    "opendal_backends",
    "protocol_aliases",
    "disable_suffix_range",
)


class _Settings:
    """Named settings; unknown names are errors, secrets are never printed."""

    __slots__ = ("_given",)
    _names: tuple[str, ...] = ()

    def __init__(self, **given: Any) -> None:
        for name in given:
            if name not in self._names:
                raise _native.GarTypeError(
                    f"{type(self).__name__} has no setting {name!r}; known are {', '.join(self._names)}"
                )
        self._given = given

    def replace(self, **changes: Any) -> Any:
        """The same settings but for some."""
        return type(self)(**{**self._given, **changes})

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._names:
            return self._given.get(name)
        raise _native.GarAttributeError(f"{type(self).__name__} has no setting {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._given == self._given

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(sorted(self._given))))

    def __repr__(self) -> str:
        shown = (
            f"{k}={'***' if k in _SECRETS and v is not None else repr(v)}" for k, v in self._given.items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class S3Config(_Settings):
    """Settings of S3 and stores that speak its protocol."""

    __module__ = "gar.io"
    __slots__ = ()
    _names = _S3_NAMES

    @classmethod
    def from_env(cls) -> S3Config:
        """What the AWS environment variables say."""
        names = {
            "region_name": ("AWS_REGION", "AWS_DEFAULT_REGION"),
            "endpoint_url": ("AWS_ENDPOINT_URL",),
            "key_id": ("AWS_ACCESS_KEY_ID",),
            "access_key": ("AWS_SECRET_ACCESS_KEY",),
            "session_token": ("AWS_SESSION_TOKEN",),
            "profile_name": ("AWS_PROFILE",),
        }
        found = {}
        for name, variables in names.items():
            value = next((os.environ[v] for v in variables if v in os.environ), None)
            if value is not None:
                found[name] = value
        return cls(**found)


class IOConfig(_Settings):
    """Settings of all kinds of storage."""

    __module__ = "gar.io"
    __slots__ = ()
    _names = _IO_NAMES


def _paths(path: Any) -> list[str]:
    if path is None or isinstance(path, (int, float)):
        raise _native.GarTypeError(
            f"path must be a str, a path object, or a list of them, got {_checks.shown(path)}"
        )
    items = [path] if isinstance(path, (str, bytes, os.PathLike)) else _checks.items("path", path)
    found = []
    for item in items:
        text = _checks.path("path", item)
        if text.startswith("file://"):
            text = text[7:]
        elif "://" in text.split("/")[0] + "//" and "://" in text:
            scheme = text.split("://")[0]
            raise _native.GarUnsupportedError(f"storage '{scheme}://' is not supported; files must be local")
        found.append(text)
    if not found:
        raise _native.GarValueError("no path given")
    return found


def _refuse(function: str, **options: tuple[Any, Any]) -> None:
    """Options that change a result and are not done yet are errors, not silence."""
    for name, (value, default) in options.items():
        if value is not default and not (isinstance(value, bool) and value == default):
            raise _native.GarUnsupportedError(f"{function} does not support {name}={_checks.shown(value)}")


def read_parquet(
    path: Paths,
    row_groups: list[list[int]] | None = None,
    infer_schema: bool = True,
    schema: Any = None,
    io_config: IOConfig | None = None,
    file_path_column: str | None = None,
    hive_partitioning: bool = False,
    coerce_int96_timestamp_unit: Any = None,
    ignore_corrupt_files: bool = False,
    **private: Any,
) -> DataFrame:
    """Parquet files: one path, a list, a glob or a folder. Footers are read now, data when the frame runs.

    schema: {name: type}; the columns wanted, in the types wanted. file_path_column: a column of that name
    tells the file of each row.
    """
    _check_private("read_parquet", private)
    _checks.io_config(io_config)
    _checks.flag("infer_schema", infer_schema)
    _refuse(
        "read_parquet",
        row_groups=(row_groups, None),
        hive_partitioning=(hive_partitioning, False),
        ignore_corrupt_files=(ignore_corrupt_files, False),
    )
    if coerce_int96_timestamp_unit is not None and str(TimeUnit(coerce_int96_timestamp_unit)) != "us":
        _refuse("read_parquet", coerce_int96_timestamp_unit=(coerce_int96_timestamp_unit, None))
    names, types = _given(schema)
    file_path_column = _checks.optional_text("file_path_column", file_path_column)
    return DataFrame._of(_native.read_parquet(_paths(path), names, types, file_path_column))


def read_csv(
    path: Paths,
    infer_schema: bool = True,
    schema: Any = None,
    has_headers: bool = True,
    delimiter: str | None = None,
    double_quote: bool = True,
    quote: str | None = None,
    escape_char: str | None = None,
    comment: str | None = None,
    allow_variable_columns: bool = False,
    io_config: IOConfig | None = None,
    file_path_column: str | None = None,
    hive_partitioning: bool = False,
    ignore_corrupt_files: bool = False,
    null_text: str | None = None,
    **private: Any,
) -> DataFrame:
    """CSV files, plain, gzip or zstd: one path, a list, a glob or a folder. A sample is read now for the types.

    schema: {name: type} for columns whose types are not to be inferred. quote="" switches quoting off.
    null_text: an unquoted text that means null besides the empty one.
    """
    _check_private("read_csv", private)
    _checks.io_config(io_config)
    text = _checks.optional_text
    _refuse(
        "read_csv",
        hive_partitioning=(hive_partitioning, False),
        ignore_corrupt_files=(ignore_corrupt_files, False),
    )
    names, types = _given(schema)
    return DataFrame._of(
        _native.read_csv(
            _paths(path),
            names,
            types,
            text("file_path_column", file_path_column),
            _checks.flag("has_headers", has_headers),
            "," if delimiter is None else _checks.text("delimiter", delimiter),
            '"' if quote is None else _checks.text("quote", quote) or None,
            text("escape_char", escape_char),
            _checks.flag("double_quote", double_quote),
            text("comment", comment),
            _checks.flag("allow_variable_columns", allow_variable_columns),
            _checks.flag("infer_schema", infer_schema),
            text("null_text", null_text),
        )
    )


def from_glob_path(path: Paths, io_config: IOConfig | None = None) -> DataFrame:
    """One row for each file: "path", "size" in bytes, "num_rows" (null: files are not looked into).

    path: a file, a list, a glob or a folder, as for the readers; "folder/**" gives all files under a folder. Files are listed
    now; that nothing matches is an error.
    """
    _checks.io_config(io_config)
    return DataFrame._of(_native.read_files(_paths(path), False, False))


def read_blob(
    path: Paths, *, max_connections: int = 32, on_error: str = "raise", io_config: IOConfig | None = None
) -> DataFrame:
    """One row for each file: "path", "size" and "content", its bytes. Files are listed now, and read when the frame runs, those only
    that a condition on path and size leaves.

    path: as for from_glob_path. on_error: "raise", or "null" for a null (and a line in the log) where a file cannot be read.
    max_connections is for object stores.
    """
    _checks.io_config(io_config)
    _checks.integer("max_connections", max_connections, 1)
    if _checks.text("on_error", on_error) not in ("raise", "null"):
        raise _native.GarValueError(f"on_error must be 'raise' or 'null', got {_checks.shown(on_error)}")
    return DataFrame._of(_native.read_files(_paths(path), True, on_error == "null"))


def _check_private(function: str, private: dict[str, Any]) -> None:
    for name in private:
        if name not in ("_chunk_size", "_buffer_size", "_multithreaded_io"):
            raise _native.GarTypeError(f"{function}() got an unexpected keyword argument {name!r}")
