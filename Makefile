# make help lists the targets. They need Python 3.11 or newer and make; everything else is installed
# into .venv, and again only when pyproject.toml changes.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin

# The first of these that is new enough; make PYTHON=/path/to/python3 chooses another.
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
endif

LISTENERS ?= PLAINTEXT://127.0.0.1:9092
# HTTP for health and metrics; make run HTTP_LISTENER= starts without it.
HTTP_LISTENER ?= 127.0.0.1:9644
DATA_DIR ?= data
IMAGE ?= barnabas

# The sources run as plain Python. make compile keeps a compiled copy in build/compiled, which make run
# uses while it matches the sources; with COMPILED=1 the tests use it as well.
COMPILED ?= 0
COPY := $(BIN)/python compiled_copy.py
ON_COPY := $(if $(filter 1,$(COMPILED)),$(COPY) require,)
PYTEST ?= $(ON_COPY) $(BIN)/python -m pytest
# Test files run side by side, one process more than there are cores: tests wait for brokers and the
# disk. make test WORKERS=0 runs them one after the other.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := -n $(WORKERS) --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
TESTS ?= tests
# Clients whose broker is gone log to stderr between tests. What ends pytest itself is shown.
STDERR := build/pytest.stderr
QUIETLY := 2>$(STDERR) || { status=$$?; test $$status = 1 || tail -n 30 $(STDERR) >&2; exit $$status; }

.DEFAULT_GOAL := help
.PHONY: help run compile install format lint types contracts unit test prove interop bench wheels docs \
  links docker release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.installed ## Serve on 127.0.0.1:9092 with the data in ./data, the page and metrics on 9644
	@$(COPY) run $(BIN)/barnabas serve --data-dir $(DATA_DIR) --set listeners=$(LISTENERS) \
	  --set barnabas.http.listener=$(HTTP_LISTENER)

compile: $(VENV)/.installed ## Compile a copy of the sources for make run and make bench (3 to 5 minutes)
	@$(COPY) build

install: $(VENV)/.tests $(VENV)/.spark $(VENV)/.docs ## Install everything that development needs, Spark too

format: $(VENV)/.checks ## Format the code and sort its imports
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(VENV)/.checks ## Check style, formatting and spelling
	@echo "lint: ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@echo "lint: codespell"
	@$(BIN)/codespell *.md docs protocol storage client server pipeline testing benchmarks examples deploy docker

types: $(VENV)/.typing ## Check types
	@echo "types: mypy (one minute the first time, then seconds)"
	@MYPYPATH=$(VENV)/typing $(BIN)/mypy

contracts: $(VENV)/.checks ## Check which package may import which
	@echo "contracts: import-linter"
	@$(BIN)/lint-imports --no-logo

unit: $(VENV)/.tests ## Run the tests that need nothing but Python
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) -m "not interop and not prove" $(TESTS) $(ARGS) $(QUIETLY)

test: lint types contracts $(VENV)/.spark ## Check everything and run the tests that find most faults
	@echo "test: pytest $(TESTS) (about 12 minutes; make unit needs neither Spark nor Java)"
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) -m "not prove" -rf --durations=20 $(TESTS) $(ARGS) $(QUIETLY)

prove: $(VENV)/.tests $(VENV)/.spark ## Run the tests that search deeper: crashes, histories, products, browsers
	@echo "prove: pytest $(TESTS) (about 30 minutes)"
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) -m prove -rf --durations=20 $(TESTS) $(ARGS) $(QUIETLY)

interop: $(VENV)/.tests $(VENV)/.spark ## Run the tests with real clients, Java and Docker
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) -m interop $(TESTS) $(ARGS) $(QUIETLY)

bench: compile $(VENV)/.tests ## Measure Barnabas, compiled, beside Apache Kafka
	@$(COPY) require $(BIN)/python -m benchmarks.compare $(ARGS)

wheels: $(VENV)/.packaging ## Build the packages for an index: an sdist, a plain wheel, compiled ones
	@$(BIN)/python build_wheels.py

docs: $(VENV)/.docs ## Build the documentation as a site, in build/site
	@$(SITE) -q -W --keep-going -b html . build/site
	@echo "docs: build/site/index.html"

links: $(VENV)/.docs ## Ask other sites whether the pages that the documentation names are there
	@$(SITE) -q -b linkcheck . build/links

# Without PySpark the reference of the pipeline is read from what make types installs.
SITE = PYTHONPATH=$$(test -e $(VENV)/.spark || echo $(VENV)/typing) $(BIN)/python -m sphinx -c docs/site

docker: ## Build the image
	docker build --tag $(IMAGE) .

release: $(VENV)/.tests $(VENV)/.packaging ## Check, pin and build a release, and print the commands that remain
	@$(BIN)/python release.py

clean: ## Remove .venv, builds and caches, but no data
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find protocol storage client server pipeline testing tests benchmarks \
	  \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +

# Each stamp below says that a step of the installation is done. Steps follow each other: two pips must
# not change one environment at the same time.

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "Barnabas needs Python 3.11 or newer, and the path has none" \
	  "(make PYTHON=/path/to/python3 names one)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Barnabas needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment" \
	  "(on Debian: apt-get install python3-venv)." >&2; exit 1; }
	@touch $@

$(VENV)/.installed: pyproject.toml hatch_build.py | $(VENV)/.python
	@echo "Installing Barnabas and its dependencies (15 seconds)"
	@$(BIN)/python -m pip install --quiet --editable '.[http]'
	@touch $@

$(VENV)/.checks: pyproject.toml | $(VENV)/.installed
	@echo "Installing ruff, mypy and other checkers (15 seconds)"
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" # The first with --group.
	@$(BIN)/python -m pip install --quiet --group checks
	@touch $@

$(VENV)/.tests: pyproject.toml | $(VENV)/.checks
	@echo "Installing pytest and Kafka clients (30 seconds)"
	@$(BIN)/python -m pip install --quiet --group dev --group interop
	@touch $@

# PySpark itself is 400 MB; pyspark-client has the same types in 2 MB. It stays out of site-packages,
# where it would replace files of PySpark.
$(VENV)/.typing: pyproject.toml | $(VENV)/.tests
	@echo "Installing the libraries beside Spark, and Spark's types (30 seconds)"
	@$(BIN)/python -m pip install --quiet --group pipeline
	@$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/typing "pyspark-client>=4.2"
	@touch $@

$(VENV)/.spark: pyproject.toml | $(VENV)/.typing
	@echo "Installing PySpark, 400 MB (1 to 3 minutes; make unit, lint, types and contracts need none)"
	@$(BIN)/python -m pip install --quiet --group spark
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.typing $(if $(filter install,$(MAKECMDGOALS)),$(VENV)/.spark)
	@echo "Installing Sphinx (10 seconds)"
	@$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(VENV)/.packaging: pyproject.toml | $(VENV)/.checks
	@echo "Installing build tools for packages (20 seconds)"
	@$(BIN)/python -m pip install --quiet --group packaging
	@touch $@
