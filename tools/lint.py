# SPDX-License-Identifier: Apache-2.0
"""All static checks: `make lint`. Each prints its own faults; the last line says which failed.

  format    clang-format 14 over C and C++, ruff format over Python (checked, not changed)
  layers    tools/check_layers.py
  tidy      tools/tidy.py
  headers   tools/check_headers.py
  reference docs/functions.md is what the function registry says
  python    ruff check
  types     mypy over the package and its stubs
  cppcheck  over src/, cli/ and python/
  clang     clang-tidy 14 over every source of the C build but tests whose text, headers or settings changed since it
            last passed

Usage: lint.py [--fix] [CHECK ...]      --fix rewrites formatting (format, python)
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, ".venv", "bin")
CACHE = os.path.join(ROOT, "build", "lint")
C_TREES = ("src/", "include/", "cli/", "python/", "fuzz/", "examples/c/", "bench/", "tests/")
PYTHON_TREES = ["fuzz", "tools", "tests", "python", "bench", "examples"]


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, **options)


def tracked(*ends):
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).stdout.split("\n")
    return [path for path in listed if path.endswith(ends) and os.path.isfile(os.path.join(ROOT, path))]


def c_files(*ends):
    return [path for path in tracked(*(ends or (".c", ".h", ".cc", ".cpp"))) if path.startswith(C_TREES)]


def report(done):
    """Whether the finished command succeeded; prints what it said when not."""
    if done.returncode != 0:
        print((done.stdout + done.stderr).strip())
    return done.returncode == 0


def check_format(fix):
    mode = ["-i"] if fix else ["--dry-run", "-Werror"]
    good = report(run(["clang-format-14", *mode, *c_files()]))
    mode = [] if fix else ["--check"]
    return report(run([f"{BIN}/ruff", "format", "-q", *mode, *python_trees()])) and good


def python_trees():
    return [tree for tree in PYTHON_TREES if os.path.isdir(os.path.join(ROOT, tree))]


def check_python(fix):
    return report(run([f"{BIN}/ruff", "check", "-q", *(["--fix"] if fix else []), *python_trees()]))


def check_types(_fix):
    if not os.path.isdir(os.path.join(ROOT, "python", "gar")):
        return True
    return report(run([f"{BIN}/mypy", "--no-error-summary", "python/gar"]))


def script(name, *arguments):
    return lambda _fix: report(run([sys.executable, f"tools/{name}.py", *arguments]))


def compile_commands():
    """compile_commands.json of the clang build, configured when needed; {path: entry}."""
    done = run(["tools/build.sh", "asan", "build.ninja"])
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    with open(os.path.join(ROOT, "build", "asan", "compile_commands.json"), encoding="utf8") as file:
        entries = json.load(file)
    return {
        os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT): entry for entry in entries
    }


def check_cppcheck(_fix):
    os.makedirs(os.path.join(CACHE, "cppcheck"), exist_ok=True)
    command = [
        "cppcheck",
        "--enable=warning,performance,portability",
        "--inconclusive",
        "--std=c11",
        "--inline-suppr",
        "--error-exitcode=1",
        "--quiet",
        "--suppressions-list=tools/cppcheck.txt",
        f"--cppcheck-build-dir={CACHE}/cppcheck",
        f"-j{os.cpu_count()}",
        "-Iinclude",
        "-Isrc",
        "-D_GNU_SOURCE",
        # Else gar_simulation() is plainly NULL, and every use of it a null dereference.
        "-DGAR_SANITIZED",
        "-D__x86_64__=1",
        "-D__GNUC__=12",
    ]
    files = [path for path in c_files(".c") if not path.endswith(("_test.c", "_stress.c"))]
    return report(run(command + files))


def fingerprint(path, entry, settings):
    """A hash over the source, every header of ours it includes, the flags and the settings."""
    arguments = [word for word in entry["command"].split() if word.startswith(("-I", "-D", "-std"))]
    listed = subprocess.run(
        ["clang-14" if path.endswith(".c") else "clang++-14", "-MM", *arguments, entry["file"]],
        cwd=entry["directory"],
        text=True,
        capture_output=True,
        check=False,
    ).stdout.replace("\\\n", " ")
    digest = hashlib.sha256((settings + " ".join(arguments)).encode())
    for name in listed.partition(":")[2].split():
        with open(os.path.join(entry["directory"], name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def check_clang(_fix):
    with open(os.path.join(ROOT, ".clang-tidy"), encoding="utf8") as file:
        settings = file.read()
    known_path = os.path.join(CACHE, "clang-tidy.json")
    known = {}
    if os.path.exists(known_path):
        with open(known_path, encoding="utf8") as file:
            known = json.load(file)
    commands = compile_commands()
    files = [
        path
        for path in c_files(".c", ".cc", ".cpp")
        if path in commands and not path.endswith(("_test.c", "_stress.c"))
    ]

    def check(path):
        mark = fingerprint(path, commands[path], settings)
        if known.get(path) == mark:
            return path, mark, ""
        done = run(["clang-tidy-14", "--quiet", "-p", "build/asan", path])
        return path, mark, "" if done.returncode == 0 else done.stdout.strip() or done.stderr.strip()

    good = True
    os.makedirs(CACHE, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, mark, text in pool.map(check, files):
            if text:
                print(text, flush=True)
                good = False
                known.pop(path, None)
            elif known.get(path) != mark:
                # Kept file by file: a run that is ended early need not begin anew.
                known[path] = mark
                with open(f"{known_path}.new", "w", encoding="utf8") as file:
                    json.dump(known, file)
                os.replace(f"{known_path}.new", known_path)
    return good


CHECKS = {
    "format": check_format,
    "layers": script("check_layers"),
    "tidy": script("tidy"),
    "headers": script("check_headers"),
    "reference": script("make_reference", "--check"),
    "python": check_python,
    "types": check_types,
    "cppcheck": check_cppcheck,
    "clang": check_clang,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fix", action="store_true", help="rewrite formatting instead of checking it")
    parser.add_argument(
        "checks", nargs="*", metavar="CHECK", help=f"of {', '.join(CHECKS)}; all when none is given"
    )
    options = parser.parse_args()
    unknown = [name for name in options.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}")
    failed = []
    for name in options.checks or CHECKS:
        started = time.monotonic()
        good = CHECKS[name](options.fix)
        print(f"lint: {name:9s} {'ok' if good else 'FAILED'}  {time.monotonic() - started:.1f} s", flush=True)
        if not good:
            failed.append(name)
    if failed:
        print(f"lint: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
