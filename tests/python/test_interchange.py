# SPDX-License-Identifier: Apache-2.0
"""Data in and out: Python objects, numpy, Arrow of all layouts, pandas."""

import array
import datetime
import decimal
import sys
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gar
from gar import DataType, Series, col

pytestmark = pytest.mark.settings

D = decimal.Decimal
UTC = datetime.UTC

COLUMNS = {
    "int": ([1, None, -(2**63), 2**63 - 1], "int64"),
    "uint": ([2**64 - 1, None, 0], "uint64"),
    "float": ([1.5, None, float("inf"), 2], "float64"),
    "bool": ([True, None, False], "bool"),
    "str": (["", "a", None, "x" * 13, "ä" * 40, "😉test", "nul\0inside"], "string"),
    "bytes": ([b"", b"\xff\x00", None, b"y" * 100], "binary"),
    "date": ([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], "date"),
    "datetime": ([datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None], "timestamp[us]"),
    "utc": ([datetime.datetime(2024, 7, 1, 12, tzinfo=UTC), None], "timestamp[us, UTC]"),
    "berlin": (
        [datetime.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), None],
        "timestamp[us, Europe/Berlin]",
    ),
    "time": ([datetime.time(23, 59, 59, 999999), None, datetime.time()], "time[us]"),
    "timedelta": ([datetime.timedelta(days=-1, microseconds=1), None], "duration[us]"),
    "decimal": ([D("-12.345"), None, D("0.5"), 7], "decimal(5, 3)"),
    "null": ([None, None], "null"),
    "empty": ([], "null"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_python_values_round_trip(name):
    values, dtype = COLUMNS[name]
    df = gar.from_pydict({"c": values})
    assert str(df.schema()["c"].dtype) == dtype
    assert df.to_pydict() == {"c": values}
    assert df.to_pylist() == [{"c": value} for value in values]
    assert list(df) == df.to_pylist()
    assert Series.from_pylist(values).to_pylist() == values
    assert df.to_arrow().column("c").to_pylist() == values
    assert df.to_arrow().schema.field("c").type == df.schema()["c"].dtype.to_arrow_dtype()


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([1, "a"], TypeError, ["'c'", "row 1"]),
        ([True, 1], TypeError, ["row 1"]),
        ([2**64], OverflowError, ["row 0"]),
        ([-1, 2**63], OverflowError, ["row 0"]),
        ([{}], NotImplementedError, ["dict", "row 0"]),
        ([[1]], NotImplementedError, ["list"]),
        ([object()], TypeError, ["object"]),
        (["\ud800"], ValueError, ["row 0"]),
        ([D("NaN")], ValueError, ["row 0"]),
        ([D("1e40")], OverflowError, ["38"]),
        ("text", TypeError, ["str"]),
        (5, TypeError, []),
        ([datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC)], TypeError, ["row 1"]),
    ],
)
def test_python_values_that_are_no_column(values, kind, words):
    with pytest.raises(kind) as caught:
        gar.from_pydict({"c": values})
    assert isinstance(caught.value, gar.GarError)
    for word in ["column 'c'", *words]:
        assert word in str(caught.value)


def test_numbers_of_several_kinds():
    assert gar.from_pydict({"c": [1, 2.5]}).to_pydict() == {"c": [1.0, 2.5]}
    assert gar.from_pydict({"c": [np.int64(3), None, np.float32(0.5)]}).to_pydict() == {"c": [3.0, None, 0.5]}
    assert gar.from_pydict({"c": [pd.NaT, datetime.date(2020, 1, 1)]}).to_pydict() == {
        "c": [None, datetime.date(2020, 1, 1)]
    }
    assert gar.from_pydict({"c": (1, 2)}).to_pydict() == {"c": [1, 2]}
    assert gar.from_pydict({"c": range(3)}).to_pydict() == {"c": [0, 1, 2]}


def test_from_pylist():
    rows = [{"b": 1}, {"a": "x", "b": None}, {}]
    df = gar.from_pylist(rows)
    assert df.column_names == ["b", "a"]
    assert df.to_pydict() == {"b": [1, None, None], "a": [None, "x", None]}
    with pytest.raises(gar.GarError, match="row 1"):
        gar.from_pylist([{"a": 1}, 5])
    with pytest.raises(TypeError, match="names"):
        gar.from_pylist([{1: 1}])


# ---- numpy


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_numpy_numbers(dtype):
    data = np.array([0, 1, 5], dtype=dtype)
    for given_array in (
        data,
        np.array([0, 9, 1, 9, 5, 9], dtype=dtype)[::2],
        data.astype(f">{dtype}"),
        data[::-1][::-1],
    ):
        assert gar.from_pydict({"c": given_array}).to_pydict() == {"c": [0, 1, 5]}
    series = Series.from_numpy(data)
    assert series.datatype() == DataType.from_numpy_dtype(data.dtype)
    assert series.to_numpy().dtype == data.dtype
    np.testing.assert_array_equal(series.to_numpy(), data)


def test_numpy_other_kinds():
    cases = {
        "b": (np.array([True, False, True]), [True, False, True]),
        "half": (
            np.array([1.5, -0.0, 6e-8, np.inf], dtype="f2"),
            [1.5, 0.0, float(np.float16(6e-8)), np.inf],
        ),
        "day": (np.array(["2020-02-29", "NaT"], dtype="M8[D]"), [datetime.date(2020, 2, 29), None]),
        "week": (np.array(["2020-01-02"], dtype="M8[W]"), [datetime.date(2020, 1, 2)]),
        "ns": (
            np.array(["2020-02-29T01:02:03", "NaT"], dtype="M8[ns]"),
            [datetime.datetime(2020, 2, 29, 1, 2, 3), None],
        ),
        "hour": (np.array([5, "NaT"], dtype="m8[h]"), [datetime.timedelta(hours=5), None]),
        "str": (np.array(["a", "bb"]), ["a", "bb"]),
        "bytes": (np.array([b"a", b"bb"]), [b"a", b"bb"]),
        "object": (np.array(["a", None, "b"], dtype=object), ["a", None, "b"]),
        "none": (np.array([], dtype="i8"), []),
        "array": (array.array("d", [1.5]), [1.5]),
        "view": (memoryview(b"ab"), [97, 98]),
    }
    for name, (data, expected) in cases.items():
        assert gar.from_pydict({"c": data}).to_pydict() == {"c": expected}, name
    for bad in (
        np.zeros((2, 2)),
        np.array([1j]),
        np.zeros(1, dtype="i4,i4"),
    ):
        with pytest.raises(gar.GarError, match="column 'c'"):
            gar.from_pydict({"c": bad})


def test_numpy_is_shared_and_given_back():
    data = np.arange(100_000, dtype="f8")
    count = sys.getrefcount(data)
    series = Series.from_numpy(data)
    assert series.to_numpy().__array_interface__["data"][0] == data.__array_interface__["data"][0]
    df = gar.from_pydict({"x": data}).where(col("x") < 10).collect()
    assert df.to_pydict() == {"x": [float(x) for x in range(10)]}
    del series, df
    gar._native.statistics()  # empties the drop list
    assert sys.getrefcount(data) == count


def test_series_to_numpy_with_nulls():
    cases = [
        ([1, None], np.array([1.0, np.nan])),
        ([1.5, None], np.array([1.5, np.nan])),
        ([True, False], np.array([True, False])),
        ([datetime.date(2020, 1, 1), None], np.array(["2020-01-01", "NaT"], dtype="M8[D]")),
        ([datetime.timedelta(seconds=1), None], np.array([1_000_000, "NaT"], dtype="m8[us]")),
    ]
    for values, expected in cases:
        found = Series.from_pylist(values).to_numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert Series.from_pylist([True, None]).to_numpy().tolist() == [True, None]
    assert Series.from_pylist(["a", None]).to_numpy().tolist() == ["a", None]


# ---- Arrow

ARROW = {
    "int8": pa.array([1, None, -3], pa.int8()),
    "uint32": pa.array([1, None, 2**32 - 1], pa.uint32()),
    "float16": pa.array([np.float16(1.5), None], pa.float16()),
    "float": pa.array([1.5, None, float("nan")], pa.float32()),
    "utf8": pa.array(["a", None, "x" * 20, "ä"]),
    "large_utf8": pa.array(["a", None, "x" * 20], pa.large_string()),
    "string_view": pa.array(["a", None, "x" * 20, "y" * 12], pa.string_view()),
    "binary": pa.array([b"\xff", None, b"x" * 20]),
    "binary_view": pa.array([b"\xff", None, b"x" * 20], pa.binary_view()),
    "fixed": pa.array([b"abc", None, b"def"], pa.binary(3)),
    "fixed_wide": pa.array([b"a" * 16, None], pa.binary(16)),
    "dictionary": pa.array(["a", "b", None, "a" * 15]).dictionary_encode(),
    "dictionary_int": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), pa.array([10, 20])),
    "dictionary_null": pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None], pa.int16()), pa.array(["x", None])
    ),
    "bool": pa.array([True, None, False] * 7),
    "decimal32": pa.array([D("1.5"), None], pa.decimal32(5, 1)),
    "decimal64": pa.array([D("1.5"), None], pa.decimal64(15, 1)),
    "decimal128": pa.array([D("1.5"), None], pa.decimal128(38, 1)),
    "decimal256": pa.array([D("1.5"), None], pa.decimal256(50, 1)),
    "date32": pa.array([datetime.date(2020, 1, 1), None]),
    "date64": pa.array([datetime.date(1960, 1, 1), None], pa.date64()),
    "time32s": pa.array([datetime.time(1, 2, 3), None], pa.time32("s")),
    "time32ms": pa.array([datetime.time(1, 2, 3, 4000), None], pa.time32("ms")),
    "time64": pa.array([datetime.time(1, 2, 3, 4), None], pa.time64("us")),
    "timestamp": pa.array([datetime.datetime(2020, 1, 1), None], pa.timestamp("s")),
    "zoned": pa.array([datetime.datetime(2020, 1, 1, tzinfo=UTC), None], pa.timestamp("ms", "UTC")),
    "duration": pa.array([datetime.timedelta(seconds=-5), None], pa.duration("ms")),
    "null": pa.nulls(3),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], pa.int32()), pa.array(["a", None, "b"])),
}


def same(found, expected):
    """Equal in values and classes; NaN is NaN."""
    return len(found) == len(expected) and all(
        type(a) is type(b) and (a == b or (a != a and b != b)) for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("name", ARROW)
def test_arrow_layouts(name):
    whole = ARROW[name]
    for part in (whole, whole.slice(1), whole.slice(0, 1), whole.slice(1, 0)):
        expected = part.to_pylist()
        df = gar.from_arrow(pa.table({"c": part}))
        found = df.to_pydict()["c"]
        assert same(found, expected)
        assert same(df.to_arrow().column("c").to_pylist(), expected)
        assert same(pa.table(df.where(gar.lit(True))).column("c").to_pylist(), expected)
        assert same(Series.from_arrow(part).to_pylist(), expected)


def test_arrow_containers():
    table = pa.table({"x": [1, 2, 3], "y": ["a", None, "b"]})
    expected = table.to_pydict()
    batches = table.to_batches(max_chunksize=2)
    for data in (table, batches[0], iter(batches), batches, pl.from_arrow(table), gar.from_arrow(table)):
        found = gar.from_arrow(data).to_pydict()
        assert found == (expected if data is not batches[0] else batches[0].to_pydict())
    assert gar.from_arrow([table, table]).to_pydict() == pa.concat_tables([table, table]).to_pydict()
    assert gar.from_arrow(pa.RecordBatchReader.from_batches(table.schema, batches)).to_pydict() == expected
    assert gar.from_pydict({"x": table["x"], "z": pl.Series([1, 2, 3])}).to_pydict() == {
        "x": [1, 2, 3],
        "z": [1, 2, 3],
    }
    for bad in ("text", 5, {"a": 1}, []):
        with pytest.raises(gar.GarError):
            gar.from_arrow(bad)


def test_arrow_nested_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="column 'deep'"):
        gar.from_arrow(pa.table({"deep": [[1]]}))
    with pytest.raises(NotImplementedError, match="column 'deep'"):
        gar.from_arrow(pa.table({"deep": [{"a": 1}]}))


def test_arrow_stream_out():
    df = gar.from_pydict({"x": [1, 2, None], "s": ["a", None, "x" * 30]})
    assert pa.table(df).schema == df.to_arrow().schema
    assert pl.DataFrame(df).to_dict(as_series=False) == df.to_pydict()
    wanted = pa.schema([("x", pa.int32()), ("s", pa.string_view())])
    reader = pa.RecordBatchReader.from_stream(df, schema=wanted)
    assert reader.schema == wanted
    assert reader.read_all().to_pydict() == df.to_pydict()
    # A stream that is not read to its end stops its query.
    reader = pa.RecordBatchReader.from_stream(gar.range(1_000_000).into_batches(10))
    assert reader.read_next_batch().num_rows == 10
    del reader


def test_field_metadata_is_kept():
    schema = pa.schema([pa.field("x", pa.int64(), metadata={"unit": "m"})])
    df = gar.from_arrow(pa.table({"x": [1]}, schema=schema)).select("x")
    assert df.to_arrow().schema.field("x").metadata == {b"unit": b"m"}


def test_arrow_invalid_utf8_is_an_error():
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(gar.GarError, match="UTF-8"):
        gar.from_arrow(pa.table({"c": bad}))


# ---- pandas


def test_pandas():
    frame = pd.DataFrame(
        {"i": [1, 2], "f": [1.5, np.nan], "s": ["a", None], "t": pd.to_datetime(["2020-01-01", None])}
    )
    df = gar.from_pandas(frame)
    assert df.to_pydict() == {
        "i": [1, 2],
        "f": [1.5, None],
        "s": ["a", None],
        "t": [datetime.datetime(2020, 1, 1), None],
    }
    ints = gar.from_pydict({"i": [1, None, 3]})
    assert ints.to_pandas()["i"].dtype == "float64"
    assert ints.to_pandas(nullable=True)["i"].dtype == "Int64"
    assert gar.from_pandas([frame, frame]).count_rows() == 4
    with pytest.raises(TypeError, match="names"):
        gar.from_pandas(pd.DataFrame({1: [1]}))


# ---- random data

VALUES = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.none() | st.floats(allow_nan=False)),
    st.lists(st.none() | st.booleans()),
    st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
    st.lists(st.none() | st.binary()),
    st.lists(st.none() | st.dates()),
    st.lists(st.none() | st.datetimes()),
    st.lists(st.none() | st.times()),
    st.lists(st.none() | st.timedeltas(datetime.timedelta(days=-(10**5)), datetime.timedelta(days=10**5))),
    st.lists(st.none() | st.decimals(-(10**15), 10**15, places=4)),
)


@given(VALUES)
def test_any_column_round_trips(values):
    df = gar.from_pydict({"c": values})
    assert df.to_pydict() == {"c": values}
    assert df.to_arrow().column("c").to_pylist() == values
    assert gar.from_arrow(df.to_arrow()).to_pydict() == {"c": values}
    assert gar.concat([df, df]).to_pydict() == {"c": values * 2}


@given(VALUES, st.data())
def test_any_arrow_layout_reads_the_same(values, data):
    plain = gar.from_pydict({"c": values}).to_arrow().column("c").combine_chunks()
    choices = [plain]
    if pa.types.is_large_string(plain.type):
        choices += [plain.cast(pa.string()), plain.cast(pa.string_view()), plain.dictionary_encode()]
    elif not pa.types.is_null(plain.type) and not pa.types.is_decimal(plain.type):
        choices.append(plain.dictionary_encode())
    chosen = data.draw(st.sampled_from(choices))
    start = data.draw(st.integers(0, len(values)))
    length = data.draw(st.integers(0, len(values)))
    part = chosen.slice(start, length)
    assert gar.from_arrow(pa.table({"c": part})).to_pydict() == {"c": values[start : start + length]}


def test_uuid_goes_back_as_binary(tmp_path):
    """Fixed-size binary becomes binary; the extension type that asks for the former is dropped."""
    table = pa.table({"a": pa.array([b"a" * 16, None], pa.uuid())})
    assert gar.from_arrow(table).to_arrow()["a"].to_pylist() == [b"a" * 16, None]
    pq.write_table(table, tmp_path / "u.parquet")
    assert gar.read_parquet(tmp_path / "u.parquet").to_arrow()["a"].to_pylist() == [b"a" * 16, None]
