#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the demo's data when it is missing and runs the demo: `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh demo
folder=$(.venv/bin/python tools/make_data.py demo)
.venv/bin/python examples/demo.py "$folder"
CUDA_VISIBLE_DEVICES=3,4,5,6 .venv/bin/python examples/place_actors.py
.venv/bin/python examples/classify_files.py --out build/demo/kinds cli docs examples python src tests tools
