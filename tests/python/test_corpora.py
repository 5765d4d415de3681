# SPDX-License-Identifier: Apache-2.0
"""Files of other projects: Parquet of many writers, valid and broken; CSV and numbers with their right values."""

import csv
import json
import math
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gar
from gar import col

# File -> (rows, columns). Those of NESTED have columns that are lists, maps or structs.
FLAT = {
    "alltypes_dictionary": (2, 11),
    "alltypes_plain": (8, 11),
    "alltypes_plain.snappy": (2, 11),
    "alltypes_tiny_pages": (7300, 13),
    "binary": (12, 1),
    "binary_truncated_min_max": (12, 6),
    "byte_array_decimal": (24, 1),
    "byte_stream_split.zstd": (300, 2),
    "column_chunk_key_value_metadata": (0, 2),
    "data_index_bloom_encoding_stats": (14, 1),
    "data_index_bloom_encoding_with_length": (14, 1),
    "datapage_v1-snappy-compressed-checksum": (5120, 2),
    "datapage_v1-uncompressed-checksum": (5120, 2),
    "delta_binary_packed": (200, 66),
    "delta_byte_array": (1000, 9),
    "delta_encoding_required_column": (100, 17),
    "delta_length_byte_array": (1000, 1),
    "fixed_length_byte_array": (1000, 1),
    "fixed_length_decimal": (24, 1),
    "float16_nonzeros_and_nans": (8, 1),
    "floating_orders_nan_count": (50, 6),
    "hadoop_lz4_compressed": (4, 3),
    "int32_decimal": (24, 1),
    "int32_with_null_pages": (1000, 1),
    "int64_decimal": (24, 1),
    "lz4_raw_compressed": (4, 3),
    "lz4_raw_compressed_larger": (10000, 1),
    "nan_in_stats": (2, 1),
    "plain-dict-uncompressed-checksum": (1000, 2),
    "rle-dict-snappy-checksum": (1000, 2),
    "sort_columns": (6, 2),
    "unknown-logical-type": (3, 2),
}
NESTED = [
    "datapage_v2.snappy",
    "large_string_map.brotli",
    "list_columns",
    "map_no_value",
    "nested_lists.snappy",
    "nested_structs.rust",
    "nullable.impala",
    "nulls.snappy",
    "repeated_primitive_no_list",
]
BAD_CHECKSUM = ["datapage_v1-corrupt-checksum", "rle-dict-uncompressed-corrupt-checksum"]
BAD = ["ARROW-GH-41317", "ARROW-GH-41321", "ARROW-GH-47662", "ARROW-RS-GH-6229-DICTHEADER"]


def cell(value):
    """One value in a form that compares across readers."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if hasattr(value, "replace") and hasattr(value, "microsecond"):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value


def cells(column):
    if isinstance(column, pa.ChunkedArray) and pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return [cell(value) for value in column.to_pylist()]


@pytest.mark.parametrize("name", FLAT)
def test_flat_file(corpora, name):
    path = str(corpora / "parquet-testing" / "data" / f"{name}.parquet")
    found, expected = gar.read_parquet(path).to_arrow(), pq.read_table(path)
    assert (found.num_rows, found.num_columns) == FLAT[name]
    assert found.column_names == expected.column_names
    for index, column in enumerate(found.column_names):
        assert cells(found.column(index)) == cells(expected.column(index)), column


@pytest.mark.parametrize("name", FLAT)
def test_flat_file_in_parts(corpora, name):
    """A filter on the first column and a limit give what they give on the whole table."""
    path = str(corpora / "parquet-testing" / "data" / f"{name}.parquet")
    frame = gar.read_parquet(path)
    first = frame.column_names[0]
    whole = frame.to_arrow()
    kept = pa.array(
        [row for row, value in enumerate(whole.column(0).to_pylist()) if value is not None], pa.int64()
    )
    part = frame.where(col(first).not_null()).to_arrow()
    for index, column in enumerate(whole.column_names):
        assert cells(part.column(index)) == cells(whole.column(index).take(kept)), column
    last = frame.column_names[-1]
    assert cells(frame.select(last).limit(3).to_arrow().column(0)) == cells(whole.column(last).slice(0, 3))


@pytest.mark.parametrize("name", NESTED)
def test_nested_columns_are_refused_by_name(corpora, name):
    path = str(corpora / "parquet-testing" / "data" / f"{name}.parquet")
    schema = pq.read_schema(path)
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    flat = [field.name for field in schema if not pa.types.is_nested(field.type)]
    with pytest.raises(gar.GarError) as caught:
        gar.read_parquet(path).to_arrow()
    assert any(column in str(caught.value) for column in nested)
    if flat:
        found, table = gar.read_parquet(path).select(*flat).to_arrow(), pq.read_table(path, columns=flat)
        for column in flat:
            assert cells(found.column(column)) == cells(table.column(column))


@pytest.mark.parametrize("name", BAD_CHECKSUM)
def test_wrong_checksum_is_an_error(corpora, name):
    path = corpora / "parquet-testing" / "data" / f"{name}.parquet"
    with pytest.raises(gar.GarError, match=r"(?i)crc|checksum") as caught:
        gar.read_parquet(str(path)).to_arrow()
    assert path.name in str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_an_error(corpora, name):
    path = corpora / "parquet-testing" / "bad_data" / f"{name}.parquet"
    with pytest.raises(gar.GarError) as caught:
        frame = gar.read_parquet(str(path))
        nested = [field.name for field in pq.read_schema(path) if pa.types.is_nested(field.type)]
        frame.exclude(*nested).to_arrow()
    assert path.name in str(caught.value)


def test_valid_file_among_the_bad(corpora):
    table = gar.read_parquet(
        str(corpora / "parquet-testing" / "bad_data" / "ARROW-GH-43605.parquet")
    ).to_arrow()
    assert table.num_rows == 21186
    assert table.schema.types == [pa.uint16()]


def test_malformed_dictionary_reads_or_fails(corpora):
    try:
        table = gar.read_parquet(
            str(corpora / "parquet-testing" / "data" / "nation.dict-malformed.parquet")
        ).to_arrow()
    except gar.GarError as error:
        assert "nation.dict-malformed.parquet" in str(error)
    else:
        assert table.num_rows == 25


@pytest.mark.parametrize("cut", [0, 1, 3, 4, 8, 11, 12, 100, -1, -4, -8, -9])
def test_truncated_file_is_an_error(corpora, tmp_path, cut):
    data = (corpora / "parquet-testing" / "data" / "alltypes_plain.parquet").read_bytes()
    path = tmp_path / "cut.parquet"
    path.write_bytes(data[:cut])
    with pytest.raises(gar.GarError, match=r"cut\.parquet"):
        gar.read_parquet(str(path)).to_arrow()


SPECTRUM = [
    "comma_in_quotes",
    "empty",
    "empty_crlf",
    "escaped_quotes",
    "json",
    "newlines",
    "newlines_crlf",
    "quotes_and_newlines",
    "simple",
    "simple_crlf",
    "utf8",
]


@pytest.mark.parametrize("name", SPECTRUM)
def test_csv_spectrum(corpora, name):
    path = corpora / "csv-spectrum" / "csvs" / f"{name}.csv"
    found = gar.read_csv(str(path), infer_schema=False)
    rows = [{key: value or "" for key, value in row.items()} for row in found.to_pylist()]
    if name == "newlines_crlf":
        # As published its JSON expects CRLF inside the field, its CSV has LF.
        with open(path, newline="", encoding="utf8") as file:
            expected = list(csv.DictReader(file))
    else:
        expected = json.loads((corpora / "csv-spectrum" / "json" / f"{name}.json").read_text(encoding="utf8"))
        expected = expected if isinstance(expected, list) else [expected]
    assert rows == expected


def test_csv_that_is_not_utf8(corpora):
    """As published this file is Latin-1: an error that says where, not wrong text."""
    path = corpora / "csv-spectrum" / "csvs" / "location_coordinates.csv"
    try:
        path.read_text(encoding="utf8")
    except UnicodeDecodeError:
        with pytest.raises(gar.GarError, match=r"location_coordinates\.csv"):
            gar.read_csv(str(path), infer_schema=False).to_pylist()
    else:
        assert gar.read_csv(str(path), infer_schema=False).to_pylist()[0]["Counties"] == "Stanislaus"


@pytest.mark.parametrize("name", ["more-test-cases", "google-wuffs", "exhaustive-float16"])
def test_parse_number(corpora, tmp_path, name):
    """Text to float64 and float32, bit by bit, by the CSV reader and by cast."""
    lines = (corpora / "parse-number" / f"{name}.txt").read_text().split("\n")
    cases = [line.split(" ") for line in lines if line]
    texts = [case[3] for case in cases]
    path = tmp_path / "numbers.csv"
    path.write_text("x\n" + "".join(f"{text}\n" for text in texts))
    by_csv = gar.read_csv(str(path), schema={"x": gar.DataType.float64()}).to_arrow().column("x").to_pylist()
    frame = gar.from_pydict({"x": texts}).select(
        col("x").cast(gar.DataType.float64()).alias("d"), col("x").cast(gar.DataType.float32()).alias("f")
    )
    by_cast = frame.to_arrow()
    doubles = by_cast.column("d").to_pylist()
    floats = by_cast.column("f").to_pylist()
    for index, (_, single, double, text) in enumerate(cases):
        for value in (by_csv[index], doubles[index]):
            assert struct.pack(">d", value).hex().upper() == double, text
        assert struct.pack(">f", floats[index]).hex().upper() == single, text


def test_naughty_strings_round_trip(corpora, tmp_path):
    files = sorted((corpora / "naughty-strings").glob("*.json"))
    if not files:
        pytest.skip("no JSON list of naughty strings")
    texts = json.loads(files[0].read_text(encoding="utf8"))
    frame = gar.from_pydict({"s": texts, "n": list(range(len(texts)))})
    assert frame.to_pydict()["s"] == texts
    for kind in ("parquet", "csv"):
        folder = str(tmp_path / kind)
        getattr(frame, f"write_{kind}")(folder)
        again = getattr(gar, f"read_{kind}")(
            folder, schema={"s": gar.DataType.string(), "n": gar.DataType.int64()}
        )
        assert again.sort("n").to_pydict()["s"] == texts
    assert frame.where(col("s") == texts[-1]).count_rows() >= 1
    assert "s" in repr(frame.collect())
