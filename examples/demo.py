# SPDX-License-Identifier: Apache-2.0
"""Real data through the engine: `make demo`.

Usage: demo.py FOLDER      FOLDER holds TPC-H tables as Parquet (tools/make_data.py demo)
"""

import datetime
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import gar
from gar import col


def timed(title, query):
    """Run a query, print its rows and how long it took."""
    started = time.perf_counter()
    result = query.collect()
    print(f"\n== {title}  ({(time.perf_counter() - started) * 1000:.1f} ms)")
    result.show()
    return result


def pricing_summary(lineitem):
    """TPC-H Q1: totals per return flag and line status."""
    disc_price = col("l_extendedprice") * (1 - col("l_discount"))
    return (
        lineitem.where(col("l_shipdate") <= datetime.date(1998, 9, 2))
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


def forecast_revenue(lineitem):
    """TPC-H Q6: revenue of small discounted orders in one year."""
    return lineitem.where(
        (col("l_shipdate") >= datetime.date(1994, 1, 1))
        & (col("l_shipdate") < datetime.date(1995, 1, 1))
        & col("l_discount").between(Decimal("0.05"), Decimal("0.07"))
        & (col("l_quantity") < 24)
    ).agg((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))


def main(folder):
    lineitem = gar.read_parquet(str(Path(folder) / "lineitem.parquet"))
    print(f"lineitem: {lineitem.count_rows():,} rows, {len(lineitem.column_names)} columns")
    timed("TPC-H Q1 from Parquet", pricing_summary(lineitem))
    timed("TPC-H Q6 from Parquet", forecast_revenue(lineitem))

    people = gar.read_csv(str(Path(__file__).parent / "data" / "people.csv"))
    timed("people.csv: quotes, blanks and nulls", people)
    tall = people.where("height_cm > 165 and city is not null").select(
        col("name"), col("born").year().alias("year"), (col("height_cm") / 100).alias("height_m")
    )
    timed("people above 165 cm", tall)

    with tempfile.TemporaryDirectory() as scratch:
        written = lineitem.where(col("l_shipmode") == "AIR").write_parquet(f"{scratch}/air")
        paths = written.to_pydict()["path"]
        again = gar.read_parquet(f"{scratch}/air")
        expected = lineitem.where(col("l_shipmode") == "AIR").count_rows()
        found = again.count_rows()
        print(f"\n== wrote {len(paths)} Parquet file(s), read back {found:,} rows")
        if found != expected:
            raise SystemExit(f"expected {expected} rows")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
