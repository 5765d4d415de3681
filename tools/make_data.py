# SPDX-License-Identifier: Apache-2.0
"""Make TPC-H data with tpchgen-cli in .cache/data; what is there already is left alone.

  demo, test   scale factor 0.1, all tables, Parquet        -> tpch-0.1/   (about 35 MB)
  bench        scale factor 1, all tables, Parquet          -> tpch-1/     (about 330 MB)
               lineitem at scale factor 1, CSV              -> csv-1/      (731 MB)

Usage: make_data.py demo|test|bench. Prints the folders.
"""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.environ.get("GAR_DATA", os.path.join(ROOT, ".cache", "data"))
SETS = {
    "tpch-0.1": ["parquet", "-s", "0.1"],
    "tpch-1": ["parquet", "-s", "1"],
    "csv-1": ["csv", "-s", "1", "-T", "lineitem"],
}
WANTED = {"demo": ["tpch-0.1"], "test": ["tpch-0.1"], "bench": ["tpch-1", "csv-1"]}


def generator():
    """The tpchgen-cli beside this Python, else the first on the path."""
    beside = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    found = beside if os.path.exists(beside) else shutil.which("tpchgen-cli")
    if found is None:
        raise SystemExit("make_data.py: tpchgen-cli is not installed: pip install tpchgen-cli==4.0.0")
    return found


def make(name):
    """Make one set under a hidden name and rename it, so that half a set is never used."""
    folder = os.path.join(DATA, name)
    if not os.path.isdir(folder):
        print(f"making {folder}", file=sys.stderr, flush=True)
        staged = os.path.join(DATA, f".{name}.{os.getpid()}")
        shutil.rmtree(staged, ignore_errors=True)
        os.makedirs(staged)
        subprocess.run([generator(), *SETS[name], "-o", staged], check=True, stdout=subprocess.DEVNULL)
        os.replace(staged, folder)
    return folder


def main(argv):
    if len(argv) != 2 or argv[1] not in WANTED:
        print("usage: make_data.py " + "|".join(WANTED), file=sys.stderr)
        return 2
    for name in WANTED[argv[1]]:
        print(make(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
