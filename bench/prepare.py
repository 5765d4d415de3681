# SPDX-License-Identifier: Apache-2.0
"""Rewrite all tables with plain strings for readers that refuse string_view: tpch-1 -> tpch-1-plain."""

import os
import sys


def rewrite(source, target):
    if os.path.exists(target):
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
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


def main(data):
    folder = f"{data}/tpch-1-plain"
    os.makedirs(folder, exist_ok=True)
    for name in sorted(os.listdir(f"{data}/tpch-1")):
        if name.endswith(".parquet"):
            rewrite(f"{data}/tpch-1/{name}", f"{folder}/{name}")


if __name__ == "__main__":
    main(sys.argv[1])
