# SPDX-License-Identifier: Apache-2.0
"""Compare Gar with DuckDB, Polars, Daft and pyarrow: `make bench`.

For each case every engine gets a fresh process with two threads on the same two CPUs. Each is checked
(results must agree) and warmed up once; then the engines take turns, one round each, ROUNDS times.
Reported per engine: least and median wall time, CPU time of the least round, minor page faults of the
last round, peak resident memory over the rounds. The ratio is best peer / gar: above 1 Gar is ahead.
Before anything is measured, memory is touched once, so that no engine pays for the machine's first use.

Usage: bench.py [--rounds N] [--engines a,b] [--out FILE] [CASE ...]
"""

import argparse
import datetime
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import costs  # noqa: E402 (beside this file)
import udf  # noqa: E402 (beside this file)

import cases  # noqa: E402 (beside this file)

ROOT = os.path.dirname(HERE)
DATA = os.environ.get("GAR_DATA", os.path.join(ROOT, ".cache", "data"))
ENGINES = ["gar", "duckdb", "polars", "daft", "pyarrow"]
LIMIT_S = 600
CPU_FLAGS = (
    "sse4_2",
    "avx2",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vbmi",
    "avx512_vbmi2",
    "avx512_bitalg",
)


class Worker:
    """A worker.py process; asks are answered in order."""

    def __init__(self, engine, case):
        self.engine = engine
        environment = {
            **os.environ,
            "POLARS_MAX_THREADS": "2",
            "RAYON_NUM_THREADS": "2",
            "OMP_NUM_THREADS": "2",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.errors = tempfile.TemporaryFile("w+", encoding="utf8")  # noqa: SIM115 (closed in close)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "worker.py"), engine, case, DATA],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )
        self.hello = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.errors.seek(0)
        last = self.errors.read().strip().split("\n")[-1]
        return {"error": f"process ended with status {self.process.returncode}: {last[:160]}"}

    def ask(self, what):
        if self.process.poll() is not None:
            return self.read()
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def touch_memory():
    """Use as much memory once as the largest case will, and give it back."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; b = bytearray(int(sys.argv[1])); b[::4096] = b'x' * len(b[::4096])",
            str(min(8 << 30, available * 6 // 10)),
        ],
        check=False,
    )


def touch_files():
    """Read every input once, so that all come from the page cache."""
    for folder, _, names in os.walk(DATA):
        if os.path.basename(folder) in ("tpch-1", "tpch-1-plain", "csv-1", "h2o", "clicks"):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    while file.read(1 << 24):
                        pass


def run_case(case, engines, rounds):
    """{engine: {version, error | costs}} and whether all results agreed."""
    workers, report = {}, {}
    for engine in engines:
        worker = Worker(engine, case)
        if "version" in worker.hello:
            workers[engine] = worker
            report[engine] = {"version": worker.hello["version"], "rounds": []}
        else:
            worker.close()
            if "absent" not in worker.hello:
                report[engine] = {"error": worker.hello["error"]}
    reference = None
    for engine, worker in list(workers.items()):
        said = worker.ask("check")
        if "error" in said:
            report[engine] = {"version": report[engine]["version"], "error": said["error"]}
            workers.pop(engine).close()
            continue
        if reference is None and engine != "gar":
            reference = said["rows"]
        report[engine]["rows"] = said["rows"]
    for engine in workers:
        rows = report[engine].pop("rows")
        report[engine]["result"] = cases.SAME if reference is None else cases.compare(rows, reference)
        workers[engine].ask("run")
    for _ in range(rounds):
        for engine, worker in list(workers.items()):
            cost = worker.ask("run")
            if "error" in cost:
                report[engine]["error"] = cost["error"]
                workers.pop(engine).close()
            else:
                report[engine]["rounds"].append(cost)
    for worker in workers.values():
        worker.close()
    return report


def run_imports(engines, rounds):
    """Fresh processes that import one package: wall time, peak memory, threads. Bare Python comes first."""
    script = (
        "import os, json\n{}\n"
        "peak = next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print(json.dumps([peak * 1024, len(os.listdir('/proc/self/task'))]))"
    )
    names = ["python", *engines]
    report = {name: {"rounds": []} for name in names}
    for round_number in range(rounds * 3 + 1):
        for name in names:
            line = "pass" if name == "python" else f"import {name}"
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", script.format(line)], capture_output=True, text=True, check=False
            )
            wall = time.perf_counter() - started
            if done.returncode != 0:
                report[name] = {"error": done.stderr.strip().split("\n")[-1][:160], "rounds": []}
            elif round_number > 0:  # the first round fills the page cache
                peak, threads = json.loads(done.stdout)
                report[name]["rounds"].append({"wall_s": wall, "peak_bytes": peak, "threads": threads})
    return report


def least(entry):
    return min(entry["rounds"], key=lambda cost: cost["wall_s"])


def median(entry):
    walls = sorted(cost["wall_s"] for cost in entry["rounds"])
    return walls[len(walls) // 2]


def text_time(seconds, calls):
    each = seconds / calls
    return f"{each * 1000:.3f} ms" if each < 0.01 else f"{each:.3f} s"


def case_table(case, report):
    """The Markdown lines of one case, and its ratio."""
    title, calls = cases.CASES[case]
    lines = [f"### {title}", ""]
    lines += [
        "| engine | least | median | CPU | minor faults | peak | result |",
        "|---|---|---|---|---|---|---|",
    ]
    good = {name: entry for name, entry in report.items() if entry.get("rounds") and "error" not in entry}
    for name, entry in report.items():
        if name not in good:
            lines.append(f"| {name} | - | - | - | - | - | {entry.get('error', 'nothing measured')} |")
            continue
        best = least(entry)
        peak = max(cost["peak_bytes"] for cost in entry["rounds"]) >> 20
        lines.append(
            f"| {name} | {text_time(best['wall_s'], calls)} | {text_time(median(entry), calls)} | "
            f"{text_time(best['cpu_s'], calls)} | {entry['rounds'][-1]['faults']:,} | {peak:,} MiB | "
            f"{entry['result']} |"
        )
    ratio = ratio_of(good)
    lines += ["", ratio["text"], ""]
    return lines, ratio


def ratio_of(good):
    peers = {
        name: least(entry)
        for name, entry in good.items()
        if name != "gar" and entry["result"] != cases.DIFFERS
    }
    if "gar" not in good or not peers:
        return {"text": "No ratio: gar or all peers are missing.", "time": None}
    own = least(good["gar"])
    fastest = min(peers, key=lambda name: peers[name]["wall_s"])
    own_peak = max(cost["peak_bytes"] for cost in good["gar"]["rounds"])
    peaks = {name: max(cost["peak_bytes"] for cost in good[name]["rounds"]) for name in peers}
    smallest = min(peaks, key=peaks.get)
    ratio = {
        "time": peers[fastest]["wall_s"] / own["wall_s"],
        "fastest": fastest,
        "memory": own_peak / peaks[smallest],
        "smallest": smallest,
        "result": good["gar"]["result"],
    }
    ratio["text"] = (
        f"Best peer ({fastest}) / gar: **{ratio['time']:.2f}x**. "
        f"Peak memory gar / least peer ({smallest}): {ratio['memory']:.2f}x."
    )
    return ratio


GROUP_ENGINES = ("gar", "duckdb", "polars", "daft")


def group_cell(entry):
    """Least wall, CPU of that round and peak of one engine; or that it did not do it."""
    if not entry.get("rounds") or "error" in entry:
        return "-"
    best = least(entry)
    peak = max(cost["peak_bytes"] for cost in entry["rounds"]) >> 20
    mark = "" if entry["result"] == cases.SAME else f" {entry['result']}"
    return f"{best['wall_s'] * 1000:.0f} / {best['cpu_s'] * 1000:.0f} ms, {peak:,} MiB{mark}"


def group_table(group, reports):
    """The Markdown lines of a group of queries, whether gar did all of it with equal results, and the mean ratio."""
    title, names = cases.GROUPS[group]
    engines = [name for name in GROUP_ENGINES if any(name in report for report in reports.values())]
    peers = [name for name in engines if name != "gar"]
    lines = [
        f"### {title}",
        "",
        "Least wall time / CPU time, peak memory; then best peer / gar in time and gar / least peer in memory.",
        "",
        f"| query | {' | '.join(engines)} | best peer / gar | best peer | peak gar / least peer |",
        "|---" * (len(engines) + 4) + "|",
    ]
    walls, ratios, refused, is_good = {name: {} for name in engines}, {}, {}, True
    for case, report in reports.items():
        query = names[case]
        good = {name: entry for name, entry in report.items() if entry.get("rounds") and "error" not in entry}
        is_good = is_good and "gar" in good and good["gar"]["result"] == cases.SAME
        for name, entry in report.items():
            if name not in good:
                refused.setdefault((name, entry.get("error", "nothing measured")), []).append(query)
            elif entry["result"] != cases.DIFFERS:
                walls[name][case] = least(entry)["wall_s"]
        ratio = ratio_of(good)
        ratios[case] = ratio
        tail = "- | - | -"
        if ratio["time"] is not None:
            tail = f"**{ratio['time']:.2f}x** | {ratio['fastest']} | {ratio['memory']:.2f}x"
        cells = " | ".join(group_cell(report.get(name, {})) for name in engines)
        lines.append(f"| {query} | {cells} | {tail} |")
    lines += [
        "",
        "| peer | queries | peer's total | gar's total | total / gar's | geometric mean of ratios |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    for name in peers:
        both = [case for case in walls[name] if case in walls.get("gar", {})]
        if both:
            theirs, ours = (sum(walls[engine][case] for case in both) for engine in (name, "gar"))
            to_peer = geometric_mean([walls[name][case] / walls["gar"][case] for case in both])
            lines.append(
                f"| {name} | {len(both)} | {theirs:.3f} s | {ours:.3f} s | {theirs / ours:.2f}x | "
                f"{to_peer:.2f}x |"
            )
    found = [ratio["time"] for ratio in ratios.values() if ratio["time"] is not None]
    mean = geometric_mean(found) if found else None
    if found:
        lines += ["", f"Geometric mean of best peer / gar: **{mean:.2f}x**."]
    if refused:
        lines.append("")
        lines += [
            f"- {name} did not do {', '.join(queries)}: {why}" for (name, why), queries in refused.items()
        ]
    summary = {"title": title, "mean": mean, "least": min(found, default=None), "count": len(found)}
    return [*lines, ""], is_good, summary


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def import_table(report):
    lines = ["### import, whole process", "", "| package | least | over bare Python | peak | threads |"]
    lines += ["|---|---|---|---|---|"]
    bare = least(report["python"])
    for name, entry in report.items():
        if not entry["rounds"]:
            lines.append(f"| {name} | - | - | - | {entry.get('error', '')} |")
            continue
        best = least(entry)
        lines.append(
            f"| {name} | {best['wall_s'] * 1000:.1f} ms | {(best['wall_s'] - bare['wall_s']) * 1000:.1f} ms | "
            f"{best['peak_bytes'] / (1 << 20):.1f} MiB | {best['threads']} |"
        )
    lines.append("")
    if report.get("gar", {}).get("rounds") and report.get("duckdb", {}).get("rounds"):
        own = least(report["gar"])["wall_s"] - bare["wall_s"]
        peer = least(report["duckdb"])["wall_s"] - bare["wall_s"]
        lines += [
            f"What DuckDB's import adds / what gar's import adds: **{peer / max(own, 1e-9):.2f}x**.",
            "",
        ]
    return lines


def machine_lines(versions, load):
    model, flags = "unknown", []
    with open("/proc/cpuinfo", encoding="utf8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            if key.strip() == "flags":
                flags = [flag for flag in CPU_FLAGS if flag in value.split()]
                break
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = int(file.readline().split()[1]) >> 20
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [
        f"- Date: {datetime.date.today().isoformat()}",
        f"- Versions: {named}; Python {platform.python_version()}",
        f"- Machine: {model}, {os.cpu_count()} CPUs, {memory} GiB, Linux {platform.release()}; two threads each",
        f"- CPU features: {' '.join(flags)}",
        f"- Load of the machine before the first case: {load:.1f} (0 is a quiet machine)",
    ]


def summary_table(ratios):
    lines = ["| case | best peer / gar | best peer | peak gar / least peer |", "|---|---|---|---|"]
    for case, ratio in ratios.items():
        title = cases.CASES[case][0]
        if ratio["time"] is None:
            lines.append(f"| {title} | - | - | - |")
        else:
            mark = "" if ratio["result"] == cases.SAME else f" (result {ratio['result']})"
            lines.append(
                f"| {title} | {ratio['time']:.2f}x{mark} | {ratio['fastest']} | {ratio['memory']:.2f}x |"
            )
    return lines


INTRO = """# Benchmarks

Written by `make bench`; every number is from one run on one machine, the losing cases too. Only ratios mean
anything on another machine. Each engine runs in its own process with two threads on the same two CPUs, is
checked and warmed up, then takes turns with the others; the least wall time counts. "Minor faults" are those of
the last round, "peak" is the resident high-water mark over the rounds, all of the process. Ratios above 1.00x
mean that Gar is ahead in time; below 1.00x for memory that it needs less. Results are compared with DuckDB's:
"same" is every digit of a decimal and nine of a float; "rounded" is a decimal that agrees to six digits only
(Polars rounds products of decimals to two digits).

Daft cannot read Parquet files whose Arrow schema says string_view, which `tpchgen-cli` writes: it reads the same
rows rewritten with plain strings. pyarrow takes part where it has a way of its own. How each case is spelled in
each engine: `bench/engines.py`.

TPC-H: Gar's programs and the SQL of DuckDB and Daft state the joins in the order of the specification; Polars
keeps the order it is given, so its frames are written with a good one, and with shorter forms of queries 2, 10, 17,
18, 20 and 21 (`bench/tpch`). The tables of the groups h2o and clicks are made from seeds (`bench/analytics`); results go to
Arrow.
"""


def group_lines(groups):
    """What the groups of queries come to."""
    lines = [""] if groups else []
    for group in groups:
        if group["mean"] is not None:
            lines.append(
                f"- {group['title']}: geometric mean of best peer / gar over {group['count']} queries "
                f"{group['mean']:.2f}x, the least {group['least']:.2f}x"
            )
    return lines


def pick(names):
    """Cases and groups in order; single queries of groups as {group: [query, ...]}."""
    wanted, picked = [], {}
    for name in names:
        group = next((g for g, (_, queries) in cases.GROUPS.items() if name in queries), None)
        if group is not None:
            picked.setdefault(group, []).append(name)
        if (group or name) not in wanted:
            wanted.append(group or name)
    return wanted, picked


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--out", help="write the report to this Markdown file")
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"of {', '.join([*cases.CASES, *cases.GROUPS, 'import', 'costs', 'udf'])}, or of a group; all by default",
    )
    options = parser.parse_args()
    engines = options.engines.split(",")
    known = [*cases.CASES, *cases.GROUPS, "import", "costs", "udf"]
    wanted, picked = pick(options.cases or known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    load = os.getloadavg()[0]
    touch_memory()
    touch_files()
    body, ratios, groups, versions, is_good = [], {}, [], {}, True
    for case in wanted:
        if case == "import":
            lines = import_table(run_imports(engines, options.rounds))
        elif case == "costs":
            lines = costs.table(engines, DATA)
        elif case == "udf":
            lines, found, is_equal = udf.table([*engines, "ray"], options.rounds)
            versions.update(found)
            is_good = is_good and is_equal
        elif case in cases.GROUPS:
            taking_part = [name for name in engines if name in GROUP_ENGINES]
            queries = picked.get(case) or cases.GROUPS[case][1]
            reports = {query: run_case(query, taking_part, options.rounds) for query in queries}
            for report in reports.values():
                versions.update({name: e["version"] for name, e in report.items() if "version" in e})
            lines, is_equal, summary = group_table(case, reports)
            groups.append(summary)
            is_good = is_good and is_equal
        else:
            report = run_case(case, engines, options.rounds)
            versions.update({name: entry["version"] for name, entry in report.items() if "version" in entry})
            lines, ratios[case] = case_table(case, report)
            is_good = (
                is_good
                and "gar" in report
                and "error" not in report["gar"]
                and report["gar"].get("result") == cases.SAME
            )
        print("\n".join(lines), flush=True)
        body += lines
    head = [
        INTRO,
        *machine_lines(versions, load),
        "",
        *(["## Ratios", "", *summary_table(ratios), *group_lines(groups), ""] if ratios else []),
        "## Cases",
        "",
    ]
    print("\n".join(head[1:-2]))
    if options.out:
        with open(options.out, "w", encoding="utf8") as file:
            file.write("\n".join(head + body).rstrip("\n") + "\n")
        print(f"\nwritten to {options.out}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
