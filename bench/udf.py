# SPDX-License-Identifier: Apache-2.0
"""User functions beside Daft's: functions of columns in this process, and a function of rows over strings.

Each engine runs in a process of its own; rounds of the engines alternate; the least time of the rounds counts. Results are
checked. Run it alone: bench/udf.py [--rounds N] [--engines gar,daft] [CASE ...]
"""

import argparse
import json
import subprocess
import sys
import time

ROWS = 4_000_000
TEXTS = 1_000_000
SINGLES = 5_000
BATCHES = (1_024, 16_384, 131_072)
CASES = [*(f"columns_{rows}" for rows in BATCHES), "rows_text", "single_rows"]


def engine_of(name):
    if name == "gar":
        import gar

        return gar
    import os

    os.environ.setdefault("DAFT_ANALYTICS_ENABLED", "0")
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")
    import daft

    return daft


def prepare(engine, case):
    """A function that runs the case once and gives what is to be checked."""
    import numpy

    if case.startswith("columns_"):
        rng = numpy.random.default_rng(1)
        frame = engine.from_pydict({"a": rng.random(ROWS), "b": rng.random(ROWS)}).collect()

        @engine.func.batch(return_dtype=engine.DataType.float64(), batch_size=int(case.split("_")[1]))
        def add(a, b):
            return a.to_arrow().to_numpy() + b.to_arrow().to_numpy()

        query = frame.select(add(frame["a"], frame["b"]).alias("c"))
        return lambda: len(query.select(query["c"]).to_arrow())
    if case == "rows_text":
        frame = engine.from_pydict({"s": [f"row {i}" for i in range(TEXTS)]}).collect()

        @engine.func
        def upper(s: str) -> str:
            return s.upper()

        query = frame.select(upper(frame["s"]).alias("s"))
        return lambda: len(query.select(query["s"]).to_arrow())
    frame = engine.from_pydict({"a": list(range(SINGLES))}).collect()

    @engine.func.batch(return_dtype=engine.DataType.int64(), batch_size=1)
    def same(a):
        return a

    query = frame.select(same(frame["a"]).alias("a"))
    return lambda: len(query.select(query["a"]).to_arrow())


def expected_rows(case):
    return ROWS if case.startswith("columns_") else TEXTS if case == "rows_text" else SINGLES


def work(name, case):
    """In the child: seconds of one warm run, as JSON."""
    run = prepare(engine_of(name), case)
    run()
    began = time.perf_counter()
    rows = run()
    took = time.perf_counter() - began
    if rows != expected_rows(case):
        raise SystemExit(f"{name} gave {rows} rows in {case}, expected {expected_rows(case)}")
    print(json.dumps(took))


def measure(name, case):
    done = subprocess.run(
        [sys.executable, __file__, "--work", name, case],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{name} failed in {case}:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default="gar,daft")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all by default")
    options = parser.parse_args()
    if options.work:
        work(options.work, options.cases[0])
        return
    engines = options.engines.split(",")
    print("| case | " + " | ".join(f"{name}, ms" for name in engines) + " | ratio |")
    print("|---|" + "---:|" * (len(engines) + 1))
    for case in options.cases or CASES:
        if case not in CASES:
            raise SystemExit(f"no such case: {case}; there are {', '.join(CASES)}")
        least = dict.fromkeys(engines, float("inf"))
        for _ in range(options.rounds):
            for name in engines:
                least[name] = min(least[name], measure(name, case))
        times = " | ".join(f"{least[name] * 1e3:.1f}" for name in engines)
        ratio = least[engines[-1]] / least[engines[0]]
        print(f"| {case} | {times} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
