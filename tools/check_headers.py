# SPDX-License-Identifier: Apache-2.0
"""Check that every header compiles alone and twice: src/ as C17, include/gar also as C++11 to C++20.

Headers named *_priv.h are checked too. What must not be included alone is a `.inc` or `.def`, or is named *_body.h: code
that some source includes once, or several sources each under its own macros. Bodies are formatted as all code is.
Usage: check_headers.py [ROOT]
"""

import concurrent.futures
import os
import subprocess
import sys

FLAGS = ["-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-Isrc", "-x"]


def jobs_of(root):
    """(header, language flags) of every compilation to try."""
    for top in ("src", "include"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith(".h") or name.endswith("_body.h"):
                    continue
                path = os.path.relpath(os.path.join(folder, name), os.path.join(root, top))
                yield path, ["c", "-std=c17"]
                if top == "include":
                    for version in ("11", "14", "17", "20"):
                        yield path, ["c++", f"-std=c++{version}"]


def compile_alone(root, path, language):
    """None, or the compiler's first lines about it."""
    compiler = "gcc" if language[0] == "c" else "g++"
    text = f'#include "{path}"\n#include "{path}"\ntypedef int gar_check_headers_unit;\n'
    done = subprocess.run(
        [compiler, *FLAGS, *language, "-"], input=text, text=True, cwd=root, capture_output=True, check=False
    )
    if done.returncode == 0:
        return None
    return f"{path} ({language[1]}): " + "\n  ".join(done.stderr.strip().split("\n")[:6])


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    jobs = list(jobs_of(root))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for fault in pool.map(lambda job: compile_alone(root, *job), jobs) if fault]
    for fault in faults:
        print(fault)
    if not faults:
        print(f"headers: {len(jobs)} compilations, ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
