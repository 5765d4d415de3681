#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up the benchmark's own environment (.venv-bench: gar from this tree by pip, the newest peers),
# its data, and runs bench.py: `make bench`.
#
# Usage: bench/bench.sh [ARGUMENT OF bench.py ...]     without a case the report goes to docs/benchmarks.md
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh build
mkdir -p build/logs
bin=.venv-bench/bin

if [ "$(cat .venv-bench/.stamp-python 2>/dev/null || true)" != "$(cat .venv/.stamp-python)" ]; then
    rm -rf .venv-bench
    "$(cut -d' ' -f1 .venv/.stamp-python)" -m venv .venv-bench
    cp .venv/.stamp-python .venv-bench/.stamp-python
fi
quiet_pip() {
    $bin/python -m pip install -q --disable-pip-version-check --no-input "$@" >build/logs/bench-pip.log 2>&1 ||
        { tail -n 40 build/logs/bench-pip.log >&2; exit 1; }
}
# The newest peers, asked for once a day.
today=$(date +%F)
if [ "$(cat .venv-bench/.stamp-peers 2>/dev/null || true)" != "$today" ]; then
    echo "bench: installing the newest peers" >&2
    quiet_pip --upgrade --upgrade-strategy eager -r bench/requirements.txt
    echo "$today" >.venv-bench/.stamp-peers
fi
# Gar as a user would install it, when anything it is made of has changed.
state=$(git ls-files -z --cached --others --exclude-standard -- src include python cli meson.build meson.options pyproject.toml |
    xargs -0 sha256sum 2>/dev/null | sha256sum)
if [ "$(cat .venv-bench/.stamp-gar 2>/dev/null || true)" != "$state" ]; then
    echo "bench: installing gar from this tree" >&2
    quiet_pip --force-reinstall --no-deps --config-settings=build-dir=build/wheel .
    echo "$state" >.venv-bench/.stamp-gar
fi
data=$PWD/.cache/data
.venv/bin/python tools/make_data.py bench >/dev/null
$bin/python bench/prepare.py "$data"
$bin/python bench/analytics/make.py "$data"

# Away from the tree, so that `import gar` finds the installed package.
arguments=("$@")
[ $# -gt 0 ] || arguments=(--out "$PWD/docs/benchmarks.md")
root=$PWD
cd build
GAR_DATA=$data exec "$root/$bin/python" "$root/bench/bench.py" "${arguments[@]}"
