# SPDX-License-Identifier: Apache-2.0
"""The cases of the benchmark, in the order they are run, and how two results are compared."""

import os
import sys
from decimal import Decimal

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from analytics.queries import CASES as ANALYTICS

# name -> (what is measured, calls per run)
CASES = {
    "q1": ("TPC-H Q1, SF1, Parquet", 1),
    "q6": ("TPC-H Q6, SF1, Parquet", 1),
    "csv_max": ("lineitem CSV, 731 MB: max of all 16 typed columns", 1),
    "parquet_stream": ("lineitem Parquet, every column, as an Arrow stream", 1),
    "parquet_table": ("lineitem Parquet, every column, to_arrow()", 1),
    "filter_clustered": ("1 % of the rows by a clustered key, every column", 1),
    "filter_scattered": ("1 % of the rows by a scattered key, every column", 1),
    "group_flags": ("group by two strings of few values: sum, count", 1),
    "group_orderkey": ("group by l_orderkey, 1.5 million groups: sum", 1),
    "small_query": ("1,000-row table in memory: filter, group, sum; a thousand times", 1000),
}
# Groups of queries, each a case, reported as one table: title, and the cases with their names in it.
GROUPS = {
    "tpch": (
        "TPC-H, 22 queries, SF1, Parquet",
        {f"tpch_q{number}": f"Q{number}" for number in range(1, 23)},
    ),
    "h2o": (
        "Groups, joins and sorts of 10 million rows (h2o), Parquet",
        {case: title for case, title in ANALYTICS.items() if case.startswith("h2o")},
    ),
    "clicks": (
        "A log of 10 million page views (ClickBench-like), Parquet",
        {case: title for case, title in ANALYTICS.items() if case.startswith("clicks")},
    ),
}


def method_of(case):
    """The engines' method for a case, and its arguments."""
    if case.startswith("tpch_q"):
        return "tpch", [int(case[len("tpch_q") :])]
    return ("analytics", [case]) if case in ANALYTICS else (case, [])


def canonical(result):
    """Plain sorted rows of whatever an engine returned; names do not count, values and order of columns do."""
    if hasattr(result, "to_pydict") and hasattr(result, "num_rows"):
        if result.num_rows > 1000:
            return summary_of_table(result)
        result = dict(enumerate(column.to_pylist() for column in result.columns))
    if isinstance(result, dict):
        rows = list(zip(*result.values(), strict=True))
    else:
        rows = [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in result]
    return sorted((tuple(plain(value) for value in row) for row in rows), key=repr)


def summary_of_table(table):
    """A large Arrow table as one row per column: count of values, minimum, maximum, sum or length."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = [("rows", table.num_rows)]
    for index in range(table.num_columns):
        column = table.column(index)
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if str(kind) in ("string", "string_view", "large_string"):
            texts = column.cast(pa.large_string())
            lengths = pc.sum(pc.binary_length(texts)).as_py()
            rows.append(
                (index, len(texts) - texts.null_count, pc.min(texts).as_py(), pc.max(texts).as_py(), lengths)
            )
            continue
        total = None
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            total = plain(pc.sum(column).as_py())
        least, most = plain(pc.min(column).as_py()), plain(pc.max(column).as_py())
        rows.append((index, len(column) - column.null_count, least, most, total))
    return rows


def plain(value):
    """One value in a form that compares across engines and goes through JSON. Decimals keep their digits."""
    if isinstance(value, Decimal):
        return "#" + format(value, "f")
    if hasattr(value, "isoformat"):
        return value.isoformat()[:10]
    return value


SAME, ROUNDED, DIFFERS = "same", "rounded", "DIFFERS"


def compare(left, right):
    """SAME: decimals equal digit by digit, floats to nine digits, to 1e-12 near zero or, beside a decimal, to its last digit.
    ROUNDED: numbers to six digits. Else DIFFERS."""
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if len(left) != len(right):
            return DIFFERS
        found = {compare(a, b) for a, b in zip(left, right, strict=True)}
        return next((worst for worst in (DIFFERS, ROUNDED) if worst in found), SAME)
    if left == right:
        return SAME
    if not (is_number(left) and is_number(right)):
        return DIFFERS
    a, b = as_decimal(left), as_decimal(right)
    if a == b:
        return SAME
    distance = abs(a - b)
    kinds = isinstance(left, str) + isinstance(right, str)
    if kinds == 1:
        exact = a if isinstance(left, str) else b
        if distance <= Decimal("0.5000001").scaleb(exact.as_tuple().exponent):
            return SAME
    if kinds == 0 and distance <= Decimal("1e-12"):
        return SAME
    relative = distance / max(abs(a), abs(b))
    if relative <= Decimal("1e-9") and kinds < 2:
        return SAME
    return ROUNDED if relative <= Decimal("1e-6") else DIFFERS


def is_number(value):
    if isinstance(value, str):
        return value.startswith("#")
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_decimal(value):
    return Decimal(value[1:]) if isinstance(value, str) else Decimal(value)
