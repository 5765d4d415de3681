# SPDX-License-Identifier: Apache-2.0
"""Settings of execution and planning, and the choice of the runner."""

from __future__ import annotations

import importlib.util
import os

from gar import _checks, _native
from gar.profiling import progress_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _name_zone_files() -> None:
    """Tell the engine where the package tzdata keeps time zones (`pip install gar[tz]`), for systems that have none."""
    if "GAR_TZDATA" not in os.environ:
        found = importlib.util.find_spec("tzdata")
        if found is not None and found.origin is not None:
            os.environ["GAR_TZDATA"] = os.path.join(os.path.dirname(found.origin), "zoneinfo")


_name_zone_files()  # the engine reads its environment when the first query starts

# Settings that the engine has; the others say how another engine cuts its work and change no result here.
_ENGINE_SETTINGS = {
    "default_morsel_size": "morsel_rows",
    "maintain_order": "maintain_order",
    "memory_limit_bytes": "memory_limit_bytes",
    "memory_limit": "memory_limit_bytes",
    "memory_keep_bytes": "memory_keep_bytes",
    "spill_dir": "spill_dir",
    "spill_limit": "spill_limit_bytes",
    "spill_limit_bytes": "spill_limit_bytes",
    "spill_always": "spill_always",
    "disabled_rules": "disabled_rules",
    "num_threads": "num_threads",
    "io_threads": "io_threads",
    "enable_inline": "enable_inline",
    "compute_nice": "compute_nice",
    "io_nice": "io_nice",
    "compute_batch": "compute_batch",
    "progress": "progress",
    "watchdog_seconds": "watchdog_ms",
}
_ACCEPTED_SETTINGS = frozenset(
    [
        "enable_scan_task_split_and_merge",
        "scan_tasks_min_size_bytes",
        "scan_tasks_max_size_bytes",
        "max_sources_per_scan_task",
        "parquet_split_row_groups_max_files",
        "broadcast_join_size_bytes_threshold",
        "hash_join_partition_size_leniency",
        "sort_merge_join_sort_with_aligned_boundaries",
        "sample_size_for_sort",
        "parquet_target_filesize",
        "parquet_target_row_group_size",
        "parquet_inflation_factor",
        "csv_target_filesize",
        "csv_inflation_factor",
        "json_target_filesize",
        "json_inflation_factor",
        "text_inflation_factor",
        "enable_multi_glob_path_tasks",
        "shuffle_aggregation_default_partitions",
        "partial_aggregation_threshold",
        "high_cardinality_aggregation_threshold",
        "read_sql_partition_size_bytes",
        "enable_native_executor",
        "enable_aqe",
        "enable_ray_tracing",
        "shuffle_algorithm",
        "pre_shuffle_merge_threshold",
        "pre_shuffle_merge_partition_threshold",
        "scantask_max_parallel",
        "native_parquet_writer",
        "min_cpu_per_task",
        "actor_udf_ready_timeout",
        "enable_dynamic_batching",
        "dynamic_batching_strategy",
        "flight_shuffle_dirs",
        "flight_shuffle_compression",
    ]
)

_SIZES = ("memory_limit", "memory_limit_bytes", "memory_keep_bytes", "spill_limit", "spill_limit_bytes")
_preview_rows = 8
_planning: dict[str, Any] = {}


def preview_rows() -> int:
    """Rows that repr shows."""
    return _preview_rows


def _watchdog_ms(seconds: Any) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= 1e9:
        raise _native.GarValueError(f"watchdog_seconds must be 0 or more seconds, got {seconds!r}")
    return int(seconds * 1000)


def set_execution_config(config: Any = None, **settings: Any) -> None:
    """Change settings of queries that start from now on.

    default_morsel_size: rows a batch has at most. maintain_order: keep the order of rows (default True); a sort
    gives its order in any case. num_preview_rows: rows that repr shows. progress: "auto" draws a line in
    terminals and notebooks while a query runs for longer than half a second, "on" everywhere, "off" nowhere.
    watchdog_seconds: how long a query may stand still before the log says what it waits for (0: for ever;
    default 30). memory_limit: bytes, or text as "2GB", that all queries together may use; a query that needs more puts
    rows into files without names in the folder spill_dir (default: the temporary folder), at most spill_limit
    bytes there (0: most of what is free, -1: none). disabled_rules: names of optimizer rules that are left out. memory_keep_bytes,
    num_threads, io_threads, enable_inline: see
    gar_settings in gar.h. Other names of Daft's settings are accepted; they steer parts that this engine
    does not have and change no result.
    """
    global _preview_rows
    if config is not None:
        raise _native.GarTypeError("give settings by name, as set_execution_config(default_morsel_size=...)")
    engine: dict[str, Any] = {}
    preview = _preview_rows
    for name, value in settings.items():
        if value is None:
            continue
        if name == "progress":
            engine["progress"] = value if type(value) is int else progress_mode(value)
        elif name == "watchdog_seconds":
            engine["watchdog_ms"] = _watchdog_ms(value)
        elif name == "spill_dir":
            engine["spill_dir"] = _checks.path(name, value) if value != "" else ""
        elif name == "disabled_rules":
            names = [value] if isinstance(value, str) else _checks.items(name, value)
            engine[name] = ",".join(_checks.text("the name of a rule", rule) for rule in names)
        elif name in _SIZES:
            engine[_ENGINE_SETTINGS[name]] = _native.byte_size(name, value)
        elif name in _ENGINE_SETTINGS:
            is_flag = name in ("maintain_order", "enable_inline", "compute_batch", "spill_always")
            checked = _checks.flag(name, value) if is_flag else _checks.integer(name, value)
            engine[_ENGINE_SETTINGS[name]] = checked
        elif name == "num_preview_rows":
            preview = _checks.integer(name, value, 0)
        elif name not in _ACCEPTED_SETTINGS:
            known = ", ".join([*_ENGINE_SETTINGS, "num_preview_rows"])
            raise _native.GarTypeError(
                f"unknown execution setting {name!r}; known are {known} and Daft's own"
            )
    if engine:
        _native.configure(engine)
    _preview_rows = preview


class execution_config_ctx:
    """Settings for the length of a with block."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        current = _native.settings()
        self._before = {
            name: current[own]
            for name, own in _ENGINE_SETTINGS.items()
            if self._settings.get(name) is not None
        }
        if "watchdog_seconds" in self._before:
            self._before["watchdog_seconds"] /= 1000
        self._before["num_preview_rows"] = _preview_rows
        set_execution_config(**self._settings)

    def __exit__(self, *error: object) -> None:
        set_execution_config(**self._before)


def set_planning_config(
    config: Any = None, default_io_config: Any = None, enable_strict_filter_pushdown: bool | None = None
) -> None:
    """Keep the storage settings that readers use when they are given none."""
    if config is not None:
        raise _native.GarTypeError("give settings by name, as set_planning_config(default_io_config=...)")
    _checks.io_config(default_io_config)
    if default_io_config is not None:
        _planning["default_io_config"] = default_io_config
    if enable_strict_filter_pushdown is not None:
        _planning["enable_strict_filter_pushdown"] = _checks.flag(
            "enable_strict_filter_pushdown", enable_strict_filter_pushdown
        )


class planning_config_ctx:
    """Planning settings for the length of a with block."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._before = dict(_planning)
        set_planning_config(**self._settings)

    def __exit__(self, *error: object) -> None:
        _planning.clear()
        _planning.update(self._before)


def set_runner_native(
    num_threads: int | None = None,
    *,
    io_threads: int | None = None,
    compute_nice: int | None = None,
    io_nice: int | None = None,
    compute_batch: bool | None = None,
) -> None:
    """Run queries in this process, which is what happens anyway, and set up its threads.

    num_threads: compute threads (0: one for each usable CPU, which the affinity mask and a container's quota
    bound). io_threads: threads that read and write files (0: as many, but at most 8). compute_nice, io_nice:
    added to the nice value of the process; what the system refuses is left out. compute_batch: compute threads
    are scheduled as batch work (SCHED_BATCH). None leaves a setting as it is. While queries run, nothing of
    this can change.
    """
    given = {
        "num_threads": num_threads,
        "io_threads": io_threads,
        "compute_nice": compute_nice,
        "io_nice": io_nice,
        "compute_batch": compute_batch,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        if name == "compute_batch":
            changes[name] = _checks.flag(name, value)
        else:
            changes[name] = _checks.integer(
                name, value, 0 if name.endswith("threads") else -(1 << 31), (1 << 31) - 1
            )
    if changes:
        _native.configure(changes)


def set_runner_ray(*args: Any, **options: Any) -> None:
    """Not there: queries run in this process."""
    raise _native.GarUnsupportedError("the Ray runner is not supported; queries run in this process")


def get_or_infer_runner_type() -> str:
    """The runner in use: always "native"."""
    return "native"
