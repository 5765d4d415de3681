# SPDX-License-Identifier: Apache-2.0
"""Every benchmark case in every engine. A case is a method: it runs the whole query and returns its result.

What a method returns is turned into plain rows outside of the measured time (cases.py). An engine
that lacks a method does not take part in that case. Each engine gets THREADS threads; inputs are the
same files for all, but for Daft, which cannot read Parquet files whose Arrow schema says string_view:
it gets the same rows rewritten with plain strings. The queries of TPC-H are in the folder tpch, those of the groups h2o and
clicks in the folder analytics.
"""

import datetime
import importlib
import os
import sys
from decimal import Decimal
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "tpch")]

THREADS = 2
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
ANALYTICS_TABLES = {
    **dict.fromkeys(("groups", "x", "small", "medium", "big"), "h2o"),
    "clicks": "clicks",
}
SCALE_FACTOR = 1
SMALL_ROWS = 1000
SMALL_LOOPS = 1000

Q1_DATE = datetime.date(1998, 9, 2)
Q6_FROM, Q6_TO = datetime.date(1994, 1, 1), datetime.date(1995, 1, 1)
# One per cent of the rows: the file is in order of l_orderkey, and l_partkey is scattered.
CLUSTERED_BELOW = 60_000
SCATTERED_BELOW = 2_000


def small_data():
    """A thousand rows from a fixed formula: a key of ten values, a number, a flag to filter by."""
    rows = range(SMALL_ROWS)
    return {
        "k": [row * 7 % 10 for row in rows],
        "v": [float(row * 31 % 1000) for row in rows],
        "f": [row * 13 % 100 for row in rows],
    }


def views_of(frame):
    """The frame's schema with texts as views, which need no copy."""
    import pyarrow as pa

    fields = pa.schema(frame)
    return pa.schema(
        [f.with_type(pa.string_view()) if pa.types.is_large_string(f.type) else f for f in fields]
    )


def count_stream(reader, check):
    """Drain a stream of Arrow batches: rows, and when checking also some sums of their contents."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, quantity, comment_bytes = 0, Decimal(0), 0
    for batch in reader:
        rows += batch.num_rows
        if check and batch.num_rows:
            quantity += pc.sum(batch.column(batch.schema.get_field_index("l_quantity"))).as_py()
            comments = batch.column(batch.schema.get_field_index("l_comment")).cast(pa.large_string())
            comment_bytes += pc.sum(pc.binary_length(comments)).as_py()
    return [(rows, quantity, comment_bytes)] if check else [(rows,)]


class Engine:
    """Where the inputs are; `check` asks a method for a full result instead of a cheap one."""

    name = ""

    def __init__(self, data, check=False):
        self.lineitem = f"{data}/tpch-1/lineitem.parquet"
        self.folder = f"{data}/tpch-1"
        self.csv = f"{data}/csv-1/lineitem.csv"
        self.data = data
        self.check = check
        self.small = None
        self.start()

    def start(self):
        pass

    def tables(self, scan):
        """The tables of TPC-H by name, for the queries in the folder tpch."""
        frames = {name: scan(f"{self.folder}/{name}.parquet") for name in TABLES}
        return SimpleNamespace(scale_factor=SCALE_FACTOR, **frames)

    def analytics_tables(self, scan):
        """The tables of the groups h2o and clicks by name."""
        return {
            name: scan(f"{self.data}/{folder}/{name}.parquet") for name, folder in ANALYTICS_TABLES.items()
        }

    def analytics_result(self, case, result):
        """The result, or when checking what tells whether it is right: for a sort, rows at places all over it."""
        if not self.check:
            return result
        import pyarrow as pa

        table = result if isinstance(result, pa.Table) else result.to_arrow()
        if case == "h2o_sort":
            return table.take(list(range(0, table.num_rows, table.num_rows // 999)))
        return table

    @staticmethod
    def sql(number):
        queries = importlib.import_module("sql").QUERIES
        return queries[number].replace("{scale_factor}", str(SCALE_FACTOR))


class Gar(Engine):
    name = "gar"

    def start(self):
        import gar

        self.gar = gar
        gar.set_runner_native(num_threads=THREADS)

    def version(self):
        return self.gar.__version__

    def read(self):
        return self.gar.read_parquet(self.lineitem)

    def tpch(self, number):
        query = importlib.import_module("queries").QUERIES[number]
        return query(self.tables(self.gar.read_parquet)).to_pylist()

    def analytics(self, case):
        queries = importlib.import_module("analytics.queries")
        tables = SimpleNamespace(**self.analytics_tables(self.gar.read_parquet))
        return self.analytics_result(case, queries.gar_query(case, tables).to_arrow())

    def q1(self):
        col = self.gar.col
        disc_price = col("l_extendedprice") * (1 - col("l_discount"))
        query = (
            self.read()
            .where(col("l_shipdate") <= Q1_DATE)
            .groupby("l_returnflag", "l_linestatus")
            .agg(
                col("l_quantity").sum().alias("sum_qty"),
                col("l_extendedprice").sum().alias("sum_base_price"),
                disc_price.sum().alias("sum_disc_price"),
                (disc_price * (1 + col("l_tax"))).sum().alias("sum_charge"),
                col("l_quantity").mean().alias("avg_qty"),
                col("l_extendedprice").mean().alias("avg_price"),
                col("l_discount").mean().alias("avg_disc"),
                col("l_quantity").count().alias("count_order"),
            )
            .sort(["l_returnflag", "l_linestatus"])
        )
        return query.to_pylist()

    def q6(self):
        col = self.gar.col
        return (
            self.read()
            .where(
                (col("l_shipdate") >= Q6_FROM)
                & (col("l_shipdate") < Q6_TO)
                & col("l_discount").between(Decimal("0.05"), Decimal("0.07"))
                & (col("l_quantity") < 24)
            )
            .agg((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))
            .to_pylist()
        )

    def csv_max(self):
        frame = self.gar.read_csv(self.csv)
        return frame.agg(*[self.gar.col(name).max() for name in frame.column_names]).to_pylist()

    def parquet_stream(self):
        import pyarrow as pa

        frame = self.read()
        return count_stream(pa.RecordBatchReader.from_stream(frame, schema=views_of(frame)), self.check)

    def parquet_table(self):
        return self.read().to_arrow()

    def filter_clustered(self):
        return self.read().where(self.gar.col("l_orderkey") < CLUSTERED_BELOW).to_arrow()

    def filter_scattered(self):
        return self.read().where(self.gar.col("l_partkey") < SCATTERED_BELOW).to_arrow()

    def group_flags(self):
        col = self.gar.col
        return (
            self.read()
            .groupby("l_returnflag", "l_linestatus")
            .agg(col("l_quantity").sum().alias("q"), col("l_quantity").count().alias("n"))
            .to_pylist()
        )

    def group_orderkey(self):
        col = self.gar.col
        return self.read().groupby("l_orderkey").agg(col("l_quantity").sum().alias("q")).to_arrow()

    def small_query(self):
        col = self.gar.col
        if self.small is None:
            self.small = self.gar.from_pydict(small_data()).collect()
        for _ in range(SMALL_LOOPS):
            rows = self.small.where(col("f") < 50).groupby("k").agg(col("v").sum().alias("s")).to_pydict()
        return rows


class DuckDB(Engine):
    name = "duckdb"

    def start(self):
        import duckdb

        self.duckdb = duckdb
        self.con = duckdb.connect(config={"threads": THREADS})

    def version(self):
        return self.duckdb.__version__

    def rows(self, sql):
        cursor = self.con.execute(sql)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def table(self, sql):
        return self.con.execute(sql).to_arrow_table()

    def tpch(self, number):
        for name in TABLES:
            self.con.execute(f"create or replace view {name} as from '{self.folder}/{name}.parquet'")
        return self.con.execute(self.sql(number)).fetchall()

    def analytics(self, case):
        queries = importlib.import_module("analytics.queries")
        for name, path in self.analytics_tables(str).items():
            self.con.execute(f"create or replace view {name} as from '{path}'")
        return self.analytics_result(case, self.table(queries.SQL[case]))

    def q1(self):
        return self.rows(f"""
            select l_returnflag, l_linestatus, sum(l_quantity) sum_qty, sum(l_extendedprice) sum_base_price,
                sum(l_extendedprice * (1 - l_discount)) sum_disc_price,
                sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) sum_charge,
                avg(l_quantity) avg_qty, avg(l_extendedprice) avg_price, avg(l_discount) avg_disc,
                count(l_quantity) count_order
            from '{self.lineitem}' where l_shipdate <= date '1998-09-02'
            group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""")

    def q6(self):
        return self.rows(f"""
            select sum(l_extendedprice * l_discount) revenue from '{self.lineitem}'
            where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
                and l_discount between 0.05 and 0.07 and l_quantity < 24""")

    def csv_max(self):
        return self.rows(f"select max(columns(*)) from read_csv('{self.csv}')")

    def parquet_stream(self):
        self.con.execute("set produce_arrow_string_view = true")
        return count_stream(self.con.execute(f"from '{self.lineitem}'").to_arrow_reader(122_880), self.check)

    def parquet_table(self):
        return self.table(f"from '{self.lineitem}'")

    def filter_clustered(self):
        return self.table(f"from '{self.lineitem}' where l_orderkey < {CLUSTERED_BELOW}")

    def filter_scattered(self):
        return self.table(f"from '{self.lineitem}' where l_partkey < {SCATTERED_BELOW}")

    def group_flags(self):
        return self.rows(f"""select l_returnflag, l_linestatus, sum(l_quantity) q, count(l_quantity) n
            from '{self.lineitem}' group by all""")

    def group_orderkey(self):
        return self.table(f"select l_orderkey, sum(l_quantity) q from '{self.lineitem}' group by l_orderkey")

    def small_query(self):
        if self.small is None:
            import pyarrow as pa

            self.con.register("arrow_small", pa.table(small_data()))
            self.con.execute("create table small as from arrow_small")
            self.small = True
        for _ in range(SMALL_LOOPS):
            cursor = self.con.execute("select k, sum(v) s from small where f < 50 group by k")
            rows = cursor.fetchall()
        return {"k": [row[0] for row in rows], "s": [row[1] for row in rows]}


class Polars(Engine):
    name = "polars"

    def start(self):
        import polars

        self.pl = polars

    def version(self):
        return self.pl.__version__

    def read(self):
        return self.pl.scan_parquet(self.lineitem)

    def run(self, query):
        return query.collect(engine="streaming")

    def tpch(self, number):
        query = importlib.import_module("polars_queries").QUERIES[number]
        return self.run(query(self.tables(self.pl.scan_parquet))).rows()

    def analytics(self, case):
        queries = importlib.import_module("analytics.queries")
        tables = SimpleNamespace(**self.analytics_tables(self.pl.scan_parquet))
        return self.analytics_result(case, self.run(queries.polars_query(case, tables)))

    def q1(self):
        col = self.pl.col
        disc_price = col("l_extendedprice") * (1 - col("l_discount"))
        return self.run(
            self.read()
            .filter(col("l_shipdate") <= Q1_DATE)
            .group_by("l_returnflag", "l_linestatus")
            .agg(
                col("l_quantity").sum().alias("sum_qty"),
                col("l_extendedprice").sum().alias("sum_base_price"),
                disc_price.sum().alias("sum_disc_price"),
                (disc_price * (1 + col("l_tax"))).sum().alias("sum_charge"),
                col("l_quantity").mean().alias("avg_qty"),
                col("l_extendedprice").mean().alias("avg_price"),
                col("l_discount").mean().alias("avg_disc"),
                col("l_quantity").count().alias("count_order"),
            )
            .sort("l_returnflag", "l_linestatus")
        ).to_dicts()

    def q6(self):
        col = self.pl.col
        return self.run(
            self.read()
            .filter(
                (col("l_shipdate") >= Q6_FROM)
                & (col("l_shipdate") < Q6_TO)
                & col("l_discount").is_between(Decimal("0.05"), Decimal("0.07"))
                & (col("l_quantity") < 24)
            )
            .select((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))
        ).to_dicts()

    def csv_max(self):
        return self.run(
            self.pl.scan_csv(self.csv, try_parse_dates=True).select(self.pl.all().max())
        ).to_dicts()

    def parquet_stream(self):
        def batches():
            for frame in self.read().collect_batches(engine="streaming"):
                # Without rechunking; string views as they are.
                yield from frame.to_arrow(compat_level=self.pl.CompatLevel.newest()).to_batches()

        return count_stream(batches(), self.check)

    def parquet_table(self):
        return self.run(self.read()).to_arrow()

    def filter_clustered(self):
        return self.run(self.read().filter(self.pl.col("l_orderkey") < CLUSTERED_BELOW)).to_arrow()

    def filter_scattered(self):
        return self.run(self.read().filter(self.pl.col("l_partkey") < SCATTERED_BELOW)).to_arrow()

    def group_flags(self):
        col = self.pl.col
        return self.run(
            self.read()
            .group_by("l_returnflag", "l_linestatus")
            .agg(col("l_quantity").sum().alias("q"), col("l_quantity").count().alias("n"))
        ).to_dicts()

    def group_orderkey(self):
        return self.run(
            self.read().group_by("l_orderkey").agg(self.pl.col("l_quantity").sum().alias("q"))
        ).to_arrow()

    def small_query(self):
        col = self.pl.col
        if self.small is None:
            self.small = self.pl.DataFrame(small_data())
        for _ in range(SMALL_LOOPS):
            # Eager calls are Polars' fastest way for a table of this size.
            frame = self.small.filter(col("f") < 50).group_by("k").agg(col("v").sum().alias("s"))
            rows = frame.to_dict(as_series=False)
        return rows


class Daft(Engine):
    name = "daft"

    def __init__(self, data, check=False):
        super().__init__(data, check)
        self.folder = f"{data}/tpch-1-plain"
        self.lineitem = f"{self.folder}/lineitem.parquet"

    def start(self):
        os.environ["DAFT_PROGRESS_BAR"] = "0"
        os.environ["DAFT_ANALYTICS_ENABLED"] = "0"
        os.environ["DO_NOT_TRACK"] = "true"
        import daft

        self.daft = daft
        daft.set_runner_native(num_threads=THREADS)

    def version(self):
        return self.daft.__version__

    def read(self):
        return self.daft.read_parquet(self.lineitem)

    def tpch(self, number):
        tables = vars(self.tables(self.daft.read_parquet))
        tables.pop("scale_factor")
        return self.daft.sql(self.sql(number), register_globals=False, **tables).to_pylist()

    def analytics(self, case):
        queries = importlib.import_module("analytics.queries")
        tables = self.analytics_tables(self.daft.read_parquet)
        made = self.daft.sql(queries.SQL[case], register_globals=False, **tables)
        return self.analytics_result(case, made.to_arrow())

    def q1(self):
        col = self.daft.col
        disc_price = col("l_extendedprice") * (1 - col("l_discount"))
        return (
            self.read()
            .where(col("l_shipdate") <= Q1_DATE)
            .groupby("l_returnflag", "l_linestatus")
            .agg(
                col("l_quantity").sum().alias("sum_qty"),
                col("l_extendedprice").sum().alias("sum_base_price"),
                disc_price.sum().alias("sum_disc_price"),
                (disc_price * (1 + col("l_tax"))).sum().alias("sum_charge"),
                col("l_quantity").mean().alias("avg_qty"),
                col("l_extendedprice").mean().alias("avg_price"),
                col("l_discount").mean().alias("avg_disc"),
                col("l_quantity").count().alias("count_order"),
            )
            .sort(["l_returnflag", "l_linestatus"])
            .to_pylist()
        )

    def q6(self):
        col = self.daft.col
        return (
            self.read()
            .where(
                (col("l_shipdate") >= Q6_FROM)
                & (col("l_shipdate") < Q6_TO)
                & col("l_discount").between(Decimal("0.05"), Decimal("0.07"))
                & (col("l_quantity") < 24)
            )
            .agg((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))
            .to_pylist()
        )

    def csv_max(self):
        frame = self.daft.read_csv(self.csv)
        return frame.agg(*[self.daft.col(name).max() for name in frame.column_names]).to_pylist()

    def parquet_stream(self):
        return count_stream(self.read().to_arrow_iter(), self.check)

    def parquet_table(self):
        return self.read().to_arrow()

    def filter_clustered(self):
        return self.read().where(self.daft.col("l_orderkey") < CLUSTERED_BELOW).to_arrow()

    def filter_scattered(self):
        return self.read().where(self.daft.col("l_partkey") < SCATTERED_BELOW).to_arrow()

    def group_flags(self):
        col = self.daft.col
        return (
            self.read()
            .groupby("l_returnflag", "l_linestatus")
            .agg(col("l_quantity").sum().alias("q"), col("l_quantity").count().alias("n"))
            .to_pylist()
        )

    def group_orderkey(self):
        return self.read().groupby("l_orderkey").agg(self.daft.col("l_quantity").sum().alias("q")).to_arrow()

    def small_query(self):
        col = self.daft.col
        if self.small is None:
            self.small = self.daft.from_pydict(small_data()).collect()
        for _ in range(SMALL_LOOPS):
            rows = self.small.where(col("f") < 50).groupby("k").agg(col("v").sum().alias("s")).to_pydict()
        return rows


class PyArrow(Engine):
    name = "pyarrow"

    def start(self):
        import pyarrow

        self.pa = pyarrow
        pyarrow.set_cpu_count(THREADS)
        pyarrow.set_io_thread_count(THREADS)

    def version(self):
        return self.pa.__version__

    def csv_max(self):
        import pyarrow.compute as pc
        import pyarrow.csv

        table = pyarrow.csv.read_csv(self.csv)
        return [{name: pc.max(table.column(name)).as_py() for name in table.column_names}]

    def parquet_stream(self):
        import pyarrow.dataset

        return count_stream(pyarrow.dataset.dataset(self.lineitem).to_batches(), self.check)

    def parquet_table(self):
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.lineitem)


ENGINES = {engine.name: engine for engine in (Gar, DuckDB, Polars, Daft, PyArrow)}
