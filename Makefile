# Works from a bare clone with Python 3.11+ and pip: every target makes its own .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests run on this many processes, in the order that tests/conftest.py gives them (--dist loadgroup): one more than CI has
# cores, because tests wait for Spark.
JOBS ?= 3

# Spark starts its Python workers by this name, and must find the packages of .venv there.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup java demo test pytest test-large lint format types layers bench bench-full bench-compare bench-check bench-report soak kill-rounds docs notebooks wheel check clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) java ## Make .venv with everything in it, and check for Java 17+

# The virtual environment is made when it is missing and brought up to date when pyproject.toml has changed.
# The second way of making it is for systems that package Python without ensurepip. uv installs in half a minute, pip in
# two; pip is there if uv cannot be had.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Streamsift needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Name another one: make setup PYTHON=python3.12")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || \
		{ $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install pip; }
	{ $(BIN)/python -m pip install --quiet uv && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]'; } || \
		$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

java:
	@sh scripts/check_java.sh

demo: setup ## Three generated data sets, queries on Spark: plan, matches, throughput
	$(BIN)/streamsift demo

# Types and layers are checked beside the first tests, on what these leave of two cores.
test: setup lint ## Everything CI runs: lint, types, layers, tests
	@$(MAKE) --no-print-directory -j 3 types layers pytest

# The cases compile the kernels, each in one process; the others find them compiled.
pytest:
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup tests/test_cases.py
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --ignore tests/test_cases.py

# Every test that generates queries or streams has a larger share of them in this profile.
LARGE_TESTS := tests/generated/test_*.py tests/api/test_limits.py tests/api/test_many.py tests/physical/test_keys.py \
	tests/runtime/detect/test_joins.py tests/runtime/rank/test_kept_joins.py tests/runtime/stream/test_window_totals.py \
	tests/spark/batch/test_cases_on_spark.py tests/spark/batch/test_generated_on_spark.py \
	tests/spark/batch/test_ranking_on_spark.py tests/spark/distribute/test_*.py tests/spark/share/test_many_on_spark.py \
	tests/spark/stream/test_stateful.py tests/spark/stream/test_generated_streams_on_spark.py \
	tests/spark/stream/test_cases_on_streams.py tests/spark/stream/test_kill_rounds.py

test-large: setup ## The generated tests with many more examples: 20,000 streams, 1,000 queries and 300 streams on Spark; hours
	STREAMSIFT_HYPOTHESIS=large $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(wildcard $(LARGE_TESTS))

lint: $(STAMP) ## Style (ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## Rewrite the code in the house format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## Types (mypy, strict on src)
	$(BIN)/mypy

layers: $(STAMP) ## Which package may import which (import-linter)
	$(BIN)/lint-imports --no-cache

bench: setup ## Benchmarks in minutes: ratios, after checking that results are equal, and PERFORMANCE.md from them
	$(BIN)/python -m benchmarks run
	$(BIN)/python -m benchmarks report

bench-full: setup ## All benchmarks, three times the events, seven repetitions: hours
	$(BIN)/python -m benchmarks run --full --scale 3
	$(BIN)/python -m benchmarks run rivals --cores 2 --repetitions 7
	$(BIN)/python -m benchmarks report

# Two folders of records, as benchmarks/results is one.
A ?= benchmarks/results.before
B ?= benchmarks/results

bench-compare: setup ## Ratios of two runs with noise bands: A=folder B=folder
	$(BIN)/python -m benchmarks compare $(A) $(B)

bench-check: setup ## Fail when a kernel has become 30 % slower, measured against frozen loops
	$(BIN)/python -m benchmarks check

bench-report: $(STAMP) ## Write PERFORMANCE.md and the README's speed table from benchmarks/results
	$(BIN)/python -m benchmarks report

# How long the soak runs, and how often a stream is killed.
MINUTES ?= 30
ROUNDS ?= 50

soak: setup ## A stream at a steady rate for MINUTES=30: state, memory and trigger time must not grow
	$(BIN)/python -m benchmarks.stream.soak $(MINUTES)

kill-rounds: setup ## ROUNDS=50 times SIGKILL for a stream's driver or worker: its sink must hold the batch answer
	$(BIN)/python tests/support/kill_rounds.py --rounds $(ROUNDS)

docs: $(STAMP) ## Build the documentation in site/: generate the reference, check links and queries; a warning is an error
	$(BIN)/python scripts/make_reference.py
	$(BIN)/python scripts/check_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

notebooks: $(STAMP) ## Make the notebooks in examples/ anew, from the scripts beside them, and run them
	$(BIN)/python -m pip install --quiet --editable '.[dev,notebooks]'
	$(BIN)/python scripts/make_notebooks.py

wheel: $(STAMP) ## Build the package, install it in a clean environment and run the demo there
	sh scripts/check_wheel.sh $(BIN)/python

check: lint types layers docs test ## All of the above, before a commit

clean: ## Remove .venv, caches and build outputs
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
