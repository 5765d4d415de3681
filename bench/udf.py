# SPDX-License-Identifier: Apache-2.0
"""The group `udf`: Python functions and classes beside Daft and Ray Data.

Each engine does a case in a process of its own, which stays; the result is checked once, then the engines take turns, one round
each; the least time of the rounds counts. A class in worker processes notes when its first call began and its last one ended in
a file that it maps, so that its batches are measured apart from the start of the processes.

Run it alone: bench/udf.py [--rounds N] [--engines gar,daft,ray] [--scale 0.1] [CASE ...]
"""

import argparse
import glob
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time

ENGINES = ("gar", "daft", "ray")
ROWS = 4_000_000
TEXTS = 1_000_000
SINGLES = 5_000
BLOBS = 20_000
BLOB_BYTES = 64 << 10
SLEEPS = 200
SLEEP_S = 0.010
STATE_BYTES = 50_000_000
BLOCK_ROWS = 131_072  # of Ray's input
LIMIT_S = 600


class Case:
    """What is run, and what its time is divided by."""

    def __init__(self, title, kind, batch_rows=None, actors=0):
        self.title = title
        self.kind = kind
        self.batch_rows = batch_rows
        self.actors = actors

    def rows(self, scale):
        whole = {"columns": ROWS, "texts": TEXTS, "blobs": BLOBS, "sleep": SLEEPS, "start": 1}[self.kind]
        if self.batch_rows == 1 and self.kind == "columns":
            whole = SINGLES
        return max(1, int(whole * scale)) if whole > 1 else 1

    def batches(self, scale):
        return -(-self.rows(scale) // self.batch_rows) if self.batch_rows else 1


CASES = {
    **{f"start_{n}": Case(f"start of {n} with 50 MB of state", "start", 1, n) for n in (1, 2)},
    **{
        f"actor{n}_{rows}": Case(
            f"{rows:,} row{'s' if rows > 1 else ''} a batch, {n} process{'es' if n > 1 else ''}",
            "columns",
            rows,
            n,
        )
        for n in (1, 2)
        for rows in (1, 1_024, 16_384, 131_072)
    },
    "blobs": Case("64 KiB values, 64 a batch, 1 process", "blobs", 64, 1),
    **{
        f"sleep_{n}": Case(f"10 ms a batch, {n} process{'es' if n > 1 else ''}", "sleep", 1, n)
        for n in (1, 2)
    },
    **{
        f"here_{rows}": Case(
            f"{rows:,} row{'s' if rows > 1 else ''} a batch, in this process", "columns", rows
        )
        for rows in (1, 1_024, 16_384, 131_072)
    },
    "texts": Case("a function of one text, 1 M rows, in this process", "texts"),
}


# ---- in the child


class Clock:
    """When the calls of a worker process began and ended, in a file that the measuring process reads."""

    def __init__(self, folder):
        with open(os.path.join(folder, str(os.getpid())), "w+b") as file:
            file.write(bytes(16))
            file.flush()
            self._map = mmap.mmap(file.fileno(), 16)
        self._first = 0.0

    def begin(self):
        if not self._first:
            self._first = time.monotonic()

    def end(self):
        struct.pack_into("dd", self._map, 0, self._first, time.monotonic())

    @staticmethod
    def read(folder):
        """(first begin, last end) of all."""
        found = []
        for path in glob.glob(os.path.join(folder, "*")):
            with open(path, "rb") as file:
                found.append(struct.unpack("dd", file.read(16)))
            os.unlink(path)
        found = [pair for pair in found if pair[0] > 0]
        return min(pair[0] for pair in found), max(pair[1] for pair in found)


def source(case, rows):
    """The input as an Arrow table, and the sum of what the function gives."""
    import numpy
    import pyarrow

    rng = numpy.random.default_rng(1)
    if case.kind == "texts":
        texts = [f"row {i}" for i in range(rows)]
        return pyarrow.table({"a": texts}), sum(map(len, texts))
    if case.kind == "blobs":
        some = [rng.bytes(BLOB_BYTES) for _ in range(16)]
        blobs = pyarrow.array([some[i % 16] for i in range(rows)], pyarrow.large_binary())
        return pyarrow.table({"a": blobs}), sum(some[i % 16][-1] for i in range(rows))
    a, b = rng.random(rows), rng.random(rows)
    table = pyarrow.table({"a": a, "b": b})
    return table, float((a if case.kind in ("sleep", "start") else a + b).sum())


def last_bytes(values):
    return [value[-1] for value in values]


class Shared:
    """What Gar and Daft write alike: the module is `engine`."""

    def __init__(self, engine, case, scale, folder):
        self.engine, self.case, self.folder = engine, case, folder
        self.rows = case.rows(scale)
        table, self.expected = source(case, self.rows)
        self.frame = engine.from_arrow(table).collect()

    def function(self):
        engine, case = self.engine, self.case
        if case.kind == "texts":

            @engine.func
            def length(a: str) -> int:
                return len(a.upper())

            return length(engine.col("a"))

        @engine.func.batch(return_dtype=engine.DataType.float64(), batch_size=case.batch_rows)
        def add(a, b):
            return a.to_arrow().to_numpy() + b.to_arrow().to_numpy()

        return add(engine.col("a"), engine.col("b"))

    def method(self):
        engine, case = self.engine, self.case
        batch = {"batch_size": case.batch_rows}
        real, whole = engine.DataType.float64(), engine.DataType.int64()

        @engine.cls(max_concurrency=case.actors, use_process=True)
        class Work:
            def __init__(self, folder):
                import numpy

                if case.kind == "columns":  # so that imports are no part of a batch
                    import pyarrow

                    pyarrow.array([1.0]).to_numpy()
                self.state = numpy.ones(STATE_BYTES // 8)
                self.clock = Clock(folder)

            @engine.method.batch(return_dtype=real, **batch)
            def add(self, a, b):
                self.clock.begin()
                made = a.to_arrow().to_numpy() + b.to_arrow().to_numpy()
                self.clock.end()
                return made

            @engine.method.batch(return_dtype=real, **batch)
            def wait(self, a):
                self.clock.begin()
                if case.kind == "sleep":
                    time.sleep(SLEEP_S)
                self.clock.end()
                return a

            @engine.method.batch(return_dtype=whole, **batch)
            def last(self, a):
                self.clock.begin()
                made = last_bytes(a.to_pylist())
                self.clock.end()
                return made

        made = Work(self.folder)
        a, b = engine.col("a"), engine.col("b")
        if case.kind == "columns":
            return made.add(a, b)
        return made.last(a) if case.kind == "blobs" else made.wait(a)

    def run(self):
        call = self.function() if self.case.actors == 0 else self.method()
        return self.frame.select(call.alias("c")).collect()

    def total(self, result):
        import pyarrow.compute

        column = result.to_arrow()["c"]
        return len(column), pyarrow.compute.sum(column).as_py()


class Ray:
    def __init__(self, case, scale, folder):
        import ray
        import ray.data

        self.case, self.folder = case, folder
        self.rows = case.rows(scale)
        ray.init(
            num_cpus=4,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            logging_level="ERROR",
            log_to_driver=False,
            object_store_memory=4 << 30,
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        table, self.expected = source(case, self.rows)
        block = 512 if case.kind == "blobs" else BLOCK_ROWS
        parts = [table.slice(i, block) for i in range(0, self.rows, block)]
        if case.kind == "sleep":
            parts = [table.slice(i, -(-self.rows // 4)) for i in range(0, self.rows, -(-self.rows // 4))]
        self.data = ray.data.from_arrow(parts)

    def run(self):
        case = self.case
        if case.kind == "texts":
            return self.data.map(lambda row: {"c": len(row["a"].upper())}).materialize()
        if case.actors == 0:
            return self.data.map_batches(
                lambda batch: {"c": batch["a"] + batch["b"]}, batch_size=case.batch_rows, zero_copy_batch=True
            ).materialize()

        class Work:
            def __init__(self, folder):
                import numpy

                self.state = numpy.ones(STATE_BYTES // 8)
                self.clock = Clock(folder)

            def __call__(self, batch):
                self.clock.begin()
                if case.kind == "columns":
                    made = batch["a"] + batch["b"]
                elif case.kind == "blobs":
                    made = last_bytes(batch["a"].to_pylist())
                else:
                    if case.kind == "sleep":
                        time.sleep(SLEEP_S)
                    made = batch["a"]
                self.clock.end()
                if case.kind == "blobs":
                    import pyarrow

                    return pyarrow.table({"c": made})
                return {"c": made}

        return self.data.map_batches(
            Work,
            fn_constructor_args=(self.folder,),
            batch_size=case.batch_rows,
            batch_format="pyarrow" if case.kind == "blobs" else "numpy",
            concurrency=case.actors,
            zero_copy_batch=True,
        ).materialize()

    def total(self, result):
        import pyarrow.compute
        import ray

        tables = ray.get(result.to_arrow_refs())
        return sum(map(len, tables)), sum(pyarrow.compute.sum(table["c"]).as_py() for table in tables)


def make(name, case, scale, folder):
    os.environ.setdefault("DAFT_ANALYTICS_ENABLED", "0")
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if name == "ray":
        return Ray(case, scale, folder)
    return Shared(__import__(name), case, scale, folder)


def measure(engine, case, folder):
    """Seconds of one run: of the batches, or until the first call begins."""
    began = time.monotonic()
    result = engine.run()
    took = time.monotonic() - began
    del result
    if case.actors == 0:
        return took
    first, last = Clock.read(folder)
    return first - began if case.kind == "start" else last - first


def work(name, case, scale):
    """In the child: a line for each line that comes, the first one says whether the result is right."""
    answers, sys.stdout = sys.stdout, sys.stderr

    def say(**what):
        print(json.dumps(what), file=answers, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        try:
            engine = make(name, case, scale, folder)
            rows, total = engine.total(engine.run())
            if case.actors:
                Clock.read(folder)
        except Exception as error:
            say(error=" ".join(f"{type(error).__name__}: {error}".split())[:160])
            return
        good = rows == engine.rows and abs(total - engine.expected) <= 1e-9 * abs(engine.expected)
        module = sys.modules[name]
        say(
            version=module.__version__,
            good=good,
            told=f"{rows} rows, sum {total}, expected {engine.expected}",
        )
        for _ in sys.stdin:
            say(seconds=measure(engine, case, folder))


# ---- the driver


class Child:
    def __init__(self, name, case, scale):
        self.errors = tempfile.TemporaryFile("w+", encoding="utf8")  # noqa: SIM115 (closed in close)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", name, "--scale", str(scale), case],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.hello = self._read()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.process.wait()
        self.errors.seek(0)
        last = (self.errors.read().strip() or "no output").split("\n")[-1]
        return {"error": f"ended with status {self.process.returncode}: {last[:160]}"}

    def ask(self):
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return self._read()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def run_case(name, engines, rounds, scale):
    """{engine: {"seconds", "version"} or {"error"}}."""
    report, children = {}, {}
    for engine in engines:
        child = Child(engine, name, scale)
        if "error" in child.hello or not child.hello["good"]:
            report[engine] = {"error": child.hello.get("error") or f"wrong result: {child.hello['told']}"}
            child.close()
        else:
            children[engine] = child
            report[engine] = {"version": child.hello["version"], "seconds": float("inf")}
    for _ in range(rounds):
        for engine, child in children.items():
            said = child.ask()
            if "error" in said:
                report[engine] = said
                continue
            if "seconds" in report[engine]:
                report[engine]["seconds"] = min(report[engine]["seconds"], said["seconds"])
    for child in children.values():
        child.close()
    return report


def shown(seconds):
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.1f} ms"


def installed(engines):
    import importlib.util

    return [name for name in engines if importlib.util.find_spec(name) is not None]


def table(engines, rounds, scale=1.0, wanted=None):
    """The Markdown lines of the group, the versions, and whether gar did all of it rightly."""
    engines = installed([name for name in ENGINES if name in engines])
    peers = [name for name in engines if name != "gar"]
    reports = {}
    for name in wanted or CASES:
        reports[name] = run_case(name, engines, rounds, scale)
        print(f"udf: {name}: {reports[name]}", file=sys.stderr, flush=True)
    lines = [
        "### Python functions",
        "",
        "Time for each batch where there are batches, else of all; then peer / gar. Sums of float64 columns; a class has 50 MB of state. The",
        "start is the time from the call to the first batch in a process.",
        "",
        f"| case | {' | '.join(engines)} | {' | '.join(f'{name} / gar' for name in peers)} |",
        "|---" * (1 + len(engines) + len(peers)) + "|",
    ]
    notes = []
    for name, report in reports.items():
        case = CASES[name]
        calls = case.batches(scale)
        cells = []
        for engine in engines:
            entry = report[engine]
            cells.append(shown(entry["seconds"] / calls) if "seconds" in entry else "-")
            if "error" in entry:
                notes.append(f"- {engine} did not do {case.title}: {entry['error']}")
        for peer in peers:
            both = "seconds" in report[peer] and "seconds" in report.get("gar", {})
            ratio = report[peer]["seconds"] / report["gar"]["seconds"] if both else None
            cells.append(f"**{ratio:.2f}x**" if both else "-")
        lines.append(f"| {case.title} | {' | '.join(cells)} |")
    if {"sleep_1", "sleep_2"} <= reports.keys():
        gains = []
        for engine in engines:
            one, two = (reports[name][engine].get("seconds") for name in ("sleep_1", "sleep_2"))
            if one and two:
                gains.append(f"{engine} {one / two:.2f}x")
        lines += ["", f"Two processes against one at 10 ms a batch: {', '.join(gains)}."]
    if {"actor1_16384", "here_16384"} <= reports.keys() and "daft" in engines:
        ours, theirs = reports["actor1_16384"]["gar"], reports["here_16384"]["daft"]
        if "seconds" in ours and "seconds" in theirs:
            lines += [
                "",
                f"Daft in its own process / gar in a worker process, 16,384 rows a batch: {theirs['seconds'] / ours['seconds']:.2f}x.",
            ]
    versions = {
        engine: entry["version"]
        for report in reports.values()
        for engine, entry in report.items()
        if "version" in entry
    }
    is_good = all("seconds" in report.get("gar", {}) for report in reports.values())
    return [*lines, *([""] if notes else []), *notes, ""], versions, is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows; for short runs")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all by default")
    options = parser.parse_args()
    for name in options.cases:
        if name not in CASES:
            parser.error(f"no such case: {name}; there are {', '.join(CASES)}")
    if options.work:
        work(options.work, CASES[options.cases[0]], options.scale)
        return 0
    lines, _, is_good = table(options.engines.split(","), options.rounds, options.scale, options.cases)
    print("\n".join(lines))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
