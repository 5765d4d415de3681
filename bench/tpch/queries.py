# SPDX-License-Identifier: Apache-2.0
"""The 22 queries of TPC-H as Gar programs, with the validation parameters of the specification.

Each function takes the eight tables by name and gives a frame. Inner joins are written as the queries state
them: the tables in the order of FROM, one after the other, then what WHERE says; finding keys and an order is the
optimizer's work. A table that is used twice is renamed by a prefix. EXISTS and IN are semi joins, their
negations anti joins, scalar subqueries are joined as tables of one row.
"""

from datetime import date
from functools import reduce

import gar
from gar import col, lit


def day(year, month, day_of_month):
    return lit(date(year, month, day_of_month))


def product(*tables):
    """FROM a, b, c."""
    return reduce(lambda left, right: left.join(right, how="cross"), tables)


def renamed(table, prefix):
    return table.with_columns_renamed({name: prefix + name for name in table.column_names})


def revenue():
    return (col("l_extendedprice") * (1 - col("l_discount"))).sum()


def q1(t):
    price = col("l_extendedprice") * (1 - col("l_discount"))
    return (
        t.lineitem.where(col("l_shipdate") <= day(1998, 9, 2))
        .groupby("l_returnflag", "l_linestatus")
        .agg(
            col("l_quantity").sum().alias("sum_qty"),
            col("l_extendedprice").sum().alias("sum_base_price"),
            price.sum().alias("sum_disc_price"),
            (price * (1 + col("l_tax"))).sum().alias("sum_charge"),
            col("l_quantity").mean().alias("avg_qty"),
            col("l_extendedprice").mean().alias("avg_price"),
            col("l_discount").mean().alias("avg_disc"),
            lit(1).count().alias("count_order"),
        )
        .sort(["l_returnflag", "l_linestatus"])
    )


def q2(t):
    europe = product(t.partsupp, t.supplier, t.nation, t.region).where(
        (col("s_suppkey") == col("ps_suppkey"))
        & (col("s_nationkey") == col("n_nationkey"))
        & (col("n_regionkey") == col("r_regionkey"))
        & (col("r_name") == "EUROPE")
    )
    least = europe.groupby(col("ps_partkey").alias("least_partkey")).agg(
        col("ps_supplycost").min().alias("least_cost")
    )
    return (
        product(t.part, t.supplier, t.partsupp, t.nation, t.region, least)
        .where(
            (col("p_partkey") == col("ps_partkey"))
            & (col("s_suppkey") == col("ps_suppkey"))
            & (col("p_size") == 15)
            & col("p_type").endswith("BRASS")
            & (col("s_nationkey") == col("n_nationkey"))
            & (col("n_regionkey") == col("r_regionkey"))
            & (col("r_name") == "EUROPE")
            & (col("p_partkey") == col("least_partkey"))
            & (col("ps_supplycost") == col("least_cost"))
        )
        .select(
            "s_acctbal",
            "s_name",
            "n_name",
            "p_partkey",
            "p_mfgr",
            "s_address",
            "s_phone",
            "s_comment",
        )
        .sort(["s_acctbal", "n_name", "s_name", "p_partkey"], desc=[True, False, False, False])
        .limit(100)
    )


def q3(t):
    return (
        product(t.customer, t.orders, t.lineitem)
        .where(
            (col("c_mktsegment") == "BUILDING")
            & (col("c_custkey") == col("o_custkey"))
            & (col("l_orderkey") == col("o_orderkey"))
            & (col("o_orderdate") < day(1995, 3, 15))
            & (col("l_shipdate") > day(1995, 3, 15))
        )
        .groupby("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue().alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort(["revenue", "o_orderdate"], desc=[True, False])
        .limit(10)
    )


def q4(t):
    late = t.lineitem.where(col("l_commitdate") < col("l_receiptdate"))
    return (
        t.orders.where((col("o_orderdate") >= day(1993, 7, 1)) & (col("o_orderdate") < day(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .groupby("o_orderpriority")
        .agg(lit(1).count().alias("order_count"))
        .sort("o_orderpriority")
    )


def q5(t):
    return (
        product(t.customer, t.orders, t.lineitem, t.supplier, t.nation, t.region)
        .where(
            (col("c_custkey") == col("o_custkey"))
            & (col("l_orderkey") == col("o_orderkey"))
            & (col("l_suppkey") == col("s_suppkey"))
            & (col("c_nationkey") == col("s_nationkey"))
            & (col("s_nationkey") == col("n_nationkey"))
            & (col("n_regionkey") == col("r_regionkey"))
            & (col("r_name") == "ASIA")
            & (col("o_orderdate") >= day(1994, 1, 1))
            & (col("o_orderdate") < day(1995, 1, 1))
        )
        .groupby("n_name")
        .agg(revenue().alias("revenue"))
        .sort("revenue", desc=True)
    )


def q6(t):
    return t.lineitem.where(
        (col("l_shipdate") >= day(1994, 1, 1))
        & (col("l_shipdate") < day(1995, 1, 1))
        & col("l_discount").between(
            lit("0.05").cast(gar.DataType.decimal128(15, 2)), lit("0.07").cast(gar.DataType.decimal128(15, 2))
        )
        & (col("l_quantity") < 24)
    ).agg((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))


def q7(t):
    n1 = renamed(t.nation, "n1_")
    n2 = renamed(t.nation, "n2_")
    return (
        product(t.supplier, t.lineitem, t.orders, t.customer, n1, n2)
        .where(
            (col("s_suppkey") == col("l_suppkey"))
            & (col("o_orderkey") == col("l_orderkey"))
            & (col("c_custkey") == col("o_custkey"))
            & (col("s_nationkey") == col("n1_n_nationkey"))
            & (col("c_nationkey") == col("n2_n_nationkey"))
            & (
                ((col("n1_n_name") == "FRANCE") & (col("n2_n_name") == "GERMANY"))
                | ((col("n1_n_name") == "GERMANY") & (col("n2_n_name") == "FRANCE"))
            )
            & col("l_shipdate").between(day(1995, 1, 1), day(1996, 12, 31))
        )
        .select(
            col("n1_n_name").alias("supp_nation"),
            col("n2_n_name").alias("cust_nation"),
            col("l_shipdate").year().alias("l_year"),
            (col("l_extendedprice") * (1 - col("l_discount"))).alias("volume"),
        )
        .groupby("supp_nation", "cust_nation", "l_year")
        .agg(col("volume").sum().alias("revenue"))
        .sort(["supp_nation", "cust_nation", "l_year"])
    )


def q8(t):
    n1 = renamed(t.nation, "n1_")
    n2 = renamed(t.nation, "n2_")
    return (
        product(t.part, t.supplier, t.lineitem, t.orders, t.customer, n1, n2, t.region)
        .where(
            (col("p_partkey") == col("l_partkey"))
            & (col("s_suppkey") == col("l_suppkey"))
            & (col("l_orderkey") == col("o_orderkey"))
            & (col("o_custkey") == col("c_custkey"))
            & (col("c_nationkey") == col("n1_n_nationkey"))
            & (col("n1_n_regionkey") == col("r_regionkey"))
            & (col("r_name") == "AMERICA")
            & (col("s_nationkey") == col("n2_n_nationkey"))
            & col("o_orderdate").between(day(1995, 1, 1), day(1996, 12, 31))
            & (col("p_type") == "ECONOMY ANODIZED STEEL")
        )
        .select(
            col("o_orderdate").year().alias("o_year"),
            (col("l_extendedprice") * (1 - col("l_discount"))).alias("volume"),
            col("n2_n_name").alias("nation"),
        )
        .groupby("o_year")
        .agg(
            gar.when(col("nation") == "BRAZIL", col("volume")).otherwise(0).sum().alias("brazil"),
            col("volume").sum().alias("all"),
        )
        .select(
            "o_year",
            (col("brazil").cast(gar.DataType.float64()) / col("all").cast(gar.DataType.float64())).alias(
                "mkt_share"
            ),
        )
        .sort("o_year")
    )


def q9(t):
    return (
        product(t.part, t.supplier, t.lineitem, t.partsupp, t.orders, t.nation)
        .where(
            (col("s_suppkey") == col("l_suppkey"))
            & (col("ps_suppkey") == col("l_suppkey"))
            & (col("ps_partkey") == col("l_partkey"))
            & (col("p_partkey") == col("l_partkey"))
            & (col("o_orderkey") == col("l_orderkey"))
            & (col("s_nationkey") == col("n_nationkey"))
            & col("p_name").contains("green")
        )
        .select(
            col("n_name").alias("nation"),
            col("o_orderdate").year().alias("o_year"),
            (
                col("l_extendedprice") * (1 - col("l_discount")) - col("ps_supplycost") * col("l_quantity")
            ).alias("amount"),
        )
        .groupby("nation", "o_year")
        .agg(col("amount").sum().alias("sum_profit"))
        .sort(["nation", "o_year"], desc=[False, True])
    )


def q10(t):
    return (
        product(t.customer, t.orders, t.lineitem, t.nation)
        .where(
            (col("c_custkey") == col("o_custkey"))
            & (col("l_orderkey") == col("o_orderkey"))
            & (col("o_orderdate") >= day(1993, 10, 1))
            & (col("o_orderdate") < day(1994, 1, 1))
            & (col("l_returnflag") == "R")
            & (col("c_nationkey") == col("n_nationkey"))
        )
        .groupby("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
        .agg(revenue().alias("revenue"))
        .select(
            "c_custkey",
            "c_name",
            "revenue",
            "c_acctbal",
            "n_name",
            "c_address",
            "c_phone",
            "c_comment",
        )
        .sort("revenue", desc=True)
        .limit(20)
    )


def q11(t):
    german = product(t.partsupp, t.supplier, t.nation).where(
        (col("ps_suppkey") == col("s_suppkey"))
        & (col("s_nationkey") == col("n_nationkey"))
        & (col("n_name") == "GERMANY")
    )
    value = (col("ps_supplycost") * col("ps_availqty")).sum()
    total = german.agg(value.alias("total"))
    scale = t.scale_factor
    return (
        german.groupby("ps_partkey")
        .agg(value.alias("value"))
        .join(total, how="cross")
        .where(
            col("value").cast(gar.DataType.float64())
            > col("total").cast(gar.DataType.float64()) * (0.0001 / scale)
        )
        .select("ps_partkey", "value")
        .sort(["value", "ps_partkey"], desc=[True, False])
    )


def q12(t):
    high = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return (
        product(t.orders, t.lineitem)
        .where(
            (col("o_orderkey") == col("l_orderkey"))
            & col("l_shipmode").is_in(["MAIL", "SHIP"])
            & (col("l_commitdate") < col("l_receiptdate"))
            & (col("l_shipdate") < col("l_commitdate"))
            & (col("l_receiptdate") >= day(1994, 1, 1))
            & (col("l_receiptdate") < day(1995, 1, 1))
        )
        .groupby("l_shipmode")
        .agg(
            gar.when(high, 1).otherwise(0).sum().alias("high_line_count"),
            gar.when(high, 0).otherwise(1).sum().alias("low_line_count"),
        )
        .sort("l_shipmode")
    )


def q13(t):
    orders = t.orders.where(~col("o_comment").like("%special%requests%"))
    return (
        t.customer.join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .groupby("c_custkey")
        .agg(col("o_orderkey").count().alias("c_count"))
        .groupby("c_count")
        .agg(lit(1).count().alias("custdist"))
        .sort(["custdist", "c_count"], desc=[True, True])
    )


def q14(t):
    price = col("l_extendedprice") * (1 - col("l_discount"))
    promo = gar.when(col("p_type").startswith("PROMO"), price).otherwise(0).sum()
    double = gar.DataType.float64()
    return (
        product(t.lineitem, t.part)
        .where(
            (col("l_partkey") == col("p_partkey"))
            & (col("l_shipdate") >= day(1995, 9, 1))
            & (col("l_shipdate") < day(1995, 10, 1))
        )
        .agg(promo.alias("promo"), price.sum().alias("all"))
        .select((100.0 * col("promo").cast(double) / col("all").cast(double)).alias("promo_revenue"))
    )


def q15(t):
    made = (
        t.lineitem.where((col("l_shipdate") >= day(1996, 1, 1)) & (col("l_shipdate") < day(1996, 4, 1)))
        .groupby(col("l_suppkey").alias("supplier_no"))
        .agg(revenue().alias("total_revenue"))
    )
    most = made.agg(col("total_revenue").max().alias("most"))
    return (
        product(t.supplier, made, most)
        .where((col("s_suppkey") == col("supplier_no")) & (col("total_revenue") == col("most")))
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )


def q16(t):
    complained = t.supplier.where(col("s_comment").like("%Customer%Complaints%"))
    return (
        product(t.partsupp, t.part)
        .where(
            (col("p_partkey") == col("ps_partkey"))
            & (col("p_brand") != "Brand#45")
            & ~col("p_type").startswith("MEDIUM POLISHED")
            & col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9])
        )
        .join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .groupby("p_brand", "p_type", "p_size")
        .agg(col("ps_suppkey").count_distinct().alias("supplier_cnt"))
        .sort(["supplier_cnt", "p_brand", "p_type", "p_size"], desc=[True, False, False, False])
    )


def q17(t):
    average = t.lineitem.groupby(col("l_partkey").alias("of_partkey")).agg(
        (col("l_quantity").mean().cast(gar.DataType.float64()) * 0.2).alias("fifth")
    )
    return (
        product(t.lineitem, t.part)
        .where(
            (col("p_partkey") == col("l_partkey"))
            & (col("p_brand") == "Brand#23")
            & (col("p_container") == "MED BOX")
        )
        .join(average, left_on="l_partkey", right_on="of_partkey")
        .where(col("l_quantity").cast(gar.DataType.float64()) < col("fifth"))
        .agg(col("l_extendedprice").sum().alias("sum"))
        .select((col("sum").cast(gar.DataType.float64()) / 7.0).alias("avg_yearly"))
    )


def q18(t):
    large = t.lineitem.groupby("l_orderkey").agg(col("l_quantity").sum().alias("sum")).where(col("sum") > 300)
    return (
        product(t.customer, t.orders, t.lineitem)
        .where((col("c_custkey") == col("o_custkey")) & (col("o_orderkey") == col("l_orderkey")))
        .join(large, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .groupby("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
        .agg(col("l_quantity").sum().alias("sum"))
        .sort(["o_totalprice", "o_orderdate", "o_orderkey"], desc=[True, False, False])
        .limit(100)
    )


def q19(t):
    def one(brand, containers, least, most, size):
        return (
            (col("p_brand") == brand)
            & col("p_container").is_in(containers)
            & (col("l_quantity") >= least)
            & (col("l_quantity") <= most)
            & col("p_size").between(1, size)
        )

    return (
        product(t.lineitem, t.part)
        .where(
            (col("p_partkey") == col("l_partkey"))
            & col("l_shipmode").is_in(["AIR", "AIR REG"])
            & (col("l_shipinstruct") == "DELIVER IN PERSON")
            & (
                one("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 11, 5)
                | one("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 20, 10)
                | one("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 30, 15)
            )
        )
        .agg(revenue().alias("revenue"))
    )


def q20(t):
    forest = t.part.where(col("p_name").startswith("forest"))
    shipped = (
        t.lineitem.where((col("l_shipdate") >= day(1994, 1, 1)) & (col("l_shipdate") < day(1995, 1, 1)))
        .groupby("l_partkey", "l_suppkey")
        .agg((col("l_quantity").sum().cast(gar.DataType.float64()) * 0.5).alias("half"))
    )
    offers = (
        t.partsupp.join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(shipped, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .where(col("ps_availqty").cast(gar.DataType.float64()) > col("half"))
    )
    return (
        product(t.supplier, t.nation)
        .where((col("s_nationkey") == col("n_nationkey")) & (col("n_name") == "CANADA"))
        .join(offers, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )


def q21(t):
    others = renamed(t.lineitem.select("l_orderkey", "l_suppkey"), "o_")
    late_others = renamed(
        t.lineitem.where(col("l_receiptdate") > col("l_commitdate")).select("l_orderkey", "l_suppkey"),
        "late_",
    )
    return (
        product(t.supplier, t.lineitem, t.orders, t.nation)
        .where(
            (col("s_suppkey") == col("l_suppkey"))
            & (col("o_orderkey") == col("l_orderkey"))
            & (col("o_orderstatus") == "F")
            & (col("l_receiptdate") > col("l_commitdate"))
            & (col("s_nationkey") == col("n_nationkey"))
            & (col("n_name") == "SAUDI ARABIA")
        )
        .join(
            others,
            left_on="l_orderkey",
            right_on="o_l_orderkey",
            how="semi",
            condition=col("l_suppkey") != col("o_l_suppkey"),
        )
        .join(
            late_others,
            left_on="l_orderkey",
            right_on="late_l_orderkey",
            how="anti",
            condition=col("l_suppkey") != col("late_l_suppkey"),
        )
        .groupby("s_name")
        .agg(lit(1).count().alias("numwait"))
        .sort(["numwait", "s_name"], desc=[True, False])
        .limit(100)
    )


def q22(t):
    known = t.customer.with_column("cntrycode", col("c_phone").substr(0, 2)).where(
        col("cntrycode").is_in(["13", "31", "23", "29", "30", "18", "17"])
    )
    average = known.where(col("c_acctbal") > 0).agg(col("c_acctbal").mean().alias("average"))
    return (
        known.join(average, how="cross")
        .where(col("c_acctbal") > col("average"))
        .join(t.orders, left_on="c_custkey", right_on="o_custkey", how="anti")
        .groupby("cntrycode")
        .agg(lit(1).count().alias("numcust"), col("c_acctbal").sum().alias("totacctbal"))
        .sort("cntrycode")
    )


QUERIES = {number: globals()[f"q{number}"] for number in range(1, 23)}
