# SPDX-License-Identifier: Apache-2.0
"""The same question to Gar and to another engine, over random data: DuckDB, Polars and pyarrow answer too.

Values stay where the engines agree by their documents: no NaN in comparisons (Gar follows IEEE, DuckDB sorts NaN as greatest), text
compared by bytes, sums within int64.
"""

import csv
import datetime
import io
import itertools
import math
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gar
from gar import col

pytestmark = pytest.mark.settings

INTEGERS = st.integers(-5, 5)
FLOATS = st.sampled_from([-2.5, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.75, 1e300])
TEXTS = st.text(alphabet="abAB%_é'0 ", max_size=16)
DAYS = st.dates(datetime.date(1969, 12, 25), datetime.date(1970, 1, 8))
MONEY = st.integers(-999, 999).map(lambda cents: Decimal(cents).scaleb(-2))

COLUMNS = {
    "i": (INTEGERS, pa.int64()),
    "k": (st.integers(0, 3), pa.int32()),
    "f": (FLOATS, pa.float64()),
    "s": (TEXTS, pa.string()),
    "d": (DAYS, pa.date32()),
    "b": (st.booleans(), pa.bool_()),
    "n": (MONEY, pa.decimal128(10, 2)),
}


@st.composite
def tables(draw, max_rows=40):
    """Up to max_rows rows of every column of COLUMNS, nulls included, and a row number; in one to three chunks."""
    count = draw(st.integers(0, max_rows))
    arrays = {"row": pa.array(range(count), pa.int64())}
    for name, (values, kind) in COLUMNS.items():
        cells = draw(st.lists(st.none() | values, min_size=count, max_size=count))
        arrays[name] = pa.array(cells, kind)
    table = pa.table(arrays)
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=2)))
    edges = [0, *cuts, count]
    return pa.concat_tables([table.slice(a, b - a) for a, b in itertools.pairwise(edges)])


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def literal_of(name):
    values = COLUMNS[name][0]
    if name == "s":
        return values.map(quoted)
    if name == "d":
        return values.map(lambda day: f"date '{day.isoformat()}'")
    if name == "b":
        return values.map(lambda flag: str(flag).lower())
    return values.map(str)


@st.composite
def comparisons(draw):
    """One condition in SQL that both engines read alike."""
    name = draw(st.sampled_from(list(COLUMNS)))
    value = literal_of(name)
    kind = draw(st.sampled_from(["compare", "null", "between", "in", "like", "columns"]))
    if kind == "null":
        return f"{name} is {draw(st.sampled_from(['', 'not ']))}null"
    if kind == "between" and name != "b":
        return f"{name} {draw(st.sampled_from(['', 'not ']))}between {draw(value)} and {draw(value)}"
    if kind == "in":
        return f"{name} in ({', '.join(draw(st.lists(value, min_size=1, max_size=4)))})"
    if kind == "like":
        pattern = quoted(draw(st.text(alphabet="abAé%_0", max_size=5)))
        return f"s {draw(st.sampled_from(['', 'not ']))}like {pattern}"
    if kind == "columns":
        return f"i + k {draw(st.sampled_from(['<', '<=', '=', '<>', '>', '>=']))} {draw(INTEGERS)}"
    return f"{name} {draw(st.sampled_from(['<', '<=', '=', '<>', '>', '>=']))} {draw(value)}"


PREDICATES = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=5,
)


def ask_duckdb(table, sql):
    """Rows of a query over `t`."""
    with duckdb.connect() as connection:
        connection.register("arrow_t", table)
        connection.execute("create table t as from arrow_t")
        return connection.execute(sql).fetchall()


def close(left, right):
    if isinstance(left, float) or isinstance(right, float):
        if left is None or right is None:
            return left is right
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right


def same_rows(left, right):
    return len(left) == len(right) and all(
        len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(left, right, strict=True)
    )


def by_key(rows, keys):
    """Sorted by the first `keys` cells, nulls first."""
    return sorted(
        rows, key=lambda row: [(cell is not None, cell if cell is not None else 0) for cell in row[:keys]]
    )


def rows_of(frame):
    data = frame.to_pydict()
    return list(zip(*data.values(), strict=True))


@given(tables(), PREDICATES)
def test_where_as_in_duckdb(table, predicate):
    expected = [row for (row,) in ask_duckdb(table, f"select row from t where {predicate} order by row")]
    assert gar.from_arrow(table).where(predicate).to_pydict()["row"] == expected


@given(tables(), PREDICATES)
def test_where_splits_the_rows_in_three(table, predicate):
    """A predicate, its negation and its null test part the rows, whatever the predicate is."""
    frame = gar.from_arrow(table)
    parts = [predicate, f"not ({predicate})", f"({predicate}) is null"]
    found = [row for part in parts for row in frame.where(part).to_pydict()["row"]]
    assert sorted(found) == list(range(table.num_rows))


@given(tables(), st.sampled_from(["s", "k", "b", "d", "n", "f", "i"]))
def test_group_by_as_in_duckdb(table, key):
    sql = f"""select {key}, count(*), count(i), sum(i), sum(n), min(s), max(d), avg(f), avg(k), count(distinct s),
        min(f), max(n), stddev_samp(k) from t group by {key}"""
    frame = (
        gar.from_arrow(table)
        .groupby(key)
        .agg(
            col("row").count().alias("c0"),
            col("i").count().alias("c1"),
            col("i").sum().alias("c2"),
            col("n").sum().alias("c3"),
            col("s").min().alias("c4"),
            col("d").max().alias("c5"),
            col("f").mean().alias("c6"),
            col("k").mean().alias("c7"),
            col("s").count_distinct().alias("c8"),
            col("f").min().alias("c9"),
            col("n").max().alias("c10"),
            col("k").stddev().alias("c11"),
        )
    )
    assert same_rows(by_key(rows_of(frame), 1), by_key(ask_duckdb(table, sql), 1))


@given(tables(), st.lists(st.sampled_from(["s", "k", "b", "d"]), min_size=2, max_size=3, unique=True))
def test_group_by_several_as_in_duckdb(table, keys):
    names = ", ".join(keys)
    frame = gar.from_arrow(table).groupby(*keys).agg(col("i").sum().alias("q"), col("f").max().alias("m"))
    expected = ask_duckdb(table, f"select {names}, sum(i), max(f) from t group by {names}")
    assert same_rows(by_key(rows_of(frame), len(keys)), by_key(expected, len(keys)))


@given(tables(), PREDICATES)
def test_global_aggregate_as_in_duckdb(table, predicate):
    frame = gar.from_arrow(table).where(predicate)
    found = rows_of(
        frame.agg(
            col("row").count().alias("c"),
            col("i").sum().alias("s"),
            col("n").sum().alias("n"),
            col("d").min().alias("d"),
            col("f").mean().alias("m"),
        )
    )
    assert same_rows(
        found, ask_duckdb(table, f"select count(*), sum(i), sum(n), min(d), avg(f) from t where {predicate}")
    )


@given(
    tables(),
    st.lists(
        st.tuples(st.sampled_from(list(COLUMNS)), st.booleans()),
        min_size=1,
        max_size=3,
        unique_by=lambda k: k[0],
    ),
)
def test_sort_as_in_polars(table, keys):
    names, descending = [name for name, _ in keys], [down for _, down in keys]
    expected = pl.from_arrow(table).sort(
        names, descending=descending, nulls_last=[not down for down in descending], maintain_order=True
    )
    found = gar.from_arrow(table).sort(names, desc=descending).to_pydict()["row"]
    assert found == expected["row"].to_list()


@given(tables(), st.integers(0, 45), st.integers(0, 45))
def test_limit_offset_concat_as_in_polars(table, offset, limit):
    frame, other = gar.from_arrow(table), pl.from_arrow(table)
    assert frame.offset(offset).limit(limit).to_pydict()["row"] == other.slice(offset, limit)["row"].to_list()
    both = frame.limit(limit).concat(frame.offset(offset))
    assert both.to_pydict()["row"] == pl.concat([other.head(limit), other.slice(offset)])["row"].to_list()


@given(tables(), st.lists(st.sampled_from(["s", "k", "b", "i"]), min_size=1, max_size=3, unique=True))
def test_distinct_as_in_polars(table, names):
    expected = pl.from_arrow(table).select(names).unique().rows()
    found = rows_of(gar.from_arrow(table).select(*names).distinct())
    assert by_key(found, len(names)) == by_key(expected, len(names))


@given(tables())
def test_arithmetic_as_in_duckdb(table):
    sql = """select i + k, i - k * 2, -i, i * n, n + n, n * n, f + i, f * 2, i / 4, case when b then i else k end,
        coalesce(i, k, -1), i > k from t order by row"""
    i, k, n, f, b = (col(name) for name in "iknfb")
    frame = gar.from_arrow(table).select(
        (i + k).alias("c0"),
        (i - k * 2).alias("c1"),
        (-i).alias("c2"),
        (i * n).alias("c3"),
        (n + n).alias("c4"),
        (n * n).alias("c5"),
        (f + i).alias("c6"),
        (f * 2).alias("c7"),
        (i / 4).alias("c8"),
        gar.when(b, i).otherwise(k).alias("c9"),
        gar.coalesce(i, k, gar.lit(-1)).alias("c10"),
        (i > k).alias("c11"),
    )
    assert same_rows(rows_of(frame), ask_duckdb(table, sql))


@given(tables())
def test_text_and_dates_as_in_duckdb(table):
    sql = """select lower(s), upper(s), length(s), contains(s, 'a'), starts_with(s, 'A'), ends_with(s, 'b'), year(d), month(d),
        day(d), cast(i as varchar), cast(k as double) from t order by row"""
    s, d = col("s"), col("d")
    frame = gar.from_arrow(table).select(
        s.lower().alias("c0"),
        s.upper().alias("c1"),
        s.length().alias("c2"),
        s.contains("a").alias("c3"),
        s.startswith("A").alias("c4"),
        s.endswith("b").alias("c5"),
        d.year().alias("c6"),
        d.month().alias("c7"),
        d.day().alias("c8"),
        col("i").cast(gar.DataType.string()).alias("c9"),
        col("k").cast(gar.DataType.float64()).alias("c10"),
    )
    assert same_rows(rows_of(frame), ask_duckdb(table, sql))


def plain(table):
    """Without chunks, with the large string types that Gar gives out."""
    fields = [
        field.with_type(pa.large_string() if pa.types.is_string(field.type) else field.type).with_nullable(
            True
        )
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks().replace_schema_metadata(None)


@given(
    tables(),
    st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
    st.sampled_from(["1.0", "2.0"]),
    st.booleans(),
    st.integers(1, 50),
    st.sampled_from([16, 64, 1 << 20]),
)
def test_parquet_from_pyarrow(
    tmp_path_factory, table, codec, page_version, dictionary, group_rows, page_bytes
):
    path = tmp_path_factory.mktemp("parquet") / "t.parquet"
    pq.write_table(
        table,
        path,
        compression=codec,
        data_page_version=page_version,
        use_dictionary=dictionary,
        row_group_size=group_rows,
        data_page_size=page_bytes,
        write_batch_size=4,
    )
    assert plain(gar.read_parquet(str(path)).to_arrow()) == plain(table)


@given(tables(), st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4_raw"]))
def test_parquet_to_pyarrow(tmp_path_factory, table, codec):
    folder = tmp_path_factory.mktemp("written")
    paths = gar.from_arrow(table).write_parquet(str(folder), compression=codec).to_pydict()["path"]
    parts = [plain(pq.ParquetFile(path).read()) for path in sorted(paths)]
    found = pa.concat_tables(parts) if parts else table.slice(0, 0)
    assert plain(found) == plain(table)


@given(tables(), PREDICATES)
def test_parquet_statistics_prune_nothing_wanted(tmp_path_factory, table, predicate):
    """Row groups of three rows in order of `i`: what statistics skip must not hold a wanted row."""
    path = tmp_path_factory.mktemp("pruned") / "t.parquet"
    ordered = table.sort_by("i")
    pq.write_table(ordered, path, row_group_size=3)
    expected = gar.from_arrow(ordered).where(predicate).to_pydict()["row"]
    assert gar.read_parquet(str(path)).where(predicate).to_pydict()["row"] == expected


CELLS = st.text(alphabet=st.sampled_from("ab,\"\n\r'é;|#\\ 1"), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=20), st.sampled_from([",", "|", "\t", ";"]))
def test_csv_as_python_writes_it(tmp_path_factory, rows, delimiter):
    """Every field quoted: text comes back unchanged, whatever it holds."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("x", "y", "z"), *rows])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    frame = gar.read_csv(str(path), delimiter=delimiter, infer_schema=False)
    assert rows_of(frame) == rows


@given(st.lists(st.tuples(st.none() | CELLS, st.none() | INTEGERS), max_size=20))
def test_csv_as_python_reads_it(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv-out")
    table = pa.table(
        {
            "s": pa.array([row[0] for row in rows], pa.string()),
            "i": pa.array([row[1] for row in rows], pa.int64()),
        }
    )
    paths = gar.from_arrow(table).write_csv(str(folder)).to_pydict()["path"]
    found = []
    for path in sorted(paths):
        with open(path, newline="", encoding="utf8") as file:
            found += list(csv.reader(file))[1:]
    assert found == [[row[0] or "", "" if row[1] is None else str(row[1])] for row in rows]
    again = gar.read_csv(str(folder), schema={"s": gar.DataType.string(), "i": gar.DataType.int64()})
    assert rows_of(again) == [tuple(row) for row in rows]
