# SPDX-License-Identifier: Apache-2.0
"""Check that a shared library shows gar_* and nothing else, and that it shows something.

Usage: check_symbols.py LIBRARY
"""

import subprocess
import sys


def main(argv):
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", argv[1]], check=True, capture_output=True, text=True
    ).stdout
    names = [line.split()[-1].split("@")[0] for line in listed.splitlines()]
    foreign = [name for name in names if not name.startswith("gar_")]
    for name in foreign:
        print(f"{argv[1]}: shows {name}")
    if not names:
        print(f"{argv[1]}: shows no symbol")
    print(f"{len(names)} symbols")
    return 1 if foreign or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
