#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the demo's data when it is missing and runs the demo: `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(.venv/bin/python tools/make_data.py demo)
exec .venv/bin/python examples/demo.py "$folder"
