# SPDX-License-Identifier: Apache-2.0
"""numpy and pandas in and out: every kind of array and dtype gives the right values and the right type, or is refused."""

import datetime as dt
import decimal
import sys
import threading
import zoneinfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gar
from gar import col

UTC = dt.UTC


def made(data):
    """Type and values of one column."""
    frame = gar.from_pydict({"c": data})
    return str(frame.schema()["c"].dtype), frame.to_pydict()["c"]


@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        # NaN is a value among numbers and null elsewhere
        (["a", float("nan"), None], "string", ["a", None, None]),
        ([True, float("nan")], "bool", [True, None]),
        ([dt.date(2020, 1, 2), float("nan")], "date", [dt.date(2020, 1, 2), None]),
        ([decimal.Decimal("1.5"), float("nan")], "decimal(2, 1)", [decimal.Decimal("1.5"), None]),
        ([b"x", np.float64("nan")], "binary", [b"x", None]),
        (["a", np.float32("nan")], "string", ["a", None]),
        (np.array(["a", np.nan, None], dtype=object), "string", ["a", None, None]),
        # numpy scalars
        ([np.int8(1), None], "int64", [1, None]),
        ([np.bool_(True), None], "bool", [True, None]),
        ([np.datetime64("2020-01-02"), None], "date", [dt.date(2020, 1, 2), None]),
        (
            [np.datetime64("2020-01-02T00:00:01", "ns"), np.datetime64("NaT", "ns")],
            "timestamp[ns]",
            [dt.datetime(2020, 1, 2, 0, 0, 1), None],
        ),
        ([np.timedelta64(1000, "ns")], "duration[ns]", [dt.timedelta(microseconds=1)]),
        ([np.timedelta64(5, "D")], "duration[s]", [dt.timedelta(days=5)]),
        ([np.datetime64("NaT")], "null", [None]),
        ([np.array(3)], "int64", [3]),
        # empty and unusual arrays
        (np.array([], dtype="U5"), "string", []),
        (np.array([], dtype="S5"), "binary", []),
        (np.array([], dtype="M8[Y]"), "date", []),
        (np.array([], dtype="f2"), "float32", []),
        (np.array([1, 2, 3], dtype=">i4"), "int32", [1, 2, 3]),
        (np.array([1, 2, 3, 4])[::-2], "int64", [4, 2]),
        (np.broadcast_to(np.array([7]), 3), "int64", [7, 7, 7]),
        (np.array([[1, 2], [3, 4]])[:, 1], "int64", [2, 4]),
        (np.zeros(2, dtype=[("x", "i1"), ("y", "<i4")])["y"], "int32", [0, 0]),
        (np.frombuffer(b"\0" + (5).to_bytes(8, "little") * 2, dtype="<i8", offset=1), "int64", [5, 5]),
        (np.array([1.5, 2.5], dtype=">f2"), "float32", [1.5, 2.5]),
        (np.array([True, False, True])[::2], "bool", [True, True]),
        # masks
        (np.ma.MaskedArray([1, 2, 3], [0, 1, 0]), "int64", [1, None, 3]),
        (np.ma.MaskedArray(np.array([], dtype="u1")), "uint8", []),
        (np.ma.MaskedArray(np.array([1, 2], dtype="i2"), True), "int16", [None, None]),
        (np.ma.MaskedArray([1.5, 2.5], [1, 0]), "float64", [None, 2.5]),
        (np.ma.MaskedArray(np.array([1.5, 2.5], "f2"), [1, 0]), "float32", [None, 2.5]),
        (np.ma.MaskedArray([True, False], [0, 1]), "bool", [True, None]),
        (np.ma.MaskedArray(["a", "b"], [0, 1]), "string", ["a", None]),
        (
            np.ma.MaskedArray(np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[ns]"), [0, 0, 1]),
            "timestamp[ns]",
            [dt.datetime(2020, 1, 1), None, None],
        ),
        (np.ma.MaskedArray(np.array(["2020", "2021"], "M8[Y]"), [0, 1]), "date", [dt.date(2020, 1, 1), None]),
        # every unit
        (np.array(["2020", "NaT"], "M8[Y]"), "date", [dt.date(2020, 1, 1), None]),
        (np.array(["2020-02", "NaT"], "M8[M]"), "date", [dt.date(2020, 2, 1), None]),
        (np.array(["2020-01-02"], "M8[W]"), "date", [dt.date(2020, 1, 2)]),
        (np.array(["2020-02-29"], ">M8[D]"), "date", [dt.date(2020, 2, 29)]),
        (np.array(["2020-01-01T05"], "M8[h]"), "timestamp[s]", [dt.datetime(2020, 1, 1, 5)]),
        (np.array(["2020-01-01T05:06"], "M8[m]"), "timestamp[s]", [dt.datetime(2020, 1, 1, 5, 6)]),
        (np.array(["1969-12-31T23:59:59"], "M8[s]"), "timestamp[s]", [dt.datetime(1969, 12, 31, 23, 59, 59)]),
        (np.array([1], "M8[ms]"), "timestamp[ms]", [dt.datetime(1970, 1, 1, 0, 0, 0, 1000)]),
        (np.array([1], "M8[us]"), "timestamp[us]", [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (np.array([1000], "M8[ns]"), "timestamp[ns]", [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (np.array([1000000], "M8[ps]"), "timestamp[ns]", [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (np.array([10**15], "m8[as]"), "duration[ns]", None),
        (np.array([2], "m8[25s]"), "duration[s]", [dt.timedelta(seconds=50)]),
        (np.array([1, 2], "m8[W]"), "duration[s]", [dt.timedelta(weeks=1), dt.timedelta(weeks=2)]),
        # pandas' own objects in lists
        (
            [pd.Timestamp("2020-01-01"), pd.NaT, pd.NA],
            "timestamp[us]",
            [dt.datetime(2020, 1, 1), None, None],
        ),
        ([pd.Timedelta(1, "s"), None], "duration[us]", [dt.timedelta(seconds=1), None]),
    ],
)
def test_values_and_types(data, kind, values):
    frame = gar.from_pydict({"c": data})
    assert str(frame.schema()["c"].dtype) == kind
    assert len(frame) == len(data)
    if values is not None:
        assert frame.to_pydict()["c"] == values
        assert frame.collect().to_pylist() == [{"c": value} for value in values]


def test_nanoseconds_of_pandas_stay():
    stamps = [
        pd.Timestamp("2020-01-01 00:00:00.000000001"),
        pd.Timestamp("1969-12-31 23:59:59.999999999"),
        None,
    ]
    frame = gar.from_pydict({"t": stamps, "d": [pd.Timedelta(1, "ns"), pd.Timedelta(-1, "ns"), None]})
    assert [str(f.dtype) for f in frame.schema()] == ["timestamp[ns]", "duration[ns]"]
    table = frame.to_arrow()
    assert table["t"].cast(pa.int64()).to_pylist() == [1577836800000000001, -1, None]
    assert table["d"].cast(pa.int64()).to_pylist() == [1, -1, None]
    zoned = gar.from_pydict({"t": [pd.Timestamp("2020-06-01 12:00:00.000000007", tz="Europe/Berlin")]})
    assert str(zoned.schema()["t"].dtype) == "timestamp[ns, Europe/Berlin]"
    assert zoned.to_arrow()["t"].cast(pa.int64()).to_pylist() == [1591005600000000007]
    with pytest.raises(gar.GarError, match="nanoseconds") as caught:
        gar.from_pydict({"t": [stamps[0], dt.datetime(9999, 1, 1)]})
    assert isinstance(caught.value, OverflowError)
    # what Python's datetime cannot hold is an error on the way out, never cut
    with pytest.raises(ValueError, match="microseconds"):
        frame.to_pydict()


def test_literals_keep_their_nanoseconds():
    frame = gar.from_pydict({"t": np.array([1, 2], "M8[ns]"), "d": np.array([1, 2], "m8[ns]")})
    for value in (np.datetime64(1, "ns"), pd.Timestamp(1)):
        assert frame.where(col("t") == value).count_rows() == 1
        assert str(frame.select(gar.lit(value).alias("x")).schema()["x"].dtype) == "timestamp[ns]"
    for value in (np.timedelta64(2, "ns"), pd.Timedelta(2, "ns")):
        assert frame.where(col("d") == value).count_rows() == 1
    assert frame.where(col("t") == np.datetime64("1970-01-01", "D")).count_rows() == 0
    assert (
        frame.select(gar.lit(np.datetime64("2020-02-29")).alias("x")).to_pydict()["x"]
        == [dt.date(2020, 2, 29)] * 2
    )
    assert frame.select(gar.lit(np.datetime64("NaT", "ns")).alias("x")).to_pydict()["x"] == [None] * 2
    early = dt.datetime(1, 1, 1, tzinfo=UTC)
    assert frame.limit(1).select(gar.lit(early).alias("x")).to_pydict() == {"x": [early]}


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (np.zeros((2, 2)), TypeError, "dimension"),
        (np.array(5), TypeError, "dimension"),
        (np.array([1j]), NotImplementedError, "'c'"),
        (np.zeros(2, dtype="i4,i4"), NotImplementedError, "structured"),
        (np.array([5], dtype="m8[Y]"), NotImplementedError, "fixed length"),
        (np.array([1], dtype="M8[ps]"), ValueError, "finer than nanoseconds"),
        (np.array([2**62], dtype="M8[W]"), OverflowError, "out of range"),
        (np.array([2**62], dtype="M8[h]"), OverflowError, "out of range"),
        (["a", 1], TypeError, "row 1"),
        (["a", 1.5], TypeError, "row 1"),
        ([np.datetime64("2020-01-01"), 5], TypeError, "row 1"),
        ([np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns")], TypeError, "row 1"),
        ([np.datetime64("2020-01-01"), dt.datetime(2020, 1, 1)], TypeError, "row 1"),
        ([2**53 + 1, 0.5], OverflowError, "row 0"),
        ([dt.time(1, tzinfo=UTC)], NotImplementedError, "time zone"),
        ([dt.timedelta.max], OverflowError, "row 0"),
        ([pd.Period("2020-01")], TypeError, "Period"),
        ([object()], TypeError, "object"),
        (pd.Series(pd.period_range("2020", periods=2)), NotImplementedError, "to_timestamp"),
        (pd.Series(pd.interval_range(0, 2)), NotImplementedError, "left"),
        (pd.Series([1j, 2j]), NotImplementedError, "real"),
        (pd.Series([{"a": 1}]), NotImplementedError, "nested"),
        (pd.Series(["a", 5]), TypeError, "row 1"),
        (pd.DataFrame({"a": [1]}), TypeError, "c"),
    ],
)
def test_what_no_column_can_hold(data, kind, words):
    with pytest.raises(gar.GarError, match="column 'c'") as caught:
        gar.from_pydict({"c": data})
    assert isinstance(caught.value, kind), caught.value
    assert words in str(caught.value)


def pandas_columns():
    zone = "Europe/Berlin"
    return {
        "int": (pd.Series([1, 2, 3]), "int64", [1, 2, 3]),
        "uint8": (pd.Series([1, 2, 3], dtype="u1"), "uint8", [1, 2, 3]),
        "bool": (pd.Series([True, False, True]), "bool", [True, False, True]),
        "float": (pd.Series([1.5, np.nan, 2.5]), "float64", [1.5, None, 2.5]),
        "float32": (pd.Series([1.5, np.nan, 2.5], dtype="f4"), "float32", [1.5, None, 2.5]),
        "Int64": (pd.Series([1, None, 2**62 + 1], dtype="Int64"), "int64", [1, None, 2**62 + 1]),
        "UInt16": (pd.Series([1, None, 3], dtype="UInt16"), "uint16", [1, None, 3]),
        "Int8 null": (pd.Series([None] * 3, dtype="Int8"), "int8", [None] * 3),
        "Float64": (pd.Series([1.5, None, 2.5], dtype="Float64"), "float64", [1.5, None, 2.5]),
        "boolean": (pd.Series([True, None, False], dtype="boolean"), "bool", [True, None, False]),
        "str": (pd.Series(["a", None, "ü" * 20]), "string", ["a", None, "ü" * 20]),
        "object": (pd.Series(["a", np.nan, None], dtype=object), "string", ["a", None, None]),
        "string[python]": (pd.Series(["a", None, "c"], dtype="string[python]"), "string", ["a", None, "c"]),
        "string[pyarrow]": (pd.Series(["a", None, "c"], dtype="string[pyarrow]"), "string", ["a", None, "c"]),
        "string null": (pd.Series([None] * 3, dtype="string"), "string", [None] * 3),
        "bytes": (pd.Series([b"a", None, b"c"], dtype=object), "binary", [b"a", None, b"c"]),
        "decimal": (
            pd.Series([decimal.Decimal("1.50"), None, decimal.Decimal("-2")], dtype=object),
            "decimal(3, 2)",
            [decimal.Decimal("1.50"), None, decimal.Decimal("-2.00")],
        ),
        "date": (
            pd.Series([dt.date(2020, 1, 1), None, dt.date(1, 1, 1)], dtype=object),
            "date",
            [dt.date(2020, 1, 1), None, dt.date(1, 1, 1)],
        ),
        "time": (
            pd.Series([dt.time(1, 2), None, dt.time(3)], dtype=object),
            "time[us]",
            [dt.time(1, 2), None, dt.time(3)],
        ),
        "datetime": (
            pd.Series(np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[ns]")),
            "timestamp[ns]",
            [dt.datetime(2020, 1, 1), None, dt.datetime(2021, 1, 1)],
        ),
        "datetime s": (
            pd.Series(np.array(["2020-01-01", "NaT", "9999-12-31"], "M8[s]")),
            "timestamp[s]",
            [dt.datetime(2020, 1, 1), None, dt.datetime(9999, 12, 31)],
        ),
        "timedelta": (
            pd.Series(pd.to_timedelta([1, None, -5], unit="s")).astype("m8[ms]"),
            "duration[ms]",
            [dt.timedelta(seconds=1), None, dt.timedelta(seconds=-5)],
        ),
        "zone": (
            pd.Series(pd.to_datetime(["2020-06-01 12:00", None, "2020-01-01 12:00"])).dt.tz_localize(zone),
            f"timestamp[us, {zone}]",
            [
                dt.datetime(2020, 6, 1, 12, tzinfo=zoneinfo.ZoneInfo(zone)),
                None,
                dt.datetime(2020, 1, 1, 12, tzinfo=zoneinfo.ZoneInfo(zone)),
            ],
        ),
        "offset": (
            pd.Series(pd.to_datetime(["2020-06-01 12:00+02:00"] * 3)),
            "timestamp[us, +02:00]",
            [dt.datetime(2020, 6, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))] * 3,
        ),
        "category": (pd.Series(["x", None, "y"], dtype="category"), "string", ["x", None, "y"]),
        "category int": (pd.Series(pd.Categorical([5, None, 7])), "int64", [5, None, 7]),
        "category null": (pd.Series(pd.Categorical([None] * 3, categories=["a"])), "string", [None] * 3),
        "category date": (
            pd.Series(pd.Categorical(pd.to_datetime(["2020-01-01", None, "2020-01-01"]))),
            "timestamp[us]",
            [dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 1)],
        ),
        "sparse": (pd.Series(pd.arrays.SparseArray([0, 5, 0])), "int64", [0, 5, 0]),
        "arrow": (pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.int16())), "int16", [1, None, 3]),
        "arrow date": (
            pd.Series([dt.date(2020, 1, 1), None, None], dtype=pd.ArrowDtype(pa.date32())),
            "date",
            [dt.date(2020, 1, 1), None, None],
        ),
        "arrow dictionary": (
            pd.Series(["a", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
            "string",
            ["a", None, "a"],
        ),
        "strided": (pd.DataFrame(np.arange(6).reshape(3, 2), columns=["p", "q"])["q"], "int64", [1, 3, 5]),
    }


@pytest.mark.parametrize("name", list(pandas_columns()))
@pytest.mark.parametrize("without_pyarrow", [False, True])
def test_pandas_columns(name, without_pyarrow, monkeypatch):
    series, kind, values = pandas_columns()[name]
    if without_pyarrow and "pyarrow" not in str(series.dtype):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = gar.from_pandas(pd.DataFrame({"c": series}))
    expected = frame.to_pydict()["c"]
    assert str(frame.schema()["c"].dtype).replace("[ns", "[us") == kind.replace("[ns", "[us")
    assert expected == values
    assert gar.from_pydict({"c": series}).to_pydict()["c"] == values
    assert gar.Series.from_pandas(series, "c").to_pylist() == values
    # a piece of it, and no rows at all, have the same type
    assert gar.from_pandas(pd.DataFrame({"c": series}).iloc[1:]).to_pydict()["c"] == values[1:]
    if series.dtype != object:
        empty = gar.from_pandas(pd.DataFrame({"c": series}).iloc[:0])
        assert empty.schema() == frame.schema()


@pytest.mark.parametrize("name", list(pandas_columns()))
def test_round_trips(name):
    series, _, values = pandas_columns()[name]
    frame = gar.from_pandas(pd.DataFrame({"c": series}))
    schema = frame.schema()
    assert gar.from_arrow(frame.to_arrow()).schema() == schema
    assert gar.from_arrow(frame.to_arrow()).to_pydict()["c"] == values
    is_exact = name != "Int64"  # integers with nulls are float64 in pandas unless nullable
    for nullable in (False, True) if is_exact else (True,):
        again = gar.from_pandas(frame.to_pandas(nullable=nullable))
        found = again.to_pydict()["c"]
        assert found == values, f"nullable={nullable}"
    assert frame.to_arrow()["c"].to_pylist() == values


def test_frames_of_pandas_that_are_refused():
    for data, kind in (
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError),
        (pd.DataFrame([[1, 2]]), TypeError),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), TypeError),
        (pd.Series([1]), TypeError),
        ({"a": [1]}, TypeError),
        ([], ValueError),
    ):
        with pytest.raises(gar.GarError) as caught:
            gar.from_pandas(data)
        assert isinstance(caught.value, kind)
    index = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    assert gar.from_pandas(index).to_pydict() == {"a": [1, 2]}
    assert gar.from_pandas([index, index]).to_pydict() == {"a": [1, 2, 1, 2]}


def test_packages_that_are_not_installed(monkeypatch):
    frame = gar.from_pydict({"a": [1]})
    series = gar.Series.from_pylist([1])
    for module, calls in (
        ("pandas", [frame.to_pandas, series.to_pandas, next(frame.iter_partitions()).to_pandas]),
        ("pyarrow", [frame.to_arrow, frame.to_arrow_iter, series.to_arrow, frame.schema().to_pyarrow_schema]),
        ("numpy", [series.to_numpy]),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            for call in calls:
                with pytest.raises(ImportError, match=f"pip install {module}") as caught:
                    call()
                assert isinstance(caught.value, gar.GarError)
                assert caught.value.name == module


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (pa.array([2932897], pa.date32()), "year 10000"),
        (pa.array([-719163], pa.date32()), "year 0"),
        (pa.array([2**62], pa.timestamp("s")), "beyond Python's datetime"),
        (pa.array([253402300799], pa.timestamp("s", "Asia/Tokyo")), "local time"),
        (pa.array([2**62], pa.duration("s")), "beyond Python's timedelta"),
        (pa.array([1], pa.timestamp("ns")), "microseconds"),
    ],
)
def test_times_that_python_cannot_hold(array, words):
    frame = gar.from_arrow(pa.table({"c": array}))
    for call in (frame.to_pydict, frame.to_pylist, lambda: list(frame.iter_rows()), lambda: list(frame)):
        with pytest.raises(gar.GarError, match="column 'c'") as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert words in str(caught.value)
    # a broken iterator stays broken: a cut result never looks complete
    rows = frame.iter_rows()
    for _ in range(2):
        with pytest.raises(gar.GarError):
            next(rows)
    assert frame.to_arrow()["c"].null_count == 0


def test_unknown_time_zone():
    table = pa.table({"c": pa.array([0], pa.timestamp("s", "Mars/Olympus"))})
    try:
        frame = gar.from_arrow(table)
    except gar.GarError as error:
        assert "Mars/Olympus" in str(error)
        return
    with pytest.raises(gar.GarError, match="Mars/Olympus") as caught:
        frame.to_pydict()
    assert isinstance(caught.value, ValueError)


def test_threads_share_an_iterator():
    count = 20_000
    frame = gar.range(0, count).with_column("s", "x").collect()
    for make in (frame.iter_rows, lambda: gar.range(0, count).where(col("id") >= 0).iter_rows()):
        rows = make()
        found = [[] for _ in range(4)]
        errors = []

        def read(into, rows=rows, errors=errors):
            try:
                into.extend(row["id"] for row in rows)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=read, args=(into,)) for into in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert sorted(n for part in found for n in part) == list(range(count))
    batches = frame.into_batches(100).iter_partitions()
    assert sum(len(batch) for batch in batches) == count
    rows = frame.iter_rows()
    next(rows)
    rows.close()
    assert list(rows) == []


def test_a_foreign_exception_is_the_cause():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ZeroDivisionError("no such luck")

    for call in (lambda: gar.from_arrow(Broken()), lambda: gar.from_pydict({"a": Broken()})):
        with pytest.raises(gar.GarError, match="no such luck") as caught:
            call()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert isinstance(caught.value, ValueError)

    def rows():
        yield {"a": 1}
        raise RuntimeError("the source broke")

    with pytest.raises(gar.exceptions.GarCallbackError, match="RuntimeError: the source broke"):
        gar.from_pylist(rows())
    with pytest.raises(KeyboardInterrupt):
        gar.from_pylist(interrupted())


def interrupted():
    yield {"a": 1}
    raise KeyboardInterrupt


def test_list_of_an_uncollected_frame():
    frame = gar.from_pydict({"a": [1, 2]}).where(col("a") > 1)
    assert list(frame) == [{"a": 2}]
    with pytest.raises(RuntimeError, match="collect") as caught:
        len(frame)
    assert isinstance(caught.value, gar.GarError)
