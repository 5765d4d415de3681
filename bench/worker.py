# SPDX-License-Identifier: Apache-2.0
"""One engine, one case, one process: runs a round each time a line arrives, and says what it cost.

Usage: worker.py ENGINE CASE DATA     lines on standard input: check | run;  answers: one JSON line each
"""

import functools
import gc
import json
import os
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases
import engines


def reset_peak():
    """Let the kernel's high-water mark of resident memory start anew."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def measure(call):
    """Run once; its result and what it cost."""
    gc.collect()
    reset_peak()
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    result = call()
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    return result, {
        "wall_s": wall,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "faults": after.ru_minflt - before.ru_minflt,
        "peak_bytes": peak_bytes(),
    }


def main(argv):
    # The protocol keeps the real standard output; whatever an engine prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf8")
    os.dup2(2, 1)
    name, case, data = argv[1:4]

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    engine_type = engines.ENGINES[name]
    method, arguments = cases.method_of(case)
    if not hasattr(engine_type, method):
        answer({"absent": True})
        return 0
    try:
        engine = engine_type(data)
        answer({"version": engine.version()})
    except ImportError as error:
        answer({"error": f"not installed: {error}"})
        return 0
    call = functools.partial(getattr(engine, method), *arguments)
    for line in sys.stdin:
        try:
            if line.strip() == "check":
                engine.check = True
                rows = cases.canonical(call())
                engine.check = False
                answer({"rows": rows})
            else:
                result, cost = measure(call)
                del result
                answer(cost)
        except Exception as error:  # the engine's own refusal is a result of the benchmark
            answer({"error": f"{type(error).__name__}: {error}".split("\n")[0][:200]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
