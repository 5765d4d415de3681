# SPDX-License-Identifier: Apache-2.0
"""Time zones end to end: against the standard library's zoneinfo, and where zone files are looked for."""

import datetime
import os
import subprocess
import sys
import zoneinfo

import pyarrow as pa
import pytest

import gar
from gar import col

UTC = datetime.UTC
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "+05:30",
]


def zone_of(name):
    if name.startswith("+"):
        return datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    return zoneinfo.ZoneInfo(name)


def instants():
    """Every 11 hours and a bit from 1901 to 2099."""
    start = datetime.datetime(1901, 1, 1, tzinfo=UTC)
    return [start + datetime.timedelta(hours=11, seconds=7) * step for step in range(0, 157_000, 23)]


@pytest.fixture(scope="module", autouse=True)
def zones_stay_in_memory():
    """The engine keeps each zone that was used; the census of memory begins behind that."""
    for name in [*ZONES, "UTC"]:
        kind = pa.timestamp("us", name)
        gar.from_arrow(pa.table({"t": pa.array([0], kind)})).select(col("t").hour()).collect()


@pytest.mark.parametrize("name", ZONES)
def test_parts_are_those_of_zoneinfo(name):
    values = instants()
    try:
        local = [value.astimezone(zone_of(name)) for value in values]
    except zoneinfo.ZoneInfoNotFoundError:
        pytest.skip(f"Python finds no file of {name}")
    frame = gar.from_arrow(pa.table({"t": pa.array(values, pa.timestamp("us", name))}))
    got = frame.select(
        col("t").year().alias("year"),
        col("t").month().alias("month"),
        col("t").day().alias("day"),
        col("t").hour().alias("hour"),
        col("t").minute().alias("minute"),
        col("t").date().alias("date"),
        col("t").time().alias("time"),
        col("t").cast(gar.DataType.string()).alias("text"),
    ).to_pydict()
    for part in ("year", "month", "day", "hour", "minute"):
        assert got[part] == [getattr(value, part) for value in local]
    assert got["date"] == [value.date() for value in local]
    assert got["time"] == [value.time() for value in local]
    assert [datetime.datetime.fromisoformat(text) for text in got["text"]] == values


@pytest.mark.parametrize("name", ZONES[:4])
def test_days_start_by_the_local_clock(name):
    values = instants()
    zone = zone_of(name)
    frame = gar.from_arrow(pa.table({"t": pa.array(values, pa.timestamp("us", name))}))
    got = frame.select(col("t").date_trunc("day").alias("day"), col("t").date().alias("date")).to_arrow()
    for value, day, date in zip(values, got["day"].to_pylist(), got["date"].to_pylist(), strict=True):
        start = day.astimezone(UTC)
        assert start <= value and start.astimezone(zone).date() == date
        assert (start - datetime.timedelta(microseconds=1)).astimezone(zone).date() < date


def test_unknown_zones_are_named():
    frame = gar.from_arrow(pa.table({"t": pa.array([0], pa.timestamp("us", "Mars/Olympus"))}))
    assert frame.to_arrow()["t"].type.tz == "Mars/Olympus"  # passing through needs no rules
    with pytest.raises(ValueError, match=r"unknown time zone 'Mars/Olympus'; looked in .*tzdata"):
        frame.select(col("t").hour()).collect()


def test_zone_files_of_a_folder_that_is_named(tmp_path):
    header = b"TZif2" + bytes(15) + bytes(16) + b"\0\0\0\1\0\0\0\4"
    block = header + bytes(6) + b"UTC\0"
    (tmp_path / "Test").mkdir()
    (tmp_path / "Test" / "Zone").write_bytes(block + block + b"\n<+03>-3\n")
    script = (
        "import gar, pyarrow as pa\n"
        "t = pa.array([0], pa.timestamp('s', 'Test/Zone'))\n"
        "print(gar.from_arrow(pa.table({'t': t})).select(gar.col('t').hour()).to_pydict())\n"
    )
    for variable in ("GAR_TZDATA", "TZDIR"):
        environment = {**os.environ, variable: str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "{'t': [3]}"
