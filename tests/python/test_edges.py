# SPDX-License-Identifier: Apache-2.0
"""The edges of the package: every public callable with every kind of wrong argument.

A call may work, or raise a GarError that is also the built-in a user would catch; nothing else. The table VALID has the
right arguments of every public callable; one of them at a time is replaced by each of the values in wrong_values().
"""

import datetime as dt
import decimal
import inspect
import pathlib

import numpy as np
import pandas as pd
import pytest

import gar
from gar import col
from gar.dataframe import GroupedDataFrame
from gar.expressions import When
from gar.recordbatch import RecordBatch


class Angry:
    """An object whose every road to data ends in an exception of its own."""

    def __iter__(self):
        raise RuntimeError("no rows")

    def __len__(self):
        raise RuntimeError("no length")

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("no stream")

    def __arrow_c_array__(self, requested_schema=None):
        raise RuntimeError("no array")

    def __arrow_c_schema__(self):
        raise RuntimeError("no schema")

    def __fspath__(self):
        raise RuntimeError("no path")

    def __index__(self):
        raise RuntimeError("no number")


class Silly:
    """An object that answers every protocol with something else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return "stream"

    def __arrow_c_array__(self, requested_schema=None):
        return ("schema", "array")

    def __arrow_c_schema__(self):
        return 5

    def __fspath__(self):
        return b"bytes"

    def __array__(self, dtype=None, copy=None):
        return "array"

    __array_interface__ = {"typestr": "<i8", "shape": ("x",), "data": (None, False)}  # noqa: RUF012


def wrong_values():
    return [
        None,
        True,
        0,
        -1,
        7,
        2**31,
        2**63,
        2**70,
        -(2**70),
        1.5,
        float("nan"),
        float("inf"),
        1j,
        "",
        "x",
        "a",
        "nosuch",
        "a\0b",
        "\ud800",
        "x" * 5000,
        b"",
        b"x",
        bytearray(b"x"),
        memoryview(b"xy"),
        [],
        [None],
        [True, False, True],
        [1, "x"],
        [object()],
        ["a", "a"],
        [[1]],
        (),
        (1, 2),
        {},
        {"a": 5},
        {5: "a"},
        {"a": None},
        {1, 2},
        range(3),
        iter([1, 2]),
        object(),
        Angry(),
        Silly(),
        int,
        len,
        lambda *args: 5,
        np.int64(3),
        np.uint8(200),
        np.float64("nan"),
        np.bool_(True),
        np.str_("a"),
        np.datetime64("2020-01-01T00:00:00.000000001"),
        np.timedelta64(5, "Y"),
        np.datetime64("NaT"),
        np.array([1, 2]),
        np.array(3),
        np.array([[1, 2], [3, 4]]),
        np.array([1 + 2j]),
        np.zeros(2, dtype=[("x", "i4")]),
        decimal.Decimal("1e60"),
        decimal.Decimal("nan"),
        decimal.Decimal("1.25"),
        dt.date(9999, 12, 31),
        dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=1))),
        dt.timedelta.max,
        dt.time(1, tzinfo=dt.UTC),
        pathlib.Path("nosuch"),
        pd.NA,
        pd.NaT,
        pd.Timestamp("2020-01-01 00:00:00.000000001"),
        pd.Timestamp.max,
        pd.Timedelta(1, "ns"),
        pd.Period("2020-01"),
        pd.Series([1, 2]),
        pd.Series(pd.period_range("2020-01", periods=2)),
        pd.DataFrame({"a": [1j, None]}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        frame(),
        series(),
        col("a"),
        col("nosuch"),
        col("*"),
        gar.lit(1),
        gar.when(col("a") > 1, 2),
        gar.DataType.int64(),
        gar.Field("a", gar.DataType.int64()),
        gar.Schema([]),
        frame().groupby("s"),
        gar.DataFrame,
    ]


def frame():
    return gar.from_pydict({"a": [1, 2, None], "s": ["x", None, "z"], "f": [1.5, float("nan"), None]})


def series():
    return gar.Series.from_pylist([1, 2, None], "a")


def batch():
    return next(frame().iter_partitions())


def schema():
    return frame().schema()


# ---- what is called, with arguments that are right: (object or class, name) -> arguments

FRAME = {
    "select": ["a"],
    "with_column": ["b", 1],
    "with_columns": [{"b": 1}],
    "with_column_renamed": ["a", "b"],
    "with_columns_renamed": [{"a": "b"}],
    "exclude": ["a"],
    "where": ["a > 1"],
    "filter": [col("a") > 1],
    "limit": [2],
    "head": [2],
    "offset": [1],
    "sort": ["a", False, True],
    "distinct": ["a"],
    "unique": ["a"],
    "drop_duplicates": ["a"],
    "drop_null": ["a"],
    "drop_nan": ["f"],
    "join": ["frame", "a", None, None, "inner", "hash", "p", "s"],
    "join_asof": ["frame", "a", None, None, "s", None, None, "nearest", 1, True, "p", "s"],
    "concat": ["frame"],
    "union_all": ["frame"],
    "union": ["frame"],
    "union_by_name": ["frame"],
    "intersect": ["frame"],
    "intersect_all": ["frame"],
    "except_distinct": ["frame"],
    "except_all": ["frame"],
    "union_all_by_name": ["frame"],
    "describe": [],
    "summarize": [],
    "sample": [0.5, None, False, 3],
    "shuffle": [3],
    "unpivot": ["a", ["s"], "variable", "value"],
    "melt": ["a", ["s"]],
    "pivot": ["s", "a", "f", "sum", [1]],
    "transform": [lambda df: df],
    "pipe": [lambda df: df],
    "groupby": ["s"],
    "agg": [col("a").sum()],
    "sum": ["a"],
    "product": ["a"],
    "mean": ["a"],
    "min": ["a"],
    "max": ["a"],
    "stddev": ["a"],
    "var": ["a"],
    "any_value": ["a"],
    "skew": ["a"],
    "median": ["a"],
    "approx_count_distinct": ["a"],
    "count_distinct": ["a"],
    "count": ["a"],
    "num_partitions": [],
    "start": [60],
    "repartition": [2, "a"],
    "into_partitions": [2],
    "into_batches": [2],
    "collect": [3, 60],
    "count_rows": [],
    "to_pydict": [],
    "to_pylist": [],
    "iter_rows": [],
    "iter_partitions": [],
    "to_arrow_iter": [],
    "to_arrow": [],
    "to_pandas": [],
    "write_parquet": ["out"],
    "write_csv": ["out"],
    "explain": [],
    "show": [],
    "schema": [],
    "__getitem__": ["a"],
    "__contains__": ["a"],
    "__len__": [],
    "__iter__": [],
    "__repr__": [],
    "_repr_html_": [],
    "__arrow_c_stream__": [],
    "__arrow_c_schema__": [],
}
GROUPED = {
    name: ["a"]
    for name in [
        "sum",
        "product",
        "mean",
        "avg",
        "min",
        "max",
        "stddev",
        "var",
        "any_value",
        "skew",
        "median",
        "approx_count_distinct",
        "count_distinct",
        "count",
    ]
} | {
    "agg": [col("a").sum()],
    "string_agg": ["s"],
    "map_groups": [gar.func.batch(lambda a: a, return_dtype="int64")(col("a")).alias("b")],
}
WINDOW = {
    "partition_by": ["a"],
    "order_by": ["a"],
    "rows_between": [-1, 1, 1],
    "groups_between": [-1, 1, 1],
    "exclude": ["ties"],
    "range_between": [-1, 1, 1],
}
EXPRESSION = {
    "apply": [len, "int64"],
    "over": [gar.Window()],
    "alias": ["z"],
    "cast": ["int32"],
    "try_cast": ["int32"],
    "is_in": [[1, 2]],
    "if_else": [1, 2],
    "count": [],
    "name": [],
}
SERIES = {
    "from_pylist": [[1, 2]],
    "from_numpy": [np.array([1])],
    "from_arrow": ["series"],
    "from_pandas": [pd.Series([1])],
    "name": [],
    "rename": ["b"],
    "datatype": [],
    "null_count": [],
    "to_pylist": [],
    "to_arrow": [],
    "to_numpy": [],
    "to_pandas": [],
    "cast": ["int32"],
    "try_cast": ["int32"],
    "is_null": [],
    "not_null": [],
    "fill_null": [0],
    "is_in": [[1]],
    "between": [1, 2],
    "filter": ["mask"],
    "sort": [],
    "slice": [0, 2],
    "head": [2],
    "concat": ["serieses"],
    **{name: [] for name in ["sum", "mean", "min", "max", "stddev", "count", "count_distinct"]},
    "__getitem__": [0],
    "__array__": [],
    **{
        f"__{op}__": [1]
        for op in [
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "radd",
            "rsub",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
        ]
    },
    "__len__": [],
    "__iter__": [],
    "__repr__": [],
    "__arrow_c_array__": [],
    "__arrow_c_schema__": [],
}
BATCH = {
    "schema": [],
    "column_names": [],
    "columns": [],
    "get_column": ["a"],
    "to_pydict": [],
    "to_pylist": [],
    "to_arrow": [],
    "to_arrow_record_batch": [],
    "to_pandas": [],
    "num_rows": [],
}
SCHEMA = {
    "from_pydict": [{"a": "int64"}],
    "from_field_name_and_types": [[("a", "int64")]],
    "from_pyarrow_schema": ["schema"],
    "to_pyarrow_schema": [],
    "column_names": [],
    "to_name_set": [],
    "__getitem__": ["a"],
    "__contains__": ["a"],
}
DATATYPE = {
    "decimal128": [10, 2],
    "time": ["us"],
    "timestamp": ["us", "UTC"],
    "duration": ["us"],
    "list": ["int64"],
    "fixed_size_list": ["int64", 2],
    "struct": [{"a": "int64"}],
    "map": ["int64", "int64"],
    "from_arrow_type": ["type"],
    "from_numpy_dtype": [np.dtype("i4")],
    "from_sql": ["bigint"],
    "infer_from_type": [int],
    "infer_from_object": [5],
    "to_arrow_dtype": [],
}
MODULE = {
    "from_pydict": [{"a": [1, 2]}],
    "from_pylist": [[{"a": 1}]],
    "from_arrow": ["frame"],
    "from_pandas": [pd.DataFrame({"a": [1]})],
    "range": [0, 5, 1, 1],
    "concat": ["frames"],
    "read_parquet": ["in.parquet"],
    "read_csv": ["in.csv"],
    "from_glob_path": ["in.csv"],
    "read_blob": ["in.csv"],
    "col": ["a"],
    "lit": [5],
    "sql_expr": ["a + 1"],
    "coalesce": [col("a"), 1],
    "interval": [],
    "when": [col("a") > 1, 5],
    "Field": ["a", gar.DataType.int64()],
    "Window": [],
    "Schema": [[gar.Field("a", gar.DataType.int64())]],
    "DataType": ["int64"],
    "TimeUnit": ["us"],
    "CountMode": ["all"],
    "DataFrame": [],
    "QueryHandle": [],
    "Series": ["a", [1]],
    "Expression": [],
    "GroupedDataFrame": ["frame", []],
    "RecordBatch": ["batch"],
    "IOConfig": [],
    "S3Config": [],
    "install_as": ["gar_by_another_name"],
    "set_planning_config": [],
    "planning_config_ctx": [],
    "execution_config_ctx": [],
    "set_runner_ray": [],
    "set_runner_native": [],
    "set_execution_config": [],
    "get_or_infer_runner_type": [],
    "ResourceRequest": [1, 0, 1024, 0],
    "resources": [False],
    "set_device_aside": ["no such device", "a reason"],
    "restore_device": ["no such device"],
    "trace": ["trace.json"],
    "func": [len],
    "cls": [Angry],
    "method": [len],
    "udf": [],
}


def few_values():
    """For the many functions of the registry, whose arguments all go one way: one value of each kind."""
    kept = (
        int,
        float,
        complex,
        str,
        bytes,
        list,
        dict,
        np.ndarray,
        np.datetime64,
        pd.Timestamp,
        Angry,
        type(None),
    )
    kinds = set()
    for value in wrong_values():
        if isinstance(value, kept) and type(value) not in kinds:
            kinds.add(type(value))
            yield value
    yield from (2**70, "\ud800", dt.timedelta.max, col("nosuch"), series(), frame())


def owners():
    return {
        "DataFrame": (frame, FRAME),
        "GroupedDataFrame": (lambda: frame().groupby("s"), GROUPED),
        "Expression": (lambda: col("a"), EXPRESSION),
        "When": (lambda: gar.when(col("a") > 1, 2), {"when": [col("a") > 2, 3], "otherwise": [4], "end": []}),
        "Series": (series, SERIES),
        "RecordBatch": (batch, BATCH),
        "Schema": (schema, SCHEMA),
        "Window": (gar.Window, WINDOW),
        "Field": (lambda: gar.Field, {"create": ["a", "int64"]}),
        "DataType": (gar.DataType.int64, DATATYPE),
        "TimeUnit": (gar.TimeUnit.us, {"from_str": ["us"], "s": [], "ms": [], "us": [], "ns": []}),
        "gar": (lambda: gar, MODULE),
    }


def registry_methods():
    """The methods that the engine's function registry gives to expressions."""
    from gar._methods import ExpressionMethods

    return sorted(name for name in vars(ExpressionMethods) if not name.startswith("_"))


CALLS = [(owner, name) for owner, (_, table) in owners().items() for name in table]
CALLS += [("Expression", name) for name in registry_methods()]
CALLS += [("functions", name) for name in gar.functions.__all__]
# What changes the process (test_wrong_settings tries these), and the lookup of an enum, which is the standard library's.
# Called elsewhere: they change settings, or take named arguments only.
SETTERS = {
    "CountMode",
    "set_execution_config",
    "set_runner_native",
    "execution_config_ctx",
    "install_as",
    "udf",
}
gar.resources()  # the machine is looked at once, for good


def resolve(owner, name):
    if owner == "functions":
        return gar.functions, getattr(gar.functions, name)
    thing = owners()[owner][0]()
    return thing, getattr(thing, name)


CALLING = ("transform", "pipe")

STAND_INS = {
    "frame": frame,
    "frames": lambda: [frame(), frame()],
    "series": series,
    "schema": lambda: schema(),
    "serieses": lambda: [series(), series()],
    "mask": lambda: gar.Series.from_pylist([True, False, None]),
    "batch": lambda: batch()._array,
    "type": lambda: gar.DataType.int64(),
}


def right_arguments(owner, name, signature):
    table = MODULE if owner == "gar" else owners().get(owner, (None, {}))[1]
    if name in table:
        return [STAND_INS[a]() if isinstance(a, str) and a in STAND_INS else a for a in table[name]]
    needed = [
        p
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return [col("a")] * len(needed)


def use(result):
    """Whatever a call gave is used to the end, so that what was accepted is right as well."""
    if isinstance(result, gar.DataFrame):
        result.collect()
        repr(result)
        for _ in result.limit(2):
            pass
    elif isinstance(result, When):
        frame().select(result.otherwise(None).alias("z")).collect()
    elif isinstance(result, gar.Expression):
        repr(result)
        frame().select(result.alias("z")).collect()
    elif isinstance(result, gar.Series):
        result.to_pylist()
        repr(result)
    elif isinstance(result, GroupedDataFrame):
        result.count("*").collect()
        repr(result)
    elif isinstance(result, (gar.Schema, gar.Field, gar.DataType, RecordBatch)):
        repr(result)
        hash(result) if not isinstance(result, RecordBatch) else None
    elif isinstance(result, gar.QueryHandle):
        result.result(60)
    elif hasattr(result, "__next__"):
        for _ in result:
            pass


def attempt(call, args, kwargs, what, faults):
    try:
        use(call(*args, **kwargs))
    except gar.GarError as error:
        text = str(error)
        shows_place = text.endswith("^")  # errors in SQL text point at the character
        if not text or ("\n" in text and not shows_place):
            faults.append(f"{what}: the message is not one line: {text!r}")
    except Exception as error:
        faults.append(f"{what}: {type(error).__name__}: {error}")


def sweep(owner, name, values):
    _, call = resolve(owner, name)
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    args = right_arguments(owner, name, signature)
    faults = []
    attempt(call, args, {}, f"{owner}.{name} with its right arguments", faults)
    assert not faults, faults
    for i in range(len(args)):
        for value in values():
            if name in CALLING and callable(value):
                continue  # what the user's own function raises is the user's
            changed = [*args[:i], value, *args[i + 1 :]]
            attempt(
                call,
                changed,
                {},
                f"{owner}.{name}, argument {i}: {type(value).__name__} {value_text(value)}",
                faults,
            )
    given = list(signature.parameters)[: len(args)]
    for parameter in signature.parameters.values():
        if parameter.name in given or parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            continue
        if parameter.kind is parameter.VAR_KEYWORD or (owner == "DataFrame" and parameter.name == "file"):
            continue
        for value in values():
            fresh = right_arguments(owner, name, signature)
            what = f"{owner}.{name}, {parameter.name}={type(value).__name__} {value_text(value)}"
            attempt(call, fresh, {parameter.name: value}, what, faults)
    return faults


def value_text(value):
    try:
        return repr(value)[:60]
    except Exception:
        return "?"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().write_parquet("in.parquet", single_file=True)
    frame().write_csv("in.csv", single_file=True)


CALLS_AT_ONCE = 12


def groups_of_calls():
    """Some names of one owner at a time: the census before and after costs more than most calls."""
    by_owner = {}
    for owner, name in CALLS:
        if name not in SETTERS:
            by_owner.setdefault(owner, []).append(name)
    for owner, names in by_owner.items():
        for first in range(0, len(names), CALLS_AT_ONCE):
            some = names[first : first + CALLS_AT_ONCE]
            yield pytest.param(owner, some, id=f"{owner}-{some[0]}-{some[-1]}")


@pytest.mark.parametrize(("owner", "names"), list(groups_of_calls()))
def test_wrong_arguments_are_errors_of_the_tree(owner, names, capsys):
    faults = []
    for name in names:
        is_listed = owner != "functions" and name in owners()[owner][1]
        faults += sweep(owner, name, wrong_values if is_listed else few_values)
    capsys.readouterr()
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:40])
    # The engine is as usable as before.
    assert gar.from_pydict({"a": [1, 2]}).where(col("a") > 1).to_pydict() == {"a": [2]}


UNSUPPORTED = ("embedding", "tensor", "image", "file", "fixed_size_binary")  # they refuse whatever is given


def test_the_table_is_complete():
    """Every public callable of the package is in the table above."""
    missing = []
    for owner, (make, table) in owners().items():
        thing = gar if owner == "gar" else make() if owner == "Field" else type(make())
        names = gar.__all__ if owner == "gar" else vars(thing)
        for name in names:
            member = inspect.getattr_static(thing, name)
            is_call = callable(member) or isinstance(member, (classmethod, staticmethod))
            if name.startswith("_") or not is_call or name in table:
                continue
            if owner == "DataType" and name in UNSUPPORTED:
                continue
            if owner == "DataType" and len(inspect.signature(getattr(thing, name)).parameters) < 2:
                continue
            if isinstance(member, type) and issubclass(member, Exception):
                continue
            missing.append(f"{owner}.{name}")
    assert missing == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, {option: value})
        for name, option in (
            ("set_execution_config", "default_morsel_size"),
            ("set_execution_config", "num_preview_rows"),
            ("set_execution_config", "maintain_order"),
            ("set_runner_native", "num_threads"),
            ("set_runner_native", "io_threads"),
            ("set_runner_native", "compute_batch"),
            ("install_as", "name"),
        )
        for value in (-1, 1.5, "x y", b"x", 2**70, [], object())
    ]
    + [("set_execution_config", {"nosuch": 1}), ("set_execution_config", {"config": 5})],
)
def test_wrong_settings(name, options):
    with pytest.raises(gar.GarError):
        getattr(gar, name)(**options)
