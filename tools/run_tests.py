# SPDX-License-Identifier: Apache-2.0
"""All tests, one runner after the other: `make test` and `make test-long`.

  tools    pytest over tests/tools: the scripts of tools/ themselves
  unit     C unit tests, clang, ASan + UBSan + leak check
  fuzz     the kept inputs of every fuzz target, same build
  sim      simulated sessions of the runtime, one seed each: 500, with --long 10,000
  tsan     C stress programs under ThreadSanitizer
  library  the release build's own tests: C examples, symbols of libgar.so
  package  pytest over tests/package: the installed C library, the wheel
  cli      pytest over tests/cli: the command gar
  python   pytest over tests/python, and over its `settings` tests again under each hostile setting; as many
           processes at once as there are CPUs, each with some of the files

Each runner writes everything it says to build/logs/NAME.log and one line to the screen; faults are
repeated there. The last line on stdout is 'N passed, N failed, N skipped' over all runners. The
exit status is 0 only when nothing failed and something ran in every runner.

Usage: run_tests.py [--long] [RUNNER ...]
Seeds and counts come from the environment: GAR_TEST_SEED, GAR_TEST_EXAMPLES (hypothesis),
GAR_TEST_FUZZ_SECONDS (for each target, --long).
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build", "logs")
BIN = os.path.join(ROOT, ".venv", "bin")

# Hostile settings, as the engine's own environment variables. They go over the tests marked
# `settings` only: those keep their data small.
SETTINGS = {
    "morsel-1": {"GAR_MORSEL_ROWS": "1"},
    "morsel-7-no-inline": {"GAR_MORSEL_ROWS": "7", "GAR_INLINE": "0"},
    "one-thread-no-inline": {"GAR_NUM_THREADS": "1", "GAR_INLINE": "0"},
    "four-threads-no-inline": {"GAR_NUM_THREADS": "4", "GAR_INLINE": "0"},
}
SETTINGS_LONG = {
    "portable-kernels": {"GAR_ISA": "portable", "GAR_INLINE": "0"},
    "avx2-kernels": {"GAR_ISA": "avx2", "GAR_INLINE": "0"},
    "morsel-1-four-threads": {"GAR_MORSEL_ROWS": "1", "GAR_NUM_THREADS": "4", "GAR_INLINE": "0"},
}


PYTHON_GROUPS = 6
SIM_SEEDS_LONG = 10000
KILLS_LONG = 1000
TSAN_RUNS_LONG = 10


class Tally:
    """What one runner found."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.faults = []

    def add(self, passed=0, failed=0, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped

    def fault(self, text):
        """Count a failure that is no test case of its own: a build, a crash, a lost report."""
        self.failed += 1
        self.faults.append(text)


def run_logged(name, command, environment=None, append=False, limit_s=1500):
    """Run a command with its output in build/logs/NAME.log; its exit status, 124 when it ran too long."""
    os.makedirs(LOGS, exist_ok=True)
    with open(os.path.join(LOGS, f"{name}.log"), "a" if append else "w", encoding="utf8") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        try:
            return subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                timeout=limit_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            log.write(f"\nran longer than {limit_s} s\n")
            return 124


def log_tail(name, count=40):
    with open(os.path.join(LOGS, f"{name}.log"), encoding="utf8", errors="replace") as log:
        return "".join(log.readlines()[-count:])


def read_cases(output):
    """(passed, failed, skipped) test cases of one cmocka program."""
    passed = sum(int(number) for number in re.findall(r"^\[  PASSED  \] (\d+) test", output, re.MULTILINE))
    failed = sum(
        int(number) for number in re.findall(r"^\[  FAILED  \] \w+: (\d+) test", output, re.MULTILINE)
    )
    skipped = sum(
        int(number) for number in re.findall(r"^\[  SKIPPED \] \w+: (\d+) test", output, re.MULTILINE)
    )
    return passed, failed, skipped


def run_meson(tally, name, kind, suite, targets, extra=None):
    """Build and run one suite of one build; count cmocka cases, or the program where it prints none."""
    log = f"{name}-build"
    if run_logged(log, ["tools/build.sh", kind, *targets]) != 0:
        tally.fault(f"the {kind} build failed:\n{log_tail(log)}")
        return
    status = run_logged(
        name,
        [
            f"{BIN}/meson",
            "test",
            "-C",
            f"build/{kind}",
            "--no-rebuild",
            "--suite",
            suite,
            "--logbase",
            f"gar-{suite}",
        ],
        environment={"MESON_TESTTHREADS": str(os.cpu_count()), **(extra or {})},
    )
    report = os.path.join(ROOT, "build", kind, "meson-logs", f"gar-{suite}.json")
    seen = 0
    if os.path.exists(report):
        with open(report, encoding="utf8") as file:
            for line in file:
                seen += 1
                read_program(tally, json.loads(line))
    if seen == 0:
        tally.fault(f"no {suite} test ran:\n{log_tail(name)}")
    elif status != 0 and tally.failed == 0:
        tally.fault(f"meson test failed:\n{log_tail(name)}")


def read_program(tally, entry):
    """Add one program of meson's test log."""
    output = entry.get("stdout", "") + entry.get("stderr", "")
    passed, failed, skipped = read_cases(output)
    if entry["result"] in ("OK", "EXPECTEDFAIL"):
        tally.add(passed=passed or (0 if skipped else 1), skipped=skipped)
    elif entry["result"] == "SKIP":
        tally.add(skipped=1)
    else:
        tally.add(passed=passed, failed=failed, skipped=skipped)
        text = "\n".join(output.strip().split("\n")[-60:])
        tally.faults.append(f"{entry['name']}: {entry['result']} (exit status {entry['returncode']})\n{text}")
        if failed == 0:
            tally.add(failed=1)


def test_targets(kind, suite):
    """The programs of one suite: they are built only when tested."""
    log = f"targets-{kind}"
    if run_logged(log, ["tools/build.sh", kind, "build.ninja"]) != 0:
        return None
    listed = subprocess.run(
        [f"{BIN}/meson", "introspect", "--tests", f"build/{kind}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    programs = set()
    for test in json.loads(listed):
        if f"gar:{suite}" in test["suite"] or suite in test["suite"]:
            programs.add(os.path.relpath(test["cmd"][0], os.path.join(ROOT, "build", kind)))
    return sorted(program for program in programs if not program.startswith(".."))


def run_suite(name, kind, suite):
    tally = Tally()
    targets = test_targets(kind, suite)
    if targets is None:
        tally.fault(f"cannot configure build/{kind}:\n{log_tail(f'targets-{kind}')}")
    elif not targets:
        tally.fault(f"no test is registered in suite {suite}")
    else:
        run_meson(tally, name, kind, suite, targets)
    return tally


def run_pytest(tally, name, arguments, environment=None, limit_s=1500):
    """One pytest run, counted from its JUnit report."""
    report = os.path.join(LOGS, f"{name}.xml")
    if os.path.exists(report):
        os.remove(report)
    command = [f"{BIN}/python", "-m", "pytest", "-q", "-ra", "--durations=12", f"--junitxml={report}"]
    command += arguments
    status = run_logged(name, command, environment, limit_s=limit_s)
    if not os.path.exists(report):
        tally.fault(f"{name}: pytest ended with status {status} and no report:\n{log_tail(name)}")
        return
    failed = read_junit(tally, name, report)
    if status != 0 and failed == 0:
        tally.fault(f"{name}: pytest ended with status {status}:\n{log_tail(name)}")


def read_junit(tally, name, report):
    """Add a JUnit report; the number of failed cases."""
    failures = 0
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error")]
        if bad:
            failures += 1
            title = f"{case.get('classname', '')}::{case.get('name', '')}"
            text = "\n".join((bad[0].text or bad[0].get("message", "")).strip().split("\n")[-25:])
            tally.faults.append(f"{name}: {title}\n{text}")
            tally.add(failed=1)
        elif any(child.tag == "skipped" for child in case):
            tally.add(skipped=1)
        else:
            tally.add(passed=1)
    return failures


def run_tools(_long):
    tally = Tally()
    run_pytest(tally, "tools", ["tests/tools"])
    return tally


def run_unit(long):
    """With --long a pool of actors loses a thousand processes, not fifty."""
    tally = run_suite("unit", "asan", "unit")
    if long and not tally.failed:
        program = os.path.join(ROOT, "build", "asan", "tests", "actors_pool_test")
        if run_logged("kills", [program], {"GAR_TEST_KILLS": str(KILLS_LONG)}) == 0:
            tally.add(passed=1)
        else:
            tally.fault(log_tail("kills"))
    return tally


def run_sim(long):
    """The first seeds in one program of the build's own suite; with --long more, on all CPUs."""
    tally = run_suite("sim", "asan", "sim")
    if not long or tally.failed:
        return tally
    program = os.path.join(ROOT, "build", "asan", "tests", "sim")
    jobs = os.cpu_count() or 1
    each = -(-SIM_SEEDS_LONG // jobs)
    runs = []
    for job in range(jobs):
        command = [program, "--first", str(1 + job * each), "--count", str(each)]
        runs.append(
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    for run in runs:
        output = run.communicate()[0]
        with open(os.path.join(LOGS, "sim.log"), "a", encoding="utf8") as log:
            log.write(output)
        if run.returncode == 0:
            tally.add(passed=1)
        else:
            tally.fault("\n".join(output.strip().split("\n")[-40:]))
    return tally


def run_tsan(long):
    """With --long in many other ways too: the number mixes into every program's random schedule."""
    tally = run_suite("tsan", "tsan", "tsan")
    for number in range(1, TSAN_RUNS_LONG + 1) if long and not tally.failed else ():
        targets = test_targets("tsan", "tsan")
        run_meson(tally, f"tsan-{number}", "tsan", "tsan", targets, {"GAR_TEST_POINTS": str(number)})
    return tally


def run_fuzz(long):
    tally = run_suite("fuzz", "asan", "fuzz")
    if long:
        seconds = int(os.environ.get("GAR_TEST_FUZZ_SECONDS", "300"))
        if run_logged("fuzz-build", ["tools/build.sh", "fuzz"]) != 0:
            tally.fault(f"the fuzz build failed:\n{log_tail('fuzz-build')}")
            return tally
        for program in sorted(glob.glob(os.path.join(ROOT, "build", "fuzz", "fuzz", "*_fuzz"))):
            search_inputs(tally, program, seconds)
    return tally


def search_inputs(tally, program, seconds):
    """Let one libFuzzer target search; new inputs stay in build/corpus, crashes in build/crashes."""
    name = os.path.basename(program).removesuffix("_fuzz")
    found, crashes = (os.path.join(ROOT, "build", kind, name) for kind in ("corpus", "crashes"))
    os.makedirs(found, exist_ok=True)
    os.makedirs(crashes, exist_ok=True)
    command = [program, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=65536"]
    command += [f"-artifact_prefix={crashes}/", found, os.path.join(ROOT, "fuzz", "corpus", name)]
    if run_logged(f"fuzz-{name}", command, limit_s=seconds + 300) == 0:
        tally.add(passed=1)
    else:
        tally.fault(f"fuzz target {name}; its input is in {crashes}:\n{log_tail(f'fuzz-{name}')}")


def build_release(tally):
    if run_logged("release-build", ["tools/build.sh", "release"]) == 0:
        return True
    tally.fault(f"the release build failed:\n{log_tail('release-build')}")
    return False


def run_library(_long):
    tally = Tally()
    if build_release(tally):
        run_meson(tally, "library", "release", "library", test_targets("release", "library"))
    return tally


def make_data(tally):
    if run_logged("data", [f"{BIN}/python", "tools/make_data.py", "test"]) == 0:
        return True
    tally.fault(f"cannot make the test data:\n{log_tail('data')}")
    return False


def run_package(_long):
    tally = Tally()
    if build_release(tally):
        run_pytest(tally, "package", ["tests/package", "-o", "timeout=900"])
    return tally


def run_cli(_long):
    tally = Tally()
    if build_release(tally) and make_data(tally):
        run_pytest(tally, "cli", ["tests/cli"])
    return tally


def run_python(long):
    tally = Tally()
    if not build_release(tally) or not make_data(tally):
        return tally
    extra = (
        {"GAR_TEST_LONG": "1", "GAR_TEST_EXAMPLES": os.environ.get("GAR_TEST_EXAMPLES", "1000")}
        if long
        else {}
    )
    limit_s = 3600 if long else 1200
    jobs = [(f"python-{number}", files, extra) for number, files in enumerate(file_groups(), 1)]
    for name, environment in {**SETTINGS, **(SETTINGS_LONG if long else {})}.items():
        jobs.append((f"python-{name}", ["tests/python", "-m", "settings"], {**environment, **extra}))

    def run(job):
        own = Tally()
        name, arguments, environment = job
        run_pytest(own, name, arguments, environment, limit_s)
        return own

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for own in pool.map(run, jobs):
            tally.add(own.passed, own.failed, own.skipped)
            tally.faults += own.faults
    return tally


def file_groups():
    """The files of tests/python in groups of about the same size, those with large files first."""
    files = sorted(glob.glob(os.path.join(ROOT, "tests", "python", "test_*.py")), key=os.path.getsize)
    groups = [[0, []] for _ in range(PYTHON_GROUPS)]
    for path in reversed(files):
        smallest = min(groups, key=lambda group: group[0])
        smallest[0] += os.path.getsize(path)
        smallest[1].append(os.path.relpath(path, ROOT))
    return [sorted(names) for _, names in groups if names]


RUNNERS = {
    "tools": run_tools,
    "unit": run_unit,
    "fuzz": run_fuzz,
    "sim": run_sim,
    "tsan": run_tsan,
    "library": run_library,
    "package": run_package,
    "cli": run_cli,
    "python": run_python,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--long", action="store_true", help="more seeds, more settings, time for each fuzz target"
    )
    parser.add_argument(
        "runners", nargs="*", metavar="RUNNER", help=f"of {', '.join(RUNNERS)}; all when none is given"
    )
    options = parser.parse_args()
    unknown = [name for name in options.runners if name not in RUNNERS]
    if unknown:
        parser.error(f"no such runner: {', '.join(unknown)}")
    total = Tally()
    for name in options.runners or RUNNERS:
        print(f"test: {name} ...", flush=True)
        started = time.monotonic()
        tally = RUNNERS[name](options.long)
        if tally.passed + tally.failed + tally.skipped == 0:
            tally.fault("nothing ran")
        for fault in tally.faults:
            print(f"FAILED {fault}\n", flush=True)
        print(
            f"test: {name}: passed {tally.passed}, failed {tally.failed}, skipped {tally.skipped}, "
            f"{time.monotonic() - started:.0f} s (build/logs/{name}*.log)",
            flush=True,
        )
        total.add(tally.passed, tally.failed, tally.skipped)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
