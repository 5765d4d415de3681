# SPDX-License-Identifier: Apache-2.0
"""A process that interrupts its own queries, for test_interrupts.py.

Usage: interrupted_process.py OPERATION COUNT SEED FOLDER [SECONDS]
Runs an operation over files in FOLDER COUNT times; each time a thread sends SIGINT at a random time within the
operation's length (SECONDS instead when given). Each time there must be exactly one KeyboardInterrupt, then the
next query must be right and nothing may be left over. One JSON line: the milliseconds from each signal to the
exception, and how many came before the operation had ended.
"""

import gc
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import gar
from gar import col

SETTLE_S = 30


def scan(folder):
    df = gar.read_parquet(str(folder / "data.parquet"))
    df.where(col("text").contains("77") & (col("a") % 3 == 1)).agg(
        col("b").sum(), col("text").max()
    ).collect()


def scan_csv(folder):
    gar.read_csv(str(folder / "data.csv")).where(col("text").cast("string").contains("77")).count_rows()


def group_by(folder):
    df = gar.read_parquet(str(folder / "data.parquet"))
    df.groupby("text").agg(col("a").sum(), col("b").max(), col("c").mean()).collect()


def group_by_few(folder):
    df = gar.read_parquet(str(folder / "data.parquet"))
    df.groupby(col("a") % 100).agg(col("text").count_distinct().alias("n")).collect()


def sort(folder):
    gar.read_parquet(str(folder / "data.parquet")).sort(["text", "b"], desc=[True, False]).collect()


def sort_numbers(folder):
    gar.read_parquet(str(folder / "data.parquet")).sort("b").collect()


def distinct(folder):
    gar.read_parquet(str(folder / "data.parquet")).distinct("text", "a").collect()


def write_parquet(folder):
    df = gar.read_parquet(str(folder / "data.parquet"))
    df.write_parquet(folder / "out", compression="zstd", write_mode="overwrite")


def write_csv(folder):
    gar.read_parquet(str(folder / "data.parquet")).write_csv(folder / "out", write_mode="overwrite")


def iterate(folder):
    for _ in gar.read_parquet(str(folder / "data.parquet")).iter_rows():
        pass


def convert(folder):
    gar.read_parquet(str(folder / "data.parquet")).to_pydict()


def handle(folder):
    gar.read_parquet(str(folder / "data.parquet")).sort("text").start().result()


OPERATIONS = {
    made.__name__: made
    for made in (
        scan,
        scan_csv,
        group_by,
        group_by_few,
        sort,
        sort_numbers,
        distinct,
        write_parquet,
        write_csv,
        iterate,
        convert,
        handle,
    )
}


def census():
    gc.collect()
    statistics = gar._native.statistics()
    return {
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "memory": statistics["memory_live_bytes"],
        "queries": statistics["queries"],
    }


def shown(folder):
    """What a reader of the written folder sees; staged files have hidden names."""
    return sorted((path.name, path.stat().st_size) for path in (folder / "out").iterdir())


def settle(expected):
    limit = time.monotonic() + SETTLE_S
    while (now := census()) != expected:
        assert time.monotonic() < limit, f"left over: {now}, not {expected}"
        time.sleep(0.002)


class Sender(threading.Thread):
    """Sends the signals: next_s after go, once each time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.go = threading.Semaphore(0)
        self.next_s = 0.0
        self.sent_at = 0.0
        self.start()

    def run(self):
        while True:
            self.go.acquire()
            time.sleep(self.next_s)
            self.sent_at = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)


def interrupt(operation, folder, sender):
    """Milliseconds from the signal to the exception, and whether the operation had ended."""
    has_ended = False
    try:
        sender.go.release()
        operation(folder)
        has_ended = True
        while True:  # in short sleeps: a signal just before a sleep does not end it
            time.sleep(0.001)
    except KeyboardInterrupt:
        return (time.monotonic() - sender.sent_at) * 1000, has_ended


def main():
    name, count, seed, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    operation = OPERATIONS[name]
    rng = random.Random(seed)
    sender = Sender()
    operation(folder)
    started = time.monotonic()
    operation(folder)
    length_s = float(sys.argv[5]) if len(sys.argv) > 5 else time.monotonic() - started
    gar.range(300_000).where(col("id") % 2 == 0).count_rows()
    if not (folder / "out").exists():
        gar.range(1000).write_parquet(folder / "out")
    before = census()
    latencies, inside = [], 0
    for _ in range(count):
        sender.next_s = rng.uniform(0, length_s)
        old_state = shown(folder)
        latency, has_ended = interrupt(operation, folder, sender)
        latencies.append(round(latency, 2))
        inside += not has_ended
        gc.collect()
        if name.startswith("write") and not has_ended:
            now = shown(folder)
            names = [entry for entry, _ in now]
            # The signal may come after the files are published and before the call returns: then all is new.
            assert now == old_state or not set(now) & set(old_state), f"half written: {now}, was {old_state}"
            assert not any(entry.startswith((".", "_")) for entry in names), f"staged files are left: {names}"
        assert gar.range(300_000).where(col("id") % 2 == 0).count_rows() == 150_000
        settle(before)
    print(json.dumps({"latencies": latencies, "inside": inside, "length_s": round(length_s, 3)}))


if __name__ == "__main__":
    main()
