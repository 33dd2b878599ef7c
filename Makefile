# Works from a bare clone with Python 3.11+ and pip: every target creates .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Number of test processes: one more than CI has cores, because tests wait for Spark. tests/conftest.py sets their order.
JOBS ?= 3

# Spark starts its Python workers with this interpreter; they need the packages of .venv.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup java demo test pytest test-large test-matrix lint format types layers bench bench-full bench-compare bench-check bench-report soak kill-rounds docs notebooks wheel check clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with all dependencies; Java is needed only to run Spark

# Create the virtual environment if it is missing; update it if pyproject.toml has changed. The second command is for
# systems that package Python without ensurepip. uv takes half a minute, pip two; pip is the fallback without uv.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Streamsift needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ". Choose another one: make setup PYTHON=python3.12")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || \
		{ $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install pip; }
	{ $(BIN)/python -m pip install --quiet uv && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]'; } || \
		$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

java:
	@sh scripts/check_java.sh

demo: setup java ## Run queries on three generated data sets on Spark: plan, matches, throughput
	$(BIN)/streamsift demo

# Types and layers are checked while the first tests run, which do not use both cores.
test: setup java lint ## Run everything that CI runs: lint, types, layers, tests
	@$(MAKE) --no-print-directory -j 3 types layers pytest

# The cases compile the kernels, each in one process; later tests load them from the cache.
pytest:
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup tests/test_cases.py
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --ignore tests/test_cases.py

# Tests that generate queries or streams generate more of them in this profile.
LARGE_TESTS := tests/generated/test_*.py tests/api/test_limits.py tests/api/test_many.py tests/physical/test_keys.py \
	tests/runtime/detect/test_joins.py tests/runtime/rank/test_kept_joins.py tests/runtime/stream/test_window_totals.py \
	tests/spark/batch/test_cases_on_spark.py tests/spark/batch/test_generated_on_spark.py \
	tests/spark/batch/test_ranking_on_spark.py tests/spark/distribute/test_*.py tests/spark/share/test_many_on_spark.py \
	tests/spark/stream/test_stateful.py tests/spark/stream/test_generated_streams_on_spark.py \
	tests/spark/stream/test_cases_on_streams.py tests/spark/stream/test_kill_rounds.py tests/spark/files/test_file_cases.py \
	tests/test_without_jit.py

test-large: setup java ## Run the generated tests with many more examples (hours)
	STREAMSIFT_HYPOTHESIS=large $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(wildcard $(LARGE_TESTS))

# The oldest and the newest version that pyproject.toml allows.
PYSPARK ?= 4.0 4.3
SPARK_TESTS ?= tests/spark/batch tests/spark/distribute tests/spark/share tests/spark/stream tests/spark/test_*.py

test-matrix: $(STAMP) java ## Run the Spark tests on PYSPARK="4.0 4.3", each in a virtual environment of its own
	sh scripts/test_matrix.sh $(BIN) "$(PYSPARK)" "$(JOBS)" $(SPARK_TESTS)

lint: $(STAMP) ## Check style (ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## Format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## Check types (mypy, strict on src)
	$(BIN)/mypy

layers: $(STAMP) ## Check which package imports which (import-linter)
	$(BIN)/lint-imports --no-cache

bench: setup java ## Run the benchmarks (minutes) and write PERFORMANCE.md
	$(BIN)/python -m benchmarks run
	$(BIN)/python -m benchmarks report

bench-full: setup java ## Run all benchmarks with three times the events and seven repetitions (hours)
	$(BIN)/python -m benchmarks run --full --scale 3
	$(BIN)/python -m benchmarks run rivals --cores 2 --repetitions 7
	$(BIN)/python -m benchmarks report

# Two folders of benchmark records.
A ?= benchmarks/results.before
B ?= benchmarks/results

bench-compare: setup ## Compare two benchmark runs, with noise bands: A=folder B=folder
	$(BIN)/python -m benchmarks compare $(A) $(B)

bench-check: setup ## Fail if a kernel has become 30 % slower relative to frozen loops
	$(BIN)/python -m benchmarks check

bench-report: $(STAMP) ## Write PERFORMANCE.md and the README's speed table from benchmarks/results
	$(BIN)/python -m benchmarks report

# How long the soak test runs, and how often a stream is killed.
MINUTES ?= 30
ROUNDS ?= 50

soak: setup java ## Run a stream for MINUTES=30: state, memory and trigger time must not grow
	$(BIN)/python -m benchmarks.stream.soak $(MINUTES)

kill-rounds: setup java ## Kill a stream's driver or worker ROUNDS=50 times: its sink must hold the batch result
	$(BIN)/python tests/support/kill_rounds.py --rounds $(ROUNDS)

docs: $(STAMP) ## Build the documentation in site/; broken links and queries are errors
	$(BIN)/python scripts/make_reference.py
	$(BIN)/python scripts/check_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

notebooks: $(STAMP) ## Rebuild and run the notebooks in examples/ from the scripts there
	$(BIN)/python -m pip install --quiet --editable '.[dev,notebooks]'
	$(BIN)/python scripts/make_notebooks.py

wheel: $(STAMP) java ## Build the package, install it without and with Spark in clean environments, and run it
	sh scripts/check_wheel.sh $(BIN)/python

check: lint types layers docs test ## Run all checks, before a commit

clean: ## Remove .venv, caches and build outputs
	rm -rf $(VENV) .matrix build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
