# Two commands do everything on a fresh machine: `make demo` and `make test`. The rest is for contributors.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The package that pip is at, on one line; what it says of errors is not touched.
SHOWN := awk '/^ *(Collecting|Downloading|Installing)/ { printf "\r\033[K%.70s", $$0; fflush() } END { printf "\r\033[K" }'
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test test-fast install lint format types docs site bench chaos load soak test-real test-loop test-accepted audit validate screenshots clean

demo: install
	$(BIN)/sweepscope demo $(ARGS)

# A file stays on one worker: what a module or a worker sets up (stores, servers, a browser) is set up once. In our order:
# xdist would begin with the files that have most tests, which are not those that take longest.
test: install
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# The inner loop: units and properties; nothing that starts servers, browsers or whole ingests.
test-fast: install
	$(BIN)/python -m pytest -n auto -q -m "not slow" $(ARGS)

install: $(STAMP)

# uv where it is there, venv and pip otherwise; both install the versions that constraints.txt pins. Our bytecode and the
# rows of the bundled results are made now, or else the first command would make them.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "sweepscope needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing into $(VENV); this takes a minute or three, once."
ifneq ($(UV),)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip install --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'
else
	$(PYTHON) -m venv $(VENV)
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' | $(SHOWN)
endif
	@$(BIN)/python -m compileall -q dashboard data pipeline schemas
	@$(BIN)/python -c 'from sweepscope.pipeline.ingest.prepared import prepared_tables; prepared_tables()'
	@touch $(STAMP)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: install
	$(BIN)/mypy

# Generated documentation: the data dictionary and the README's command line section.
docs: install
	$(BIN)/python -m tests.docs

# The documentation as a site, in build/site; a link that leads nowhere fails it.
site: install
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs build/site

bench: install
	$(BIN)/python -m tests.benchmarks

# Kill what writes, three hundred times, with three readers beside it: what is lost, doubled, half or stuck. ARGS='--over dask'
# reads by Dask's workers and kills them, too; ARGS='--over s3' has two homes ingest into a lake on S3.
chaos: install
	$(BIN)/python -m tests.chaos $(ARGS)

# A store that grows to ten thousand run directories (ARGS='--runs 100000' for more), what a unit of work costs, and how Dask
# and a lake on S3 compare with one process and its disk: the figures of docs/scale.md. Takes half an hour.
load: install
	$(BIN)/python -m tests.load $(ARGS)

# A day of sweeps under a real watcher, in twenty minutes: memory, Dagster's storage, releases and rows lost, hour by hour.
# ARGS='--hours 3 --minutes 3' is a short one.
soak: install
	$(BIN)/python -m tests.soak $(ARGS)

# Real trainers (transformers, TRL, Lightning, litgpt) on the CPU, installed in a scratch environment, and what is read of
# them live and afterwards. ARGS='--nanogpt CHECKOUT' adds nanoGPT. Wants a package index; takes minutes.
test-real: install
	$(BIN)/python -m tests.real $(ARGS)

# From a plan to litgpt on the CPU and back, or to picotron: ARGS='--picotron CHECKOUT'. Uses the environment of test-real.
test-loop: install
	$(BIN)/python -m tests.real.loop $(ARGS)

# Launch files read by the frameworks' own code, installed in a scratch environment. ARGS='nanotron/src Megatron-LM' names
# checkouts of those that are no packages. Wants a package index; takes minutes.
test-accepted: install
	$(BIN)/python -m tests.real.accepted $(ARGS)

# Known vulnerabilities of the pinned packages. Asks the package index, so it is no part of continuous integration, which may be
# offline; a package that could not be asked about fails it, too.
audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	build/audit/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt $(ARGS)

# How accurate the estimator is on every bundled table: fits made anew, splits stated.
validate: install
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.validation

# A picture of every page, light and dark, over the demo, a small sweep and an empty store: build/screenshots.
screenshots: install
	$(BIN)/python -m tests.screenshots $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
