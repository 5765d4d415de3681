# SPDX-License-Identifier: Apache-2.0
"""The 22 queries of TPC-H as lazy Polars frames, with the validation parameters of the specification.

Polars keeps the order in which joins are written, so it is chosen here by hand: selections first, the small
side of a join to the right, and the joins that drop most rows before the others. Columns are in the order of
sql.py.
"""

from datetime import date

import polars as pl
from polars import col

FLOAT = pl.Float64


def revenue():
    return (col("l_extendedprice") * (1 - col("l_discount"))).sum()


def within(name, first, end):
    return (col(name) >= first) & (col(name) < end)


def q1(t):
    price = col("l_extendedprice") * (1 - col("l_discount"))
    return (
        t.lineitem.filter(col("l_shipdate") <= date(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            col("l_quantity").sum().alias("sum_qty"),
            col("l_extendedprice").sum().alias("sum_base_price"),
            price.sum().alias("sum_disc_price"),
            (price * (1 + col("l_tax"))).sum().alias("sum_charge"),
            col("l_quantity").mean().alias("avg_qty"),
            col("l_extendedprice").mean().alias("avg_price"),
            col("l_discount").mean().alias("avg_disc"),
            pl.len().alias("count_order"),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q2(t):
    europe = (
        t.supplier.join(t.nation, left_on="s_nationkey", right_on="n_nationkey")
        .join(t.region.filter(col("r_name") == "EUROPE"), left_on="n_regionkey", right_on="r_regionkey")
        .select("s_suppkey", "s_acctbal", "s_name", "n_name", "s_address", "s_phone", "s_comment")
    )
    parts = t.part.filter((col("p_size") == 15) & col("p_type").str.ends_with("BRASS"))
    offers = t.partsupp.join(
        parts.select("p_partkey", "p_mfgr"), left_on="ps_partkey", right_on="p_partkey"
    ).join(europe, left_on="ps_suppkey", right_on="s_suppkey")
    least = offers.group_by("ps_partkey").agg(col("ps_supplycost").min())
    return (
        offers.join(least, on=["ps_partkey", "ps_supplycost"])
        .select(
            "s_acctbal",
            "s_name",
            "n_name",
            col("ps_partkey").alias("p_partkey"),
            "p_mfgr",
            "s_address",
            "s_phone",
            "s_comment",
        )
        .sort("s_acctbal", "n_name", "s_name", "p_partkey", descending=[True, False, False, False])
        .head(100)
    )


def q3(t):
    buyers = t.customer.filter(col("c_mktsegment") == "BUILDING")
    orders = t.orders.filter(col("o_orderdate") < date(1995, 3, 15)).join(
        buyers, left_on="o_custkey", right_on="c_custkey", how="semi"
    )
    return (
        t.lineitem.filter(col("l_shipdate") > date(1995, 3, 15))
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue().alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .head(10)
    )


def q4(t):
    late = t.lineitem.filter(col("l_commitdate") < col("l_receiptdate"))
    return (
        t.orders.filter(within("o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(pl.len().alias("order_count"))
        .sort("o_orderpriority")
    )


def q5(t):
    asia = t.nation.join(
        t.region.filter(col("r_name") == "ASIA"), left_on="n_regionkey", right_on="r_regionkey", how="semi"
    )
    suppliers = t.supplier.join(asia, left_on="s_nationkey", right_on="n_nationkey")
    customers = t.customer.join(asia, left_on="c_nationkey", right_on="n_nationkey", how="semi")
    orders = t.orders.filter(within("o_orderdate", date(1994, 1, 1), date(1995, 1, 1))).join(
        customers, left_on="o_custkey", right_on="c_custkey"
    )
    return (
        t.lineitem.join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(suppliers, left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
        .group_by("n_name")
        .agg(revenue().alias("revenue"))
        .sort("revenue", descending=True)
    )


def q6(t):
    return t.lineitem.filter(
        within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1))
        & (col("l_discount") >= pl.lit("0.05").cast(pl.Decimal(15, 2)))
        & (col("l_discount") <= pl.lit("0.07").cast(pl.Decimal(15, 2)))
        & (col("l_quantity") < 24)
    ).select((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))


def q7(t):
    two = t.nation.filter(col("n_name").is_in(["FRANCE", "GERMANY"]))
    suppliers = t.supplier.join(two, left_on="s_nationkey", right_on="n_nationkey").select(
        "s_suppkey", col("n_name").alias("supp_nation")
    )
    customers = t.customer.join(two, left_on="c_nationkey", right_on="n_nationkey").select(
        "c_custkey", col("n_name").alias("cust_nation")
    )
    orders = t.orders.join(customers, left_on="o_custkey", right_on="c_custkey")
    return (
        t.lineitem.filter(col("l_shipdate").is_between(date(1995, 1, 1), date(1996, 12, 31)))
        .join(suppliers, left_on="l_suppkey", right_on="s_suppkey")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .filter(col("supp_nation") != col("cust_nation"))
        .group_by("supp_nation", "cust_nation", col("l_shipdate").dt.year().alias("l_year"))
        .agg(revenue().alias("revenue"))
        .sort("supp_nation", "cust_nation", "l_year")
    )


def q8(t):
    america = t.nation.join(
        t.region.filter(col("r_name") == "AMERICA"), left_on="n_regionkey", right_on="r_regionkey", how="semi"
    )
    customers = t.customer.join(america, left_on="c_nationkey", right_on="n_nationkey", how="semi")
    parts = t.part.filter(col("p_type") == "ECONOMY ANODIZED STEEL")
    orders = t.orders.filter(col("o_orderdate").is_between(date(1995, 1, 1), date(1996, 12, 31)))
    suppliers = t.supplier.join(t.nation, left_on="s_nationkey", right_on="n_nationkey")
    volume = col("l_extendedprice") * (1 - col("l_discount"))
    return (
        t.lineitem.join(parts, left_on="l_partkey", right_on="p_partkey", how="semi")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(customers, left_on="o_custkey", right_on="c_custkey", how="semi")
        .join(suppliers, left_on="l_suppkey", right_on="s_suppkey")
        .group_by(col("o_orderdate").dt.year().alias("o_year"))
        .agg(
            (volume.filter(col("n_name") == "BRAZIL").sum().cast(FLOAT) / volume.sum().cast(FLOAT)).alias(
                "mkt_share"
            )
        )
        .sort("o_year")
    )


def q9(t):
    green = t.part.filter(col("p_name").str.contains("green", literal=True))
    offers = t.partsupp.join(green, left_on="ps_partkey", right_on="p_partkey", how="semi")
    suppliers = t.supplier.join(t.nation, left_on="s_nationkey", right_on="n_nationkey")
    sold = t.lineitem.join(
        offers, left_on=["l_partkey", "l_suppkey"], right_on=["ps_partkey", "ps_suppkey"]
    ).join(suppliers, left_on="l_suppkey", right_on="s_suppkey")
    profit = col("l_extendedprice") * (1 - col("l_discount")) - col("ps_supplycost") * col("l_quantity")
    return (
        t.orders.join(sold, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("n_name", col("o_orderdate").dt.year().alias("o_year"))
        .agg(profit.sum().alias("sum_profit"))
        .sort("n_name", "o_year", descending=[False, True])
    )


def q10(t):
    orders = t.orders.filter(within("o_orderdate", date(1993, 10, 1), date(1994, 1, 1)))
    # Everything else of a customer follows from the key.
    spent = (
        t.lineitem.filter(col("l_returnflag") == "R")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .group_by("o_custkey")
        .agg(revenue().alias("revenue"))
        .sort("revenue", descending=True)
        .head(20)
    )
    return (
        t.customer.join(spent, left_on="c_custkey", right_on="o_custkey")
        .join(t.nation, left_on="c_nationkey", right_on="n_nationkey")
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .sort("revenue", descending=True)
    )


def q11(t):
    suppliers = t.supplier.join(
        t.nation.filter(col("n_name") == "GERMANY"), left_on="s_nationkey", right_on="n_nationkey", how="semi"
    )
    german = t.partsupp.join(suppliers, left_on="ps_suppkey", right_on="s_suppkey", how="semi")
    value = (col("ps_supplycost") * col("ps_availqty")).sum()
    total = german.select((value.cast(FLOAT) * (0.0001 / t.scale_factor)).alias("least"))
    return (
        german.group_by("ps_partkey")
        .agg(value.alias("value"))
        .join(total, how="cross")
        .filter(col("value").cast(FLOAT) > col("least"))
        .select("ps_partkey", "value")
        .sort("value", "ps_partkey", descending=[True, False])
    )


def q12(t):
    lines = t.lineitem.filter(
        col("l_shipmode").is_in(["MAIL", "SHIP"])
        & (col("l_commitdate") < col("l_receiptdate"))
        & (col("l_shipdate") < col("l_commitdate"))
        & within("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1))
    )
    is_high = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return (
        t.orders.join(lines, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("l_shipmode")
        .agg(is_high.sum().alias("high_line_count"), (~is_high).sum().alias("low_line_count"))
        .sort("l_shipmode")
    )


def q13(t):
    orders = t.orders.filter(~col("o_comment").str.contains("special.*requests"))
    return (
        t.customer.join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(col("o_orderkey").count().alias("c_count"))
        .group_by("c_count")
        .agg(pl.len().alias("custdist"))
        .sort("custdist", "c_count", descending=True)
    )


def q14(t):
    price = col("l_extendedprice") * (1 - col("l_discount"))
    promo = price.filter(col("p_type").str.starts_with("PROMO")).sum().cast(FLOAT)
    return (
        t.lineitem.filter(within("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
        .join(t.part, left_on="l_partkey", right_on="p_partkey")
        .select((100.0 * promo / price.sum().cast(FLOAT)).alias("promo_revenue"))
    )


def q15(t):
    made = (
        t.lineitem.filter(within("l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
        .group_by("l_suppkey")
        .agg(revenue().alias("total_revenue"))
    )
    best = made.filter(col("total_revenue") == col("total_revenue").max())
    return (
        t.supplier.join(best, left_on="s_suppkey", right_on="l_suppkey")
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )


def q16(t):
    parts = t.part.filter(
        (col("p_brand") != "Brand#45")
        & ~col("p_type").str.starts_with("MEDIUM POLISHED")
        & col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9])
    )
    complained = t.supplier.filter(col("s_comment").str.contains("Customer.*Complaints"))
    return (
        t.partsupp.join(parts, left_on="ps_partkey", right_on="p_partkey")
        .join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .group_by("p_brand", "p_type", "p_size")
        .agg(col("ps_suppkey").n_unique().alias("supplier_cnt"))
        .sort("supplier_cnt", "p_brand", "p_type", "p_size", descending=[True, False, False, False])
    )


def q17(t):
    parts = t.part.filter((col("p_brand") == "Brand#23") & (col("p_container") == "MED BOX"))
    lines = t.lineitem.join(parts, left_on="l_partkey", right_on="p_partkey", how="semi")
    small = lines.group_by("l_partkey").agg((col("l_quantity").mean().cast(FLOAT) * 0.2).alias("least"))
    return (
        lines.join(small, on="l_partkey")
        .filter(col("l_quantity").cast(FLOAT) < col("least"))
        .select((col("l_extendedprice").sum().cast(FLOAT) / 7.0).alias("avg_yearly"))
    )


def q18(t):
    large = (
        t.lineitem.group_by("l_orderkey").agg(col("l_quantity").sum().alias("sum")).filter(col("sum") > 300)
    )
    # The sum of an order's lines is at hand, and an order has one customer.
    return (
        t.orders.join(large, left_on="o_orderkey", right_on="l_orderkey")
        .join(t.customer, left_on="o_custkey", right_on="c_custkey")
        .select(
            "c_name", col("o_custkey").alias("c_custkey"), "o_orderkey", "o_orderdate", "o_totalprice", "sum"
        )
        .sort("o_totalprice", "o_orderdate", "o_orderkey", descending=[True, False, False])
        .head(100)
    )


def q19(t):
    def one(brand, containers, least, most, size):
        return (
            (col("p_brand") == brand)
            & col("p_container").is_in(containers)
            & (col("l_quantity") >= least)
            & (col("l_quantity") <= most)
            & (col("p_size") <= size)
        )

    lines = t.lineitem.filter(
        col("l_shipmode").is_in(["AIR", "AIR REG"])
        & (col("l_shipinstruct") == "DELIVER IN PERSON")
        & (col("l_quantity") >= 1)
        & (col("l_quantity") <= 30)
    )
    parts = t.part.filter(
        col("p_brand").is_in(["Brand#12", "Brand#23", "Brand#34"]) & col("p_size").is_between(1, 15)
    )
    return (
        lines.join(parts, left_on="l_partkey", right_on="p_partkey")
        .filter(
            one("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 11, 5)
            | one("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 20, 10)
            | one("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 30, 15)
        )
        .select(revenue().alias("revenue"))
    )


def q20(t):
    forest = t.part.filter(col("p_name").str.starts_with("forest"))
    offers = t.partsupp.join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
    shipped = (
        t.lineitem.filter(within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .join(forest, left_on="l_partkey", right_on="p_partkey", how="semi")
        .group_by("l_partkey", "l_suppkey")
        .agg((col("l_quantity").sum().cast(FLOAT) * 0.5).alias("half"))
    )
    able = offers.join(
        shipped, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"]
    ).filter(col("ps_availqty").cast(FLOAT) > col("half"))
    canada = t.nation.filter(col("n_name") == "CANADA")
    return (
        t.supplier.join(canada, left_on="s_nationkey", right_on="n_nationkey", how="semi")
        .join(able, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )


def q21(t):
    # "Another supplier" and "another late supplier" of an order, as counts of distinct suppliers: an order
    # with several suppliers, of which one is late.
    several = (
        t.lineitem.group_by("l_orderkey")
        .agg(col("l_suppkey").min().alias("first"), col("l_suppkey").max().alias("last"))
        .filter(col("first") != col("last"))
    )
    late = t.lineitem.filter(col("l_receiptdate") > col("l_commitdate"))
    alone = (
        late.group_by("l_orderkey")
        .agg(
            col("l_suppkey").min().alias("first"),
            col("l_suppkey").max().alias("last"),
            pl.len().alias("lines"),
        )
        .filter(col("first") == col("last"))
        .select("l_orderkey", col("first").alias("l_suppkey"), "lines")
    )
    suppliers = t.supplier.join(
        t.nation.filter(col("n_name") == "SAUDI ARABIA"),
        left_on="s_nationkey",
        right_on="n_nationkey",
        how="semi",
    )
    waiting = alone.join(suppliers, left_on="l_suppkey", right_on="s_suppkey")
    failed = t.orders.filter(col("o_orderstatus") == "F").join(
        waiting, left_on="o_orderkey", right_on="l_orderkey"
    )
    return (
        failed.join(several, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("s_name")
        .agg(col("lines").sum().alias("numwait"))
        .sort("numwait", "s_name", descending=[True, False])
        .head(100)
    )


def q22(t):
    known = t.customer.with_columns(col("c_phone").str.slice(0, 2).alias("cntrycode")).filter(
        col("cntrycode").is_in(["13", "31", "23", "29", "30", "18", "17"])
    )
    average = known.filter(col("c_acctbal") > 0).select(col("c_acctbal").mean().cast(FLOAT).alias("average"))
    return (
        known.join(average, how="cross")
        .filter(col("c_acctbal").cast(FLOAT) > col("average"))
        .join(t.orders, left_on="c_custkey", right_on="o_custkey", how="anti")
        .group_by("cntrycode")
        .agg(pl.len().alias("numcust"), col("c_acctbal").sum().alias("totacctbal"))
        .sort("cntrycode")
    )


QUERIES = {number: globals()[f"q{number}"] for number in range(1, 23)}
