# SPDX-License-Identifier: Apache-2.0
# The commands of daily work. Each one installs what it lacks first; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build demo test test-sim test-long test-gpu bench lint clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the library, the command line and the Python package (build/release)
	@tools/build.sh release

demo: build ## Run the examples: TPC-H, actors on GPUs, a neural network over files
	@tools/demo.sh

test: ## Run all tests: C (ASan+UBSan), stress (TSan), fuzz inputs, Python
	@tools/setup.sh test
	@.venv/bin/python tools/run_tests.py

test-long: ## The same with more seeds, more settings and time for each fuzz target
	@tools/setup.sh test
	@.venv/bin/python tools/run_tests.py --long

test-sim: ## Run 10,000 simulated sessions, one seed each (build/asan/tests/sim --seed N --trace replays)
	@tools/setup.sh test
	@.venv/bin/python tools/run_tests.py --long sim

test-gpu: build ## Compare with CUDA on a machine with an NVIDIA GPU; skipped elsewhere
	@tools/setup.sh test
	@.venv/bin/python -m pytest -q -ra tests/gpu

bench: ## Compare with DuckDB, Polars, Daft and pyarrow; writes docs/benchmarks.md
	@bench/bench.sh

lint: ## Check format, layers, headers and house rules; static analysis
	@tools/setup.sh lint
	@.venv/bin/python tools/lint.py

clean: ## Remove build output (.venv and downloaded data stay)
	rm -rf build dist
