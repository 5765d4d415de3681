# SPDX-License-Identifier: Apache-2.0
"""Frames, expressions, types, settings and display through the public API."""

import datetime
import decimal
import io
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import gar
from gar import DataType, Field, Schema, Series, TimeUnit, col, lit
from gar import functions as f

D = decimal.Decimal
settings = pytest.mark.settings


def make_df():
    return gar.from_pydict({"a": [1, 2, None, 4], "b": ["x", "y", "x", None], "c": [0.5, None, 1.5, 2.5]})


# ---- columns


@settings
def test_select():
    df = make_df()
    assert df.select("a", col("c")).column_names == ["a", "c"]
    assert df.select(["a", "b"]).column_names == ["a", "b"]
    assert df.select("*").column_names == ["a", "b", "c"]
    assert df.select(col("*"), d=col("a") + 1).to_pydict()["d"] == [2, 3, None, 5]
    assert df.select(lit(5).alias("five")).to_pydict() == {"five": [5] * 4}
    assert df.select(col("a").sum()).to_pydict() == {"a": [7]}
    assert df["a"].name() == "a"
    assert df["a", "b"].column_names == ["a", "b"]
    assert df[["b", 0]].column_names == ["b", "a"]
    assert df[1].name() == "b"
    assert df[:2].column_names == ["a", "b"]
    assert "a" in df and "z" not in df
    assert [c.name() for c in df.columns] == ["a", "b", "c"]


@settings
def test_with_columns_rename_exclude():
    df = make_df()
    assert df.with_column("a", col("a") * 2).to_pydict()["a"] == [2, 4, None, 8]
    assert df.with_column("z", 1).column_names == ["a", "b", "c", "z"]
    assert df.with_columns({"z": col("b"), "c": "text"}).to_pydict()["c"] == ["text"] * 4
    assert df.with_column_renamed("a", "k").column_names == ["k", "b", "c"]
    assert df.with_columns_renamed({"a": "b", "b": "a"}).column_names == ["b", "a", "c"]
    assert df.exclude("a", "c").column_names == ["b"]
    assert df.exclude("a", "b", "c").column_names == []
    for bad in (
        lambda: df.select("aa"),
        lambda: df["aa"],
        lambda: df.exclude("aa"),
        lambda: df.with_column_renamed("aa", "x"),
        lambda: df.groupby("aa").agg(col("a").sum()),
        lambda: df.sort("aa"),
    ):
        with pytest.raises(KeyError, match=r"'aa'.*'a'"):
            bad()


@settings
def test_rows():
    df = make_df()
    assert df.where(col("a") > 1).to_pydict()["a"] == [2, 4]
    assert df.where("a > 1 and b like 'y%'").to_pydict()["a"] == [2]
    assert df.filter(col("b") == "x").count_rows() == 2
    assert df.limit(2).to_pydict()["a"] == [1, 2]
    assert df.offset(3).to_pydict()["a"] == [4]
    assert df.offset(1).limit(1).to_pydict()["a"] == [2]
    assert df.limit(0).to_pydict() == {"a": [], "b": [], "c": []}
    assert df.offset(99).count_rows() == 0
    assert df.drop_null("a", "b").to_pydict()["a"] == [1, 2]
    assert df.drop_null().to_pydict()["a"] == [1]
    assert df.concat(df).count_rows() == 8
    assert df.distinct("b").sort("b").to_pydict()["a"] == [1, 2, 4]
    assert df.select("b").distinct().count_rows() == 3
    assert df.transform(lambda d, n: d.limit(n), 1).count_rows() == 1
    assert df.pipe(gar.DataFrame.count_rows) == 4
    with pytest.raises(ValueError):
        df.limit(-1)
    with pytest.raises(ValueError):
        df.offset(-1)


@settings
def test_sort():
    df = make_df()
    assert df.sort("a").to_pydict()["a"] == [1, 2, 4, None]
    assert df.sort("a", desc=True).to_pydict()["a"] == [None, 4, 2, 1]
    assert df.sort("a", desc=True, nulls_first=False).to_pydict()["a"] == [4, 2, 1, None]
    assert df.sort(["b", "a"], desc=[True, False]).to_pydict()["a"] == [4, 2, 1, None]
    assert df.sort(-col("a")).to_pydict()["a"] == [4, 2, 1, None]
    with pytest.raises(ValueError):
        df.sort(["a", "b"], desc=[True])


@settings
def test_aggregates():
    df = make_df()
    assert df.agg(col("a").sum().alias("s"), col("c").mean()).to_pydict() == {"s": [7], "c": [1.5]}
    assert df.agg([col("a").min(), col("a").max().alias("m")]).to_pydict() == {"a": [1], "m": [4]}
    assert df.sum("a", "c").to_pydict() == {"a": [7], "c": [4.5]}
    assert df.count().to_pydict() == {"count": [4]}
    assert df.count("a", "b").to_pydict() == {"a": [3], "b": [3]}
    assert df.count(col("a")).to_pydict() == {"a": [3]}
    assert df.groupby("b").count(col("a")).sum("a").to_pydict() == {"a": [3]}
    assert df.select(col("*").count()).to_pydict() == {"count": [4]}
    groups = df.groupby("b").agg(col("a").sum(), col("c").count().alias("n")).sort("b")
    assert groups.to_pydict() == {"b": ["x", "y", None], "a": [1, 2, 4], "n": [2, 0, 1]}
    assert df.groupby("b").count().sort("b").to_pydict() == {
        "b": ["x", "y", None],
        "a": [1, 1, 1],
        "c": [2, 0, 1],
    }
    assert df.groupby(col("b").is_null().alias("k")).sum("a").sort("k").to_pydict() == {
        "k": [False, True],
        "a": [3, 4],
    }
    assert df.groupby("b").count_distinct("a").sort("b").to_pydict()["a"] == [1, 1, 1]
    assert df.groupby("b").any_value("c").sort("b").to_pydict()["c"] == [0.5, None, 2.5]
    assert df.stddev("c").to_pydict()["c"] == [1.0]
    for name in ("mean", "min", "max", "count_distinct", "any_value", "var", "product"):
        assert getattr(df, name)("a").column_names == ["a"]
        assert getattr(df.groupby("b"), name)("a").column_names == ["b", "a"]
    with pytest.raises(ValueError):
        df.groupby()
    with pytest.raises(ValueError):
        df.agg()


# ---- expressions


@settings
def test_operators_from_both_sides():
    df = gar.from_pydict(
        {
            "a": [1, 2, 4],
            "s": ["x", "y", "z"],
            "b": [True, False, None],
            "d": [datetime.date(2024, 1, 31)] * 3,
        }
    )
    a = col("a")
    cases = {
        "-a": (-a, [-1, -2, -4]),
        "+a": (+a, [1, 2, 4]),
        "2**a": (2**a, [2.0, 4.0, 16.0]),
        "a**2": (a**2, [1.0, 4.0, 16.0]),
        "1/a": (1 / a, [1.0, 0.5, 0.25]),
        "10-a": (10 - a, [9, 8, 6]),
        "7//a": (7 // a, [7, 3, 1]),
        "7%a": (7 % a, [0, 1, 3]),
        "abs": (abs(a - 3), [2, 1, 1]),
        "text": ("<" + col("s") + ">", ["<x>", "<y>", "<z>"]),
        "and": (col("b") & True, [True, False, None]),
        "or": (True | col("b"), [True, True, True]),
        "not": (~col("b"), [False, True, None]),
        "xor": (col("b") ^ True, [False, True, None]),
        "lt": (2 < a, [False, False, True]),  # noqa: SIM300
        "between": (a.between(2, 4), [False, True, True]),
        "in": (a.is_in([1, 4, None]), [True, False, True]),
        "in range": (a.is_in(range(2, 5)), [False, True, True]),
        "in generator": (a.is_in(n for n in (1,)), [True, False, False]),
        "in set": (a.is_in({2}), [False, True, False]),
        "in nothing": (a.is_in([]), [False, False, False]),
        "in series": (a.is_in(Series.from_pylist([4])), [False, False, True]),
        "shift": (a << 1, [2, 4, 8]),
        "date": (col("d") + datetime.timedelta(days=1), [datetime.date(2024, 2, 1)] * 3),
        "month": (col("d") + gar.interval(months=1), [datetime.date(2024, 2, 29)] * 3),
        "cast": (a.cast(DataType.string()), ["1", "2", "4"]),
        "cast str": (a.cast("float64"), [1.0, 2.0, 4.0]),
        "cast type": (a.cast(float), [1.0, 2.0, 4.0]),
        "try": (col("s").try_cast(int), [None, None, None]),
        "when": (gar.when(a == 1, "one").when(a == 2, "two").otherwise("more"), ["one", "two", "more"]),
        "when open": (gar.when(a == 1, 10).end(), [10, None, None]),
        "if_else": ((a > 1).if_else(a, 0), [0, 2, 4]),
        "fill": (col("b").fill_null(False), [True, False, False]),
        "coalesce": (gar.coalesce(None, a, 5), [1, 2, 4]),
        "substr": (col("s").substr(0, 1), ["x", "y", "z"]),
        "upper": (f.upper(col("s")), ["X", "Y", "Z"]),
        "year": (col("d").year(), [2024] * 3),
        "trunc": (col("d").date_trunc("month"), [datetime.date(2024, 1, 1)] * 3),
        "sql": (gar.sql_expr("a + 1"), [2, 3, 5]),
        "alias": (a.alias("q"), [1, 2, 4]),
        "round": (f.round(a / 3, 2), [0.33, 0.67, 1.33]),
    }
    for name, (expr, expected) in cases.items():
        assert df.select(expr.alias("r")).to_pydict()["r"] == expected, name


def test_numpy_scalars_beside_expressions():
    df = gar.from_pydict({"a": [1, 2]})
    assert df.select((np.int64(3) + col("a")).alias("r")).to_pydict() == {"r": [4, 5]}
    assert df.select((col("a") * np.float64(1.5)).alias("r")).to_pydict() == {"r": [1.5, 3.0]}
    assert df.where(np.int32(2) == col("a")).count_rows() == 1


@settings
def test_literals():
    values = {
        "none": None,
        "bool": True,
        "int": -5,
        "uint": 2**64 - 1,
        "float": 1.5,
        "str": "it's",
        "bytes": b"\x00\xff",
        "date": datetime.date(2024, 2, 29),
        "datetime": datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
        "zoned": datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
        "time": datetime.time(1, 2, 3, 4),
        "timedelta": datetime.timedelta(days=-1, microseconds=5),
        "decimal": D("-1.50"),
    }
    df = gar.from_pydict({"x": [1]}).select(*(lit(v).alias(k) for k, v in values.items()))
    assert df.to_pydict() == {k: [v] for k, v in values.items()}
    for bad in (object(), [1], {}, 2**64):
        with pytest.raises(gar.GarError):
            lit(bad)


def test_expressions_have_no_truth_value():
    with pytest.raises(TypeError, match="&"):
        bool(col("a") == 1)
    with pytest.raises(TypeError):
        _ = 1 < col("a") < 3
    with pytest.raises(TypeError):
        list(col("a"))
    assert len({col("a"), col("b")}) == 2
    assert repr(col("a") + 1) == "a + 1"


def test_every_function_is_a_method_or_function():
    import keyword

    for name, _, signature, summary, _, _, _, _ in gar._native.registry():
        assert summary
        if keyword.iskeyword(name):
            continue
        assert hasattr(f, name), name
        no_column = name in ("when", "interval", "ntile") or signature.startswith(f"{name}()")
        assert hasattr(gar.Expression, name) or no_column, name
        if name not in ("when", "interval"):
            assert signature in getattr(f, name).__doc__


# ---- running and reading back


@settings
def test_running():
    df = make_df()
    assert df.count_rows() == 4
    lazy = df.where(col("a") > 0)
    with pytest.raises(RuntimeError, match="collect"):
        len(lazy)
    assert lazy.collect() is lazy
    assert len(lazy) == 3
    assert list(df.iter_rows())[1] == {"a": 2, "b": "y", "c": None}
    assert sum(len(batch) for batch in df.iter_partitions()) == 4
    batch = next(iter(df.into_batches(3).iter_partitions()))
    assert batch.to_pydict()["a"] == [1, 2, None]
    assert batch.to_pylist()[0] == {"a": 1, "b": "x", "c": 0.5}
    assert batch.get_column("b").to_pylist() == ["x", "y", "x"]
    assert batch.schema() == df.schema()
    assert all(isinstance(b, pa.RecordBatch) for b in df.to_arrow_iter())
    assert sum(b.num_rows for b in df.to_arrow_iter()) == 4
    assert [b.num_rows for b in gar.range(10).into_batches(4).to_arrow_iter()] == [4, 4, 2]
    assert df.repartition(5).into_partitions(2).num_partitions() == 1
    with pytest.raises(ValueError):
        df.into_batches(0)


@settings
def test_range():
    assert gar.range(3).to_pydict() == {"id": [0, 1, 2]}
    assert gar.range(1, 10, 4).to_pydict() == {"id": [1, 5, 9]}
    assert gar.range(3, 0, -1).to_pydict() == {"id": [3, 2, 1]}
    assert gar.range(5, 5).count_rows() == 0
    with pytest.raises(ValueError):
        gar.range(0, 5, 0)


@settings
def test_files(tmp_path):
    df = make_df()
    for write, read, options in (
        ("write_parquet", gar.read_parquet, {"compression": "zstd"}),
        ("write_csv", gar.read_csv, {}),
    ):
        folder = tmp_path / write
        paths = getattr(df, write)(folder, **options).to_pydict()["path"]
        assert paths and all(os.path.exists(path) for path in paths)
        assert read(str(folder)).to_pydict() == df.to_pydict()
        getattr(df, write)(folder)
        assert read([str(p) for p in sorted(folder.iterdir())]).count_rows() == 8
        getattr(df, write)(folder, write_mode="overwrite")
        assert read(folder).count_rows() == 4
        with pytest.raises(ValueError):
            getattr(df, write)(folder, write_mode="whatever")
    found = gar.read_csv(
        tmp_path / "write_csv", schema={"a": DataType.float32()}, file_path_column="p"
    ).collect()
    assert str(found.schema()["a"].dtype) == "float32"
    assert found.column_names == ["a", "b", "c", "p"]
    for option in ({"hive_partitioning": True}, {"ignore_corrupt_files": True}):
        with pytest.raises(NotImplementedError):
            gar.read_csv(tmp_path / "write_csv", **option)
    with pytest.raises(NotImplementedError, match="s3"):
        gar.read_parquet("s3://bucket/key.parquet", io_config=gar.IOConfig(s3=gar.S3Config(anonymous=True)))


# ---- types and schemas


def test_types():
    made = [
        DataType.null(), DataType.bool(), DataType.int8(), DataType.int16(), DataType.int32(), DataType.int64(),
        DataType.uint8(), DataType.uint16(), DataType.uint32(), DataType.uint64(), DataType.float32(),
        DataType.float64(), DataType.string(), DataType.binary(), DataType.date(), DataType.time("ns"),
        DataType.timestamp("ms"), DataType.timestamp(TimeUnit.us(), "UTC"), DataType.duration("s"),
        DataType.decimal128(38, 10),
    ]  # fmt: skip
    assert len(set(made)) == len(made)
    for dtype in made:
        assert DataType(str(dtype)) == dtype
        assert DataType.from_arrow_type(dtype.to_arrow_dtype()) == dtype
    assert DataType.from_sql("varchar(20)") == DataType.string()
    assert DataType.infer_from_type(datetime.date) == DataType.date()
    assert DataType.infer_from_object(1.5) == DataType.float64()
    assert DataType.timestamp("us", "UTC").timezone == "UTC"
    assert DataType.timestamp("ns").timeunit == TimeUnit.ns()
    assert (DataType.decimal128(10, 2).precision, DataType.decimal128(10, 2).scale) == (10, 2)
    assert (
        DataType.int8().is_numeric()
        and DataType.int8().is_signed_integer()
        and not DataType.string().is_numeric()
    )
    for bad in (
        lambda: DataType("nosuch"),
        lambda: DataType.decimal128(39),
        lambda: DataType.timestamp("min"),
    ):
        with pytest.raises(ValueError):
            bad()
    for nested in (lambda: DataType.list(DataType.int8()), lambda: DataType.struct({}), DataType.python):
        with pytest.raises(NotImplementedError):
            nested()


def test_schemas():
    df = make_df()
    schema = df.schema()
    assert schema.column_names() == ["a", "b", "c"]
    assert schema["a"] == Field.create("a", "int64") == schema[0]
    assert schema == Schema.from_pydict({"a": DataType.int64(), "b": DataType.string(), "c": "float64"})
    assert Schema.from_pyarrow_schema(schema.to_pyarrow_schema()) == schema
    assert df.to_arrow().schema == schema.to_pyarrow_schema()
    assert len(schema) == 3 and "a" in schema and [field.name for field in schema] == ["a", "b", "c"]
    with pytest.raises(KeyError):
        schema["z"]


def test_series():
    series = Series.from_pylist([1, None, 3], name="s")
    assert (series.name(), len(series), series[0], series[-1], series.null_count()) == ("s", 3, 1, 3, 1)
    assert list(series) == [1, None, 3]
    assert series.cast(DataType.string()).to_pylist() == ["1", None, "3"]
    assert (series + 1).to_pylist() == [2, None, 4]
    assert (series > series).to_pylist() == [False, None, False]
    assert series.is_null().to_pylist() == [False, True, False]
    assert Series.from_pylist([1, 2], dtype="int8").datatype() == DataType.int8()
    assert series.rename("t").name() == "t"
    assert gar.from_pydict({"x": series}).to_pydict() == {"x": [1, None, 3]}
    with pytest.raises(IndexError):
        series[3]


# ---- settings


def test_execution_settings():
    before = gar._native.settings()["morsel_rows"]
    with gar.execution_config_ctx(default_morsel_size=17, enable_native_executor=True):
        assert gar._native.settings()["morsel_rows"] == 17
        assert gar.range(100).where(col("id") % 2 == 0).count_rows() == 50
    assert gar._native.settings()["morsel_rows"] == before
    with gar.execution_config_ctx(num_preview_rows=1):
        assert "2 rows" in repr(gar.range(2).collect())
    with pytest.raises(TypeError, match="no_such"):
        gar.set_execution_config(no_such=1)
    with pytest.raises(ValueError):
        gar.set_execution_config(default_morsel_size=0)
    gar.set_runner_native()
    with pytest.raises(gar.GarError, match="Ray"):
        gar.set_runner_ray()
    with gar.planning_config_ctx(default_io_config=gar.IOConfig(s3=gar.S3Config(anonymous=True))):
        pass


def test_secrets_are_not_printed():
    config = gar.IOConfig(s3=gar.S3Config(key_id="AKIA1", access_key="topsecret", region_name="eu"))
    assert "topsecret" not in repr(config) and "AKIA1" not in repr(config) and "eu" in repr(config)
    assert config.replace(s3=None).s3 is None
    with pytest.raises(TypeError, match="no setting"):
        gar.S3Config(no_such=1)


# ---- display


def test_show_and_repr(capsys):
    df = make_df()
    df.show(2)
    shown = capsys.readouterr().out
    assert "int64" in shown and "2 of 4 rows" in shown and "x" in shown
    assert "not run yet" in repr(df.where(col("a") > 1))
    assert "3 of 20 rows" in _shown(gar.range(20), 3, capsys)
    assert _shown(gar.range(20), 15, capsys).count("│") >= 15
    empty = _shown(df.limit(0), 8, capsys)
    assert "int64" in empty
    assert "<table" in df._repr_html_()
    assert "<b>" not in gar.from_pydict({"x": ["<b>"]})._repr_html_()


def _shown(df, n, capsys):
    df.show(n)
    return capsys.readouterr().out


def test_display_is_safe_and_fits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    evil = gar.from_pydict({"x\x1b[31m": ["\x1b]0;title\x07", "a\nb", "long " * 2_000_000]})
    shown = _shown(evil, 8, capsys)
    assert "\x1b" not in shown and "\x07" not in shown and len(shown) < 2000
    assert "\x1b" not in repr(evil) and len(evil._repr_html_()) < 5000
    wide = gar.from_pydict({f"column_{i}": [i] for i in range(100)})
    lines = _shown(wide, 8, capsys).splitlines()
    assert max(len(line) for line in lines) <= 80
    assert any(("column" in line and "100" in line) or "hidden" in line or "more" in line for line in lines)


def test_explain(capsys):
    df = make_df()
    df.where(col("a") > 1).explain(show_all=True)
    shown = capsys.readouterr().out
    for title in ("Logical plan", "Optimized plan", "Physical plan"):
        assert title in shown
    out = io.StringIO()
    df.explain(file=out)
    assert "Logical plan" in out.getvalue()


# ---- the package


def run_python(code, **env):
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, **env}
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_import_is_light():
    out = run_python(
        "import sys, os, gar\n"
        "print(sorted(m for m in ('numpy', 'pyarrow', 'pandas', 'typing', 're') if m in sys.modules))\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    assert out.split("\n")[1] == "1"
    assert not {"numpy", "pyarrow", "pandas"} & set(eval(out.split("\n")[0]))


def test_public_classes_name_the_package():
    for name in (
        "DataFrame",
        "Expression",
        "DataType",
        "Schema",
        "Field",
        "Series",
        "TimeUnit",
        "RecordBatch",
    ):
        assert getattr(gar, name).__module__ == "gar"
    for name in gar.__all__:
        assert hasattr(gar, name)
    assert gar.DataFrame.__name__ == "DataFrame"


def test_exceptions_are_one_tree():
    from gar import exceptions

    kinds = {
        "GarMemoryError": MemoryError, "GarValueError": ValueError, "GarTypeError": TypeError,
        "GarColumnError": KeyError, "GarIOError": OSError, "GarFormatError": ValueError, "GarCastError": ValueError,
        "GarSyntaxError": ValueError, "GarFileNotFoundError": FileNotFoundError, "GarTimeoutError": TimeoutError,
    }  # fmt: skip
    for name in exceptions.__all__:
        assert issubclass(getattr(exceptions, name), gar.GarError)
        assert getattr(exceptions, name).__module__ == "gar"
    for name, kind in kinds.items():
        assert issubclass(getattr(exceptions, name), kind)
    with pytest.raises(FileNotFoundError) as caught:
        gar.read_parquet("/no/such/file.parquet")
    assert caught.value.errno == 2
    with pytest.raises(gar.GarError) as caught:
        gar.sql_expr("1 +")
    assert caught.value.position >= 0
    assert str(exceptions.GarColumnError("plain text")) == "plain text"


def test_install_as():
    run_python(
        "import gar; gar.install_as('daft')\n"
        "import daft\n"
        "from daft import col, DataType\n"
        "from daft.functions import upper\n"
        "from daft.io import IOConfig, S3Config\n"
        "import daft.context\n"
        "assert daft is gar and daft.from_pydict({'a': [1]}).select(col('a')).to_pydict() == {'a': [1]}\n"
    )
    with pytest.raises(ValueError):
        gar.install_as("os")


@pytest.mark.no_census  # a thread of this process sends the signal
def test_interrupt_raises_keyboard_interrupt_once():
    slow = gar.range(0, 2_000_000_000).agg((col("id") * 2 + 1).sum().alias("s"))

    def interrupt():
        time.sleep(0.3)
        import _thread

        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    started = time.monotonic()
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        slow.collect()
    thread.join()
    assert time.monotonic() - started < 5
    assert gar.range(5).count_rows() == 5


def test_timeout():
    with pytest.raises(TimeoutError):
        gar.range(0, 20_000_000_000).agg((col("id") % 7).sum()).collect(timeout=0.2)


def test_threads_may_use_one_frame():
    df = gar.from_pydict({"a": list(range(1000))})
    results = []

    def work():
        for _ in range(20):
            results.append(df.where(col("a") >= 500).agg(col("a").sum()).to_pydict()["a"][0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [sum(range(500, 1000))] * 80


def test_masked_numpy_arrays_keep_their_nulls():
    np = pytest.importorskip("numpy")
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert gar.from_pydict({"a": masked}).to_pydict() == {"a": [1, None, 3]}


def test_nothing_is_in_an_empty_list():
    df = gar.from_pydict({"a": [1, None]})
    assert df.select(col("a").is_in([])).to_pydict() == {"a": [False, False]}


@pytest.mark.no_census  # a thread of this process sends the signal
def test_interrupt_is_seen_during_conversion():
    import _thread

    df = gar.range(6_000_000).collect()
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            df.to_pydict()
    timer.join()
    assert gar.range(5).count_rows() == 5


def test_iter_rows_crosses_its_pieces():
    assert [row["id"] for row in gar.range(1500).iter_rows()] == list(range(1500))


def test_a_failed_result_never_looks_complete():
    result = gar.from_pydict({"s": ["1", "x"]}).select(col("s").cast("int64"))._run()
    for _ in range(2):
        with pytest.raises(gar.GarError, match="'x'"):
            list(result)


def test_errors_can_be_pickled():
    for make in (
        lambda: gar.range(3).where("x = 1").collect(),
        lambda: gar.from_pydict({"a": ["x"]}).select(col("a").cast("int64")).collect(),
        lambda: gar.read_parquet("/no/such/file"),
    ):
        with pytest.raises(gar.GarError) as caught:
            make()
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is type(caught.value)
        assert str(again) == str(caught.value)
    assert gar.GarTimeoutError is gar.exceptions.GarTimeoutError


def test_rows_of_a_changed_file_are_not_counted(tmp_path):
    path = tmp_path / "x.parquet"
    gar.range(5).write_parquet(str(path))
    files = [str(p) for p in tmp_path.rglob("*.parquet")] if path.is_dir() else [str(path)]
    frame = gar.read_parquet(files)
    assert frame.count_rows() == 5
    os.unlink(files[0])
    with pytest.raises(FileNotFoundError):
        frame.count_rows()
