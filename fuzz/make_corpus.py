# SPDX-License-Identifier: Apache-2.0
"""Make the first inputs of the fuzz targets: small valid files of each kind, and broken ones from a fixed seed.

Inputs that found a fault are added by hand under a name that says what it was; this script never removes any.
Usage: make_corpus.py      (needs pyarrow; writes corpus/)
"""

import datetime
import io
import os
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
ROWS = 20


def write(target, name, data):
    folder = os.path.join(CORPUS, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def holes(values):
    """Every third value missing."""
    return [None if index % 3 == 2 else value for index, value in enumerate(values)]


def table():
    rows = range(ROWS)
    day = datetime.date(2020, 2, 28)
    return pa.table(
        {
            "b": pa.array(holes([row % 2 == 0 for row in rows])),
            "i8": pa.array([row - 10 for row in rows], pa.int8()),
            "u32": pa.array(holes([row << 27 for row in rows]), pa.uint32()),
            "i64": pa.array([row * 10**15 for row in rows], pa.int64()),
            "f": pa.array(holes([row / 7 for row in rows]), pa.float32()),
            "d": pa.array([float("nan") if row == 5 else row / 3 for row in rows], pa.float64()),
            "dec32": pa.array(holes([Decimal(row) / 100 for row in rows]), pa.decimal128(8, 2)),
            "dec": pa.array([Decimal(row) / 100 for row in rows], pa.decimal128(30, 4)),
            "s": pa.array(holes([f"text {row} that is long enough" for row in rows])),
            "low": pa.array(["abc"[row % 3] for row in rows]),
            "bin": pa.array([bytes([row, 255 - row]) for row in rows], pa.binary()),
            "fix": pa.array([bytes([row] * 5) for row in rows], pa.binary(5)),
            "day": pa.array([day + datetime.timedelta(row) for row in rows]),
            "ts": pa.array([row * 10**12 for row in rows], pa.timestamp("us", "UTC")),
            "time": pa.array([row * 10**6 for row in rows], pa.time64("us")),
        }
    )


def parquet(columns=None, **options):
    sink = io.BytesIO()
    data = table() if columns is None else table().select(columns)
    pq.write_table(data, sink, **{"write_batch_size": 7, "row_group_size": 12, **options})
    return sink.getvalue()


def parquet_files():
    files = {
        "plain-v1.parquet": parquet(compression="none", use_dictionary=False),
        "dictionary-v2-crc.parquet": parquet(
            ["s", "low", "i64", "dec32"],
            compression="none",
            data_page_version="2.0",
            write_page_checksum=True,
        ),
        "delta.parquet": parquet(
            ["i64", "i8", "s", "bin"],
            compression="none",
            use_dictionary=False,
            column_encoding={
                "i64": "DELTA_BINARY_PACKED",
                "i8": "DELTA_BINARY_PACKED",
                "s": "DELTA_BYTE_ARRAY",
                "bin": "DELTA_LENGTH_BYTE_ARRAY",
            },
        ),
        "split.parquet": parquet(
            ["f", "d", "i64", "fix"],
            compression="none",
            use_dictionary=False,
            column_encoding={name: "BYTE_STREAM_SPLIT" for name in ("f", "d", "i64", "fix")},
        ),
        "int96.parquet": parquet(["ts"], compression="none", use_deprecated_int96_timestamps=True),
        "bloom-index.parquet": parquet(["s", "i64"], compression="none", write_page_index=True),
    }
    for codec in ("snappy", "gzip", "zstd", "brotli", "lz4"):
        files[f"{codec}.parquet"] = parquet(["b", "i64", "s", "low"], compression=codec)
    sink = io.BytesIO()
    pq.write_table(pa.table({"l": [[1, 2], [], None], "x": [1, 2, 3]}), sink)
    files["nested.parquet"] = sink.getvalue()
    sink = io.BytesIO()
    pq.write_table(table().slice(0, 0), sink)
    files["no-rows.parquet"] = sink.getvalue()
    return files


def broken(files, seed):
    """Truncated, flipped and length-lying variants."""
    numbers = random.Random(seed)
    for name, data in files.items():
        stem, dot, end = name.rpartition(".")
        for kind in ("cut", "flip", "size"):
            changed = bytearray(data)
            if kind == "cut":
                del changed[numbers.randrange(4, len(data)) :]
            elif kind == "flip":
                for _ in range(3):
                    changed[numbers.randrange(4, len(data) - 8)] ^= 1 << numbers.randrange(8)
            else:
                at = numbers.randrange(4, len(data) - 8)
                changed[at : at + 4] = b"\xff\xff\xff\x7f"
            yield f"{stem}-{kind}{dot}{end}", bytes(changed)


def csv_files():
    """The first byte chooses the dialect: see csv_fuzz.c."""
    quoted = b'a,b,c\n1,"x, y",2020-01-01\n2,"say ""hi""",\n,"two\nlines",1999-12-31\n'
    return {
        "plain": b"\x00a,b\n1,2\n3,4\n",
        "quoted": b"\x00" + quoted,
        "crlf": b"\x00" + quoted.replace(b"\n", b"\r\n"),
        "no-header": b"\x011,2.5,x\n3,4.5,y\n",
        "text-only": b"\x02a\n1\n",
        "ragged": b"\x00a,b\n1\n2,3,4\n",
        "ragged-allowed": b"\x04a,b\n1\n2,3,4\n",
        "escape": b'\x08a,b\n"x\\"y",1\n\\,z,2\n',
        "comment": b"\x10# first\na,b\n#x\n1,2\n",
        "pipe": b"\x20a|b\n1|2\n",
        "tab": b"\x40a\tb\n1\t2\n",
        "no-quote": b'\x80a,b\n"1,2\n',
        "open-quote": b'\x00a,b\n1,"never closed\n2,3\n',
        "behind-quote": b'\x00a,b\n"1"x,2\n',
        "no-final-newline": b"\x00a,b\n1,2",
        "header-only": b"\x00a,b\n",
        "empty": b"\x00",
        "blank-lines": b"\x00\n\na,b\n\n1,2\n\n",
        "bom": b"\x00\xef\xbb\xbfa,b\n1,2\n",
        "utf16": b"\x00\xff\xfea\x00,\x00b\x00\n\x00",
        "bad-utf8": b"\x00a,b\n\xff\xfe,1\n",
        "nul": b"\x00a,b\n\x00,1\n",
        "numbers": b"\x00a,b,c\n1e400,9223372036854775808,-0\n.5,+1,1.\n",
        "times": b"\x00t\n2020-01-01T00:00:00Z\n2020-02-30\n23:59:59.999999999\n",
        "many-columns": b"\x00" + b",".join(b"c%d" % n for n in range(300)) + b"\n" + b"," * 299 + b"\n",
        "long-field": b"\x00a\n" + b"x" * 3000 + b"\n",
        "same-names": b"\x00a,a,\n1,2,3\n",
    }


def zone_block(version, time_bytes, times, offsets):
    """Header and body of one block of a TZif file: offsets[0], then offsets[i + 1] from times[i]."""
    counts = (0, 0, 0, len(times), len(offsets), 4)
    out = b"TZif" + version + bytes(15) + b"".join(count.to_bytes(4, "big") for count in counts)
    out += b"".join(time.to_bytes(time_bytes, "big", signed=True) for time in times)
    out += bytes(range(1, len(times) + 1))
    out += b"".join(offset.to_bytes(4, "big", signed=True) + bytes(2) for offset in offsets)
    return out + b"LMT\0"


def zone_file(times, offsets, rule):
    return zone_block(b"2", 4, [], [0]) + zone_block(b"2", 8, times, offsets) + b"\n" + rule + b"\n"


def zone_files():
    times, offsets = [-(2**59), -2717650800, 1194156000], [-17762, -17762, -18000, -14400]
    skipped = [1325239200, 1420070400, 1420074000], [-36000, 50400, 43200, 50400]
    return {
        "version-1": zone_block(b"\0", 4, [-5, 1194156000], [0, 3600, 7200]),
        "rule-after": zone_file(times, offsets, b"EST5EDT,M3.2.0,M11.1.0"),
        "no-rule": zone_file(times, offsets, b""),
        "day-skipped": zone_file(*skipped, b"<+14>-14"),
        "rule-of-old": zone_file([-(2**58)], [0, 3600], b"CET-1CEST,M3.5.0,M10.5.0/3"),
        "rule-of-far": zone_file([2**58], [0, 3600], b"CET-1CEST,M3.5.0,M10.5.0/3"),
        "out-of-order": zone_file([5, 5], [0, 1, 2], b""),
        "offset-of-days": zone_file([5], [0, 2**31 - 1], b""),
    }


ZONE_RULES = [
    b"UTC0",
    b"CET-1CEST,M3.5.0,M10.5.0/3",
    b"NZST-12NZDT,M9.5.0,M4.1.0/3",
    b"IST-1GMT0,M10.5.0,M3.5.0/1",
    b"<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
    b"EET-2EEST,M3.4.4/50,M10.4.4/50",
    b"XXX3EDT4,0/0,J365/23",
    b"AAA0BBB-24,J365/167,J365/160",
    b"AAA24BBB-24,J1/-167,0/167",
    b"AAA0BBB,J60/0,59/0:0:1",
    b"EST5EDT",
    b"EST5EDT,M13.2.0,M11.1.0",
]


EXPRESSIONS = [
    "a > 1 and s like 'x%'",
    "i + 1 as j, f * 2.5, s",
    "case when i > 0 then 'yes' when i is null then null else 'no' end",
    "i between 1 and 3 or not b",
    "s in ('abc', 'def', null) and s not like '%\\_%'",
    "cast(i as decimal(20, 4)) / 3",
    "cast(f as bigint)",
    "try_cast(s as date) < date '2020-01-01'",
    "d + interval '1' month, t - interval '90' minute",
    "coalesce(i, -1) % 7, -i, +f",
    "upper(substr(s, 1, 2)) || lower(s)",
    "year(d) * 10000 + month(d) * 100 + day(d)",
    "length(s) = 3 and contains(s, 'b')",
    "i is not null and (f is null or f <> 0)",
    "count(*), sum(i), avg(f)",
    "\"i\" > 0x10 and 'it''s' = s",
    "1e308 * 10, 99999999999999999999, 1.0000000000000000000000000001",
    "nosuch(i), missing",
    "i > ",
    "((((((((((i))))))))))",
    "'open",
    "-- comment\ni /* block */ + 1",
    "*",
    "",
]


def region(kind, rows, arrays):
    """A batch as actors pass it (src/actors/wire.h): head, a description for each array, buffers at multiples of 64."""
    nodes = [(rows, 0, (b"", b"", b"")), *arrays]
    at = 64 * (1 + len(nodes))
    head = struct.pack("<8q", rows, len(nodes), 0, 0, 0, 0, 0, 0)
    descriptions, body = b"", b""
    for length, nulls, buffers in nodes:
        offsets = []
        for buffer in buffers:
            offsets.append(at)
            padded = buffer + b"\0" * (-len(buffer) % 64)
            body += padded
            at += len(padded)
        descriptions += struct.pack("<8q", length, nulls, *offsets, *map(len, buffers))
    return bytes([kind]) + head + descriptions + body


def wire_files():
    floats = struct.pack("<3d", 1.5, -2.0, 1e300)
    return {
        "numbers": region(0, 3, [(3, 1, (b"\x05", floats, b"")), (3, 0, (b"", b"\x03", b""))]),
        "texts": region(
            1, 3, [(3, 0, (b"", struct.pack("<4q", 0, 1, 1, 20), b"a" * 20)), (3, 0, (b"", floats, b""))]
        ),
        "lists": region(2, 2, [(2, 0, (b"", struct.pack("<3q", 0, 1, 3), b"")), (3, 0, (b"", floats, b""))]),
        "no-rows": region(0, 0, [(0, 0, (b"", b"", b"")), (0, 0, (b"", b"", b""))]),
        "falling-offsets": region(
            1, 3, [(3, 0, (b"", struct.pack("<4q", 0, 9, 1, 20), b"a" * 20)), (3, 0, (b"", floats, b""))]
        ),
        "huge-offset": region(
            1, 1, [(1, 0, (b"", struct.pack("<2q", 0, 2**62), b"a")), (1, 0, (b"", floats, b""))]
        ),
    }


def main():
    files = wire_files()
    for name, data in [*files.items(), *broken({f"{name}.bin": data for name, data in files.items()}, 11)]:
        write("wire", name, data)
    files = parquet_files()
    for name, data in [*files.items(), *broken(files, 20200229)]:
        write("parquet", name, data)
    for name, data in csv_files().items():
        write("csv", name, data)
    files = zone_files()
    for name, data in [*files.items(), *broken({f"{name}.tz": data for name, data in files.items()}, 7)]:
        write("zone", name, data)
    for number, rule in enumerate(ZONE_RULES):
        write("zone", f"rule-{number:02d}", rule)
    for number, text in enumerate(EXPRESSIONS):
        write("expression", f"{number:02d}.sql", text.encode())
    write("expression", "deep.sql", b"(" * 400 + b"i" + b")" * 400)
    write("expression", "deep-not.sql", b"not " * 400 + b"b")
    write("expression", "bad-utf8.sql", b"s = '\xff\xfe'")


if __name__ == "__main__":
    main()
