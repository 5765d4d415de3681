# SPDX-License-Identifier: Apache-2.0
"""What open iterators, interrupts and morsels cost, beside the peers that can be asked the same: `bench.py costs`.

Each number comes from a fresh process. Usage of one: costs.py ENGINE COST DATA   prints one JSON line.
"""

import contextlib
import gc
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines

LIMIT_S = 60  # an interrupt that takes longer is reported as this
ITERATORS = 8  # open scans whose threads are counted; Daft needs seconds for each
PATIENCE_S = 180
IDLE = {"gar": 1000}  # open idle iterators over small frames whose memory is counted
IDLE_OF_PEERS = 100
MORSEL_ROWS, LARGE_MORSEL_ROWS, ROWS = 1000, 100_000, 20_000_000


def threads():
    return len(os.listdir("/proc/self/task"))


def resident_bytes():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


# ---- how each engine opens a row iterator over a filtered scan, and over a small frame; and runs something long


def scan_iterator(engine, number):
    if engine.name == "duckdb":
        cursor = engine.con.cursor()
        cursor.execute(f"select * from '{engine.lineitem}' where l_orderkey > {number}")
        return iter(cursor.fetchone, None)
    if engine.name == "polars":
        import polars

        frame = polars.scan_parquet(engine.lineitem).filter(polars.col("l_orderkey") > number)
        return (row for batch in frame.collect_batches() for row in batch.iter_rows())
    package = engine.gar if engine.name == "gar" else engine.daft
    frame = engine.read().where(package.col("l_orderkey") > number)
    return iter(frame.iter_rows())


def small_iterator(engine, number):
    package = engine.gar if engine.name == "gar" else engine.daft
    frame = package.from_pydict({"a": [number + k for k in range(10)]})
    return iter(frame.with_column("plus_one", package.col("a") + 1).iter_rows())


def run_long(engine):
    """A sort of all of lineitem by its longest text."""
    if engine.name == "duckdb":
        return engine.con.sql(f"select * from '{engine.lineitem}' order by l_comment, l_orderkey").arrow()
    if engine.name == "polars":
        import polars

        return polars.scan_parquet(engine.lineitem).sort(["l_comment", "l_orderkey"]).collect()
    if engine.name == "pyarrow":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(engine.lineitem).sort_by([("l_comment", "ascending")])
    return engine.read().sort(["l_comment", "l_orderkey"]).to_arrow()


# ---- the costs


def cost_threads(engine):
    """Threads for each open scan more."""
    held = [scan_iterator(engine, 0)]
    next(held[0])
    time.sleep(0.2)
    before = threads()
    for number in range(1, ITERATORS + 1):
        held.append(scan_iterator(engine, number))
        next(held[-1])
    return {"value": (threads() - before) / ITERATORS, "before": before, "after": threads()}


def cost_memory(engine):
    """Resident bytes for each open iterator over a frame of ten rows, one row taken."""
    warm = [small_iterator(engine, number) for number in range(5)]
    for iterator in warm:
        next(iterator)
    count = IDLE.get(engine.name, IDLE_OF_PEERS)
    gc.collect()
    before = resident_bytes()
    held = [small_iterator(engine, number) for number in range(count)]
    for iterator in held:
        next(iterator)
    gc.collect()
    return {"value": (resident_bytes() - before) / count, "count": count}


def cost_interrupt(engine):
    """Seconds from SIGINT, sent 0.3 s into a sort, to the exception."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent = [0.0]

    def send():
        time.sleep(0.3)
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()
    outcome = "finished"
    try:
        run_long(engine)
        while True:
            time.sleep(0.001)
    except BaseException as error:
        outcome = type(error).__name__
    return {"value": time.monotonic() - sent[0], "outcome": outcome}


def cost_morsel(engine):
    """Seconds for each morsel more, when the same rows are handed over in smaller pieces."""
    package = engine.gar
    frame = package.range(ROWS).collect().where(package.col("id") < 0)
    seconds = {}
    for rows in (LARGE_MORSEL_ROWS, MORSEL_ROWS):
        with package.execution_config_ctx(default_morsel_size=rows):
            times = []
            for _ in range(7):
                started = time.perf_counter()
                frame.count_rows()
                times.append(time.perf_counter() - started)
            seconds[rows] = min(times)
    more = ROWS // MORSEL_ROWS - ROWS // LARGE_MORSEL_ROWS
    return {"value": max(0.0, seconds[MORSEL_ROWS] - seconds[LARGE_MORSEL_ROWS]) / more}


# name -> (title, how, engines, runs, the value as text)
COSTS = {
    "threads": (
        f"threads for each open iterator ({ITERATORS} filtered Parquet scans, one row taken)",
        cost_threads,
        ("gar", "duckdb", "polars", "daft"),
        1,
        lambda value: f"{value:.2f}",
    ),
    "memory": (
        "resident memory for each open idle iterator (ten rows in memory, one taken)",
        cost_memory,
        ("gar", "daft"),
        1,
        lambda value: f"{value / 1024:.1f} KiB",
    ),
    "interrupt": (
        "from Ctrl-C to the exception, sort of lineitem",
        cost_interrupt,
        ("gar", "duckdb", "polars", "daft", "pyarrow"),
        5,
        lambda value: f"{value * 1000:.1f} ms" if value < LIMIT_S else f"over {LIMIT_S} s",
    ),
    "morsel": (
        f"hand-over of a morsel of {MORSEL_ROWS} rows",
        cost_morsel,
        ("gar",),
        1,
        lambda value: f"{value * 1e6:.2f} us",
    ),
}


def measure(engine, cost, data):
    """One number from a fresh process."""
    command = [sys.executable, os.path.abspath(__file__), engine, cost, data]
    environment = {**os.environ, "POLARS_MAX_THREADS": "2", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        is_interrupt = cost == "interrupt"
        out, errors = process.communicate(timeout=LIMIT_S if is_interrupt else PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        if is_interrupt:
            return {"value": float(LIMIT_S), "outcome": "killed"}
        return {"error": f"no answer within {PATIENCE_S} s"}
    with contextlib.suppress(ValueError, IndexError):
        return json.loads(out.strip().split("\n")[-1])
    last = errors.strip().split("\n")[-1] if errors.strip() else f"status {process.returncode}"
    return {"error": last[:160]}


def table(names, data):
    """The Markdown lines of all costs."""
    lines = ["### costs", "", "| cost | engine | median | worst | note |", "|---|---|---|---|---|"]
    for cost, (title, _, able, runs, text) in COSTS.items():
        for engine in names:
            if engine not in able:
                continue
            found = [measure(engine, cost, data) for _ in range(runs)]
            values = [one["value"] for one in found if "value" in one]
            note = ", ".join(sorted({one.get("error") or one.get("outcome") or "" for one in found} - {""}))
            if values:
                middle, worst = text(statistics.median(values)), text(max(values))
                lines.append(f"| {title} | {engine} | {middle} | {worst} | {note} |")
            else:
                lines.append(f"| {title} | {engine} | - | - | {note} |")
    lines.append("")
    return lines


def main(argv):
    answers = os.fdopen(os.dup(1), "w", encoding="utf8")
    os.dup2(2, 1)
    name, cost, data = argv[1:4]
    answers.write(json.dumps(COSTS[cost][1](engines.ENGINES[name](data))) + "\n")
    answers.flush()
    os._exit(0)  # whatever still runs in the background is not waited for


if __name__ == "__main__":
    main(sys.argv)
