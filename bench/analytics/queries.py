# SPDX-License-Identifier: Apache-2.0
"""The groups h2o and clicks: each query as SQL (DuckDB, Daft), as a Gar program and as a lazy Polars frame.

CASES has the titles. Tables are given by name: groups, x, small, medium, big, clicks. Where a limit would leave a choice
between equal values, the keys are sorted by too, so that every engine has one right answer.
"""

SUMS = 90

CASES = {
    "h2o_g1": "sum v1 by id1",
    "h2o_g2": "sum v1 by id1, id2",
    "h2o_g3": "sum v1, mean v3 by id3",
    "h2o_g4": "mean v1, v2, v3 by id4",
    "h2o_g5": "sum v1, v2, v3 by id6",
    "h2o_g6": "median v3, deviation v3 by id4, id5",
    "h2o_g7": "max v1 - min v2 by id3",
    "h2o_g8": "largest two v3 by id6",
    "h2o_g9": "squared correlation of v1, v2 by id2, id4",
    "h2o_g10": "sum v3, count by id1..id6",
    "h2o_j1": "join small on an integer",
    "h2o_j2": "join medium on an integer",
    "h2o_j3": "left join medium on an integer",
    "h2o_j4": "join medium on a text",
    "h2o_j5": "join big on an integer",
    "h2o_sort": "sort by v3, id6; all columns",
    "h2o_top": "first 100 by v3 down, id6; all columns",
    "clicks_1": "sum, count, mean",
    "clicks_2": "different users",
    "clicks_3": "different users by region, first 10",
    "clicks_4": "phrases, first 10",
    "clicks_5": "users, first 10",
    "clicks_6": "users and phrases, first 10",
    "clicks_7": "addresses with a word",
    "clicks_8": "all columns of addresses with a word, first 10 by time",
    "clicks_9": "phrases, first 10 by time",
    "clicks_10": f"{SUMS} sums of a column and a number",
    "clicks_11": "10 million groups of two integers, first 10",
    "clicks_12": "addresses, first 10",
    "clicks_13": "mean length of addresses by counter, first 25",
}

SQL = {
    "h2o_g1": "select id1, sum(v1) v1 from groups group by id1",
    "h2o_g2": "select id1, id2, sum(v1) v1 from groups group by id1, id2",
    "h2o_g3": "select id3, sum(v1) v1, avg(v3) v3 from groups group by id3",
    "h2o_g4": "select id4, avg(v1) v1, avg(v2) v2, avg(v3) v3 from groups group by id4",
    "h2o_g5": "select id6, sum(v1) v1, sum(v2) v2, sum(v3) v3 from groups group by id6",
    "h2o_g6": "select id4, id5, median(v3) m, stddev(v3) d from groups group by id4, id5",
    "h2o_g7": "select id3, max(v1) - min(v2) d from groups group by id3",
    "h2o_g8": """select id6, v3 from
        (select id6, v3, row_number() over (partition by id6 order by v3 desc) n from groups) where n <= 2""",
    "h2o_g9": "select id2, id4, power(corr(v1, v2), 2) r from groups group by id2, id4",
    "h2o_g10": """select id1, id2, id3, id4, id5, id6, sum(v3) v3, count(*) n from groups
        group by id1, id2, id3, id4, id5, id6""",
    "h2o_j1": "select x.*, small.id4 as small_id4, v2 from x join small on x.id1 = small.id1",
    "h2o_j2": "select x.*, medium.id5 as medium_id5, v2 from x join medium on x.id2 = medium.id2",
    "h2o_j3": "select x.*, medium.id5 as medium_id5, v2 from x left join medium on x.id2 = medium.id2",
    "h2o_j4": "select x.*, medium.id2 as medium_id2, v2 from x join medium on x.id5 = medium.id5",
    "h2o_j5": "select x.*, big.id6 as big_id6, v2 from x join big on x.id3 = big.id3",
    "h2o_sort": "select * from groups order by v3, id6",
    "h2o_top": "select * from groups order by v3 desc, id6 limit 100",
    "clicks_1": "select sum(AdvEngineID) s, count(*) n, avg(ResolutionWidth) m from clicks",
    "clicks_2": "select count(distinct UserID) n from clicks",
    "clicks_3": """select RegionID, count(distinct UserID) n from clicks group by RegionID
        order by n desc, RegionID limit 10""",
    "clicks_4": """select SearchPhrase, count(*) n from clicks where SearchPhrase <> '' group by SearchPhrase
        order by n desc, SearchPhrase limit 10""",
    "clicks_5": "select UserID, count(*) n from clicks group by UserID order by n desc, UserID limit 10",
    "clicks_6": """select UserID, SearchPhrase, count(*) n from clicks group by UserID, SearchPhrase
        order by n desc, UserID, SearchPhrase limit 10""",
    "clicks_7": "select count(*) n from clicks where URL like '%google%'",
    "clicks_8": "select * from clicks where URL like '%google%' order by EventTime, WatchID limit 10",
    "clicks_9": """select SearchPhrase from clicks where SearchPhrase <> ''
        order by EventTime, WatchID limit 10""",
    "clicks_10": "select "
    + ", ".join(f"sum(ResolutionWidth + {k}) s{k}" for k in range(SUMS))
    + " from clicks",
    "clicks_11": """select WatchID, ClientIP, count(*) n, sum(IsRefresh) s, avg(ResolutionWidth) m from clicks
        group by WatchID, ClientIP order by n desc, WatchID, ClientIP limit 10""",
    "clicks_12": "select URL, count(*) n from clicks group by URL order by n desc, URL limit 10",
    "clicks_13": """select CounterID, avg(length(URL)) l, count(*) n from clicks where URL <> '' group by CounterID
        having count(*) > 1000 order by l desc, CounterID limit 25""",
}


def gar_query(case, t):
    """The frame of a case over Gar's tables."""
    from gar import Window, col, functions, lit

    def top(frame, by, count=10):
        return frame.sort(by, desc=[True] + [False] * (len(by) - 1)).limit(count)

    def counted(frame, *keys):
        return frame.groupby(*keys).agg(col("WatchID").count().alias("n"))

    if case.startswith("h2o_j"):
        other, key, kind = {
            "h2o_j1": (t.small, "id1", "inner"),
            "h2o_j2": (t.medium, "id2", "inner"),
            "h2o_j3": (t.medium, "id2", "left"),
            "h2o_j4": (t.medium, "id5", "inner"),
            "h2o_j5": (t.big, "id3", "inner"),
        }[case]
        return t.x.join(other, on=key, how=kind)
    queries = {
        "h2o_g1": lambda: t.groups.groupby("id1").agg(col("v1").sum()),
        "h2o_g2": lambda: t.groups.groupby("id1", "id2").agg(col("v1").sum()),
        "h2o_g3": lambda: t.groups.groupby("id3").agg(col("v1").sum(), col("v3").mean()),
        "h2o_g4": lambda: t.groups.groupby("id4").agg(*[col(v).mean() for v in ("v1", "v2", "v3")]),
        "h2o_g5": lambda: t.groups.groupby("id6").agg(*[col(v).sum() for v in ("v1", "v2", "v3")]),
        "h2o_g6": lambda: t.groups.groupby("id4", "id5").agg(
            col("v3").median().alias("m"), col("v3").stddev().alias("d")
        ),
        "h2o_g7": lambda: t.groups.groupby("id3").agg((col("v1").max() - col("v2").min()).alias("d")),
        "h2o_g8": lambda: (
            t.groups.select(
                "id6",
                "v3",
                functions.row_number()
                .over(Window().partition_by("id6").order_by("v3", desc=True))
                .alias("n"),
            )
            .where(col("n") <= 2)
            .select("id6", "v3")
        ),
        "h2o_g9": lambda: t.groups.groupby("id2", "id4").agg(
            (functions.corr(col("v1"), col("v2")) ** 2).alias("r")
        ),
        "h2o_g10": lambda: t.groups.groupby("id1", "id2", "id3", "id4", "id5", "id6").agg(
            col("v3").sum(), col("v1").count().alias("n")
        ),
        "h2o_sort": lambda: t.groups.sort(["v3", "id6"]),
        "h2o_top": lambda: top(t.groups, ["v3", "id6"], 100),
        "clicks_1": lambda: t.clicks.agg(
            col("AdvEngineID").sum().alias("s"),
            col("WatchID").count().alias("n"),
            col("ResolutionWidth").mean().alias("m"),
        ),
        "clicks_2": lambda: t.clicks.agg(col("UserID").count_distinct().alias("n")),
        "clicks_3": lambda: top(
            t.clicks.groupby("RegionID").agg(col("UserID").count_distinct().alias("n")), ["n", "RegionID"]
        ),
        "clicks_4": lambda: top(
            counted(t.clicks.where(col("SearchPhrase") != ""), "SearchPhrase"), ["n", "SearchPhrase"]
        ),
        "clicks_5": lambda: top(counted(t.clicks, "UserID"), ["n", "UserID"]),
        "clicks_6": lambda: top(counted(t.clicks, "UserID", "SearchPhrase"), ["n", "UserID", "SearchPhrase"]),
        "clicks_7": lambda: t.clicks.where(col("URL").contains("google")).agg(
            col("WatchID").count().alias("n")
        ),
        "clicks_8": lambda: (
            t.clicks.where(col("URL").contains("google")).sort(["EventTime", "WatchID"]).limit(10)
        ),
        "clicks_9": lambda: (
            t.clicks.where(col("SearchPhrase") != "")
            .sort(["EventTime", "WatchID"])
            .limit(10)
            .select("SearchPhrase")
        ),
        "clicks_10": lambda: t.clicks.agg(
            *[(col("ResolutionWidth") + lit(k)).sum().alias(f"s{k}") for k in range(SUMS)]
        ),
        "clicks_11": lambda: top(
            t.clicks.groupby("WatchID", "ClientIP").agg(
                col("RegionID").count().alias("n"),
                col("IsRefresh").sum().alias("s"),
                col("ResolutionWidth").mean().alias("m"),
            ),
            ["n", "WatchID", "ClientIP"],
        ),
        "clicks_12": lambda: top(counted(t.clicks, "URL"), ["n", "URL"]),
        "clicks_13": lambda: top(
            t.clicks.where(col("URL") != "")
            .groupby("CounterID")
            .agg(col("URL").length().mean().alias("l"), col("WatchID").count().alias("n"))
            .where(col("n") > 1000)
            .select("CounterID", "l", "n"),
            ["l", "CounterID"],
            25,
        ),
    }
    return queries[case]()


def polars_query(case, t):
    """The lazy frame of a case over Polars' tables."""
    import polars as pl
    from polars import col

    def top(frame, by, count=10):
        return frame.sort(by, descending=[True] + [False] * (len(by) - 1)).head(count)

    def counted(frame, *keys):
        return frame.group_by(*keys).agg(pl.len().alias("n"))

    if case.startswith("h2o_j"):
        other, key, kind = {
            "h2o_j1": (t.small, "id1", "inner"),
            "h2o_j2": (t.medium, "id2", "inner"),
            "h2o_j3": (t.medium, "id2", "left"),
            "h2o_j4": (t.medium, "id5", "inner"),
            "h2o_j5": (t.big, "id3", "inner"),
        }[case]
        return t.x.join(other, on=key, how=kind)
    queries = {
        "h2o_g1": lambda: t.groups.group_by("id1").agg(col("v1").sum()),
        "h2o_g2": lambda: t.groups.group_by("id1", "id2").agg(col("v1").sum()),
        "h2o_g3": lambda: t.groups.group_by("id3").agg(col("v1").sum(), col("v3").mean()),
        "h2o_g4": lambda: t.groups.group_by("id4").agg(col("v1", "v2", "v3").mean()),
        "h2o_g5": lambda: t.groups.group_by("id6").agg(col("v1", "v2", "v3").sum()),
        "h2o_g6": lambda: t.groups.group_by("id4", "id5").agg(
            col("v3").median().alias("m"), col("v3").std().alias("d")
        ),
        "h2o_g7": lambda: t.groups.group_by("id3").agg((col("v1").max() - col("v2").min()).alias("d")),
        "h2o_g8": lambda: t.groups.group_by("id6").agg(col("v3").top_k(2)).explode("v3"),
        "h2o_g9": lambda: t.groups.group_by("id2", "id4").agg((pl.corr("v1", "v2") ** 2).alias("r")),
        "h2o_g10": lambda: t.groups.group_by("id1", "id2", "id3", "id4", "id5", "id6").agg(
            col("v3").sum(), pl.len().alias("n")
        ),
        "h2o_sort": lambda: t.groups.sort("v3", "id6"),
        "h2o_top": lambda: top(t.groups, ["v3", "id6"], 100),
        "clicks_1": lambda: t.clicks.select(
            col("AdvEngineID").cast(pl.Int64).sum().alias("s"),
            pl.len().alias("n"),
            col("ResolutionWidth").mean().alias("m"),
        ),
        "clicks_2": lambda: t.clicks.select(col("UserID").n_unique().alias("n")),
        "clicks_3": lambda: top(
            t.clicks.group_by("RegionID").agg(col("UserID").n_unique().alias("n")), ["n", "RegionID"]
        ),
        "clicks_4": lambda: top(
            counted(t.clicks.filter(col("SearchPhrase") != ""), "SearchPhrase"), ["n", "SearchPhrase"]
        ),
        "clicks_5": lambda: top(counted(t.clicks, "UserID"), ["n", "UserID"]),
        "clicks_6": lambda: top(counted(t.clicks, "UserID", "SearchPhrase"), ["n", "UserID", "SearchPhrase"]),
        "clicks_7": lambda: t.clicks.filter(col("URL").str.contains("google", literal=True)).select(
            pl.len().alias("n")
        ),
        "clicks_8": lambda: (
            t.clicks.filter(col("URL").str.contains("google", literal=True))
            .sort("EventTime", "WatchID")
            .head(10)
        ),
        "clicks_9": lambda: (
            t.clicks.filter(col("SearchPhrase") != "")
            .sort("EventTime", "WatchID")
            .head(10)
            .select("SearchPhrase")
        ),
        "clicks_10": lambda: t.clicks.select(
            *[(col("ResolutionWidth").cast(pl.Int64) + k).sum().alias(f"s{k}") for k in range(SUMS)]
        ),
        "clicks_11": lambda: top(
            t.clicks.group_by("WatchID", "ClientIP").agg(
                pl.len().alias("n"),
                col("IsRefresh").cast(pl.Int64).sum().alias("s"),
                col("ResolutionWidth").mean().alias("m"),
            ),
            ["n", "WatchID", "ClientIP"],
        ),
        "clicks_12": lambda: top(counted(t.clicks, "URL"), ["n", "URL"]),
        "clicks_13": lambda: top(
            t.clicks.filter(col("URL") != "")
            .group_by("CounterID")
            .agg(col("URL").str.len_chars().mean().alias("l"), pl.len().alias("n"))
            .filter(col("n") > 1000),
            ["l", "CounterID"],
            25,
        ),
    }
    return queries[case]()
