# SPDX-License-Identifier: Apache-2.0
"""Rewrite lineitem with plain strings for readers that refuse string_view: tpch-1 -> tpch-1-plain."""

import os
import sys


def main(data):
    source, target = f"{data}/tpch-1/lineitem.parquet", f"{data}/tpch-1-plain/lineitem.parquet"
    if os.path.exists(target):
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    staged = f"{target}.{os.getpid()}"
    schema = pa.schema(
        [
            field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
            for field in file.schema_arrow
        ]
    )
    with pq.ParquetWriter(staged, schema, compression="snappy") as writer:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            writer.write_table(table.cast(schema), row_group_size=table.num_rows)
    os.replace(staged, target)


if __name__ == "__main__":
    main(sys.argv[1])
