# make help says what there is. Needed: Python 3.11 or newer and make; the rest is installed
# into .venv, and again only when pyproject.toml changed.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin

# The first of these that is new enough; make PYTHON=/path/to/python3 chooses another.
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
endif

# auto compiles the inner loops where there is a C compiler; 0 never does, 1 insists.
BARNABAS_COMPILE ?= auto
export BARNABAS_COMPILE
INSTALLED := $(VENV)/.installed-$(BARNABAS_COMPILE)

# What is compiled, as hatch_build.py finds it. An edited source is compiled again, or removed from
# the compiled ones, before anything runs.
COMPILED := $(shell grep -rlx --include='*.py' '\# Compiled: see hatch_build.py\.' \
  protocol storage server pipeline testing)

LISTENERS ?= PLAINTEXT://127.0.0.1:9092
# HTTP for health and metrics; make run HTTP_LISTENER= does without.
HTTP_LISTENER ?= 127.0.0.1:9644
DATA_DIR ?= data
PYTEST ?= $(BIN)/python -m pytest
# Files of tests run side by side, one more of them than there are cores: part of their time they wait
# for a broker or the disk. make test WORKERS=0 runs one after the other.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := -n $(WORKERS) --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
# In CI a test that fails has a second run, and the summary names it: what drives JVMs and browsers on
# shared cores fails now and then for their sake. What looks for lost records has one run (flaky marks).
RERUNS ?= $(if $(filter true,$(CI)),1,0)
TESTS ?= tests
IMAGE ?= barnabas

.DEFAULT_GOAL := help
.PHONY: help run install format lint types contracts test unit interop bench compile wheels docs links docker clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

run: $(INSTALLED) ## Serve on 127.0.0.1:9092 with the data in ./data, the page and metrics on 9644
	@$(BIN)/barnabas serve --data-dir $(DATA_DIR) --set listeners=$(LISTENERS) \
	  --set barnabas.http.listener=$(HTTP_LISTENER)

install: $(INSTALLED) $(VENV)/.developer ## Make .venv and install everything that development needs

format: $(INSTALLED) $(VENV)/.developer ## Format the code and sort its imports
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(INSTALLED) $(VENV)/.developer ## Check style and formatting
	@echo "lint: ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@echo "lint: codespell"
	@$(BIN)/codespell *.md docs protocol server storage pipeline testing benchmarks examples deploy docker

types: $(INSTALLED) $(VENV)/.developer ## Check types
	@echo "types: mypy"
	@$(BIN)/mypy

contracts: $(INSTALLED) $(VENV)/.developer ## Check which package may import which
	@echo "contracts: import-linter"
	@$(BIN)/lint-imports --no-logo

test: lint types contracts ## Check everything and run all tests
	@echo "test: pytest $(TESTS)"
	@$(PYTEST) $(PARALLEL) --reruns $(RERUNS) -rfER --durations=40 $(TESTS) $(ARGS)

unit: $(INSTALLED) $(VENV)/.unit ## Run the tests that need nothing but Python
	@$(PYTEST) $(PARALLEL) -m "not interop" $(TESTS) $(ARGS)

interop: $(INSTALLED) $(VENV)/.developer ## Run the tests with real clients, Java and Docker
	@$(PYTEST) $(PARALLEL) -m interop $(TESTS) $(ARGS)

bench: $(INSTALLED) $(VENV)/.developer ## Measure Barnabas beside Apache Kafka
	@$(BIN)/python -m benchmarks.compare $(ARGS)

compile: ## Compile the inner loops, or say what is missing for that
	@$(MAKE) --no-print-directory BARNABAS_COMPILE=1 install

wheels: $(VENV)/.packaging ## Build the packages for an index: an sdist, a plain wheel, compiled ones
	@$(BIN)/python build_wheels.py

docs: $(INSTALLED) $(VENV)/.developer ## Build the documentation as a site, in build/site
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs/site -b html . build/site
	@echo "docs: build/site/index.html"

links: $(INSTALLED) $(VENV)/.developer ## Ask other sites whether the pages that the documentation names are there
	@$(BIN)/python -m sphinx -q -c docs/site -b linkcheck . build/links

docker: ## Build the image
	docker build --tag $(IMAGE) .

clean: ## Remove .venv, builds and caches, but no data
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find protocol storage server pipeline testing tests benchmarks \
	  \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "Barnabas needs Python 3.11 or newer, and there is none on the path" \
	  "(make PYTHON=/path/to/python3 names one)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Barnabas needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment" \
	  "(on Debian: apt-get install python3-venv)." >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(INSTALLED): pyproject.toml hatch_build.py $(COMPILED) | $(VENV)/.python
	@echo "Installing Barnabas and what it runs on, with BARNABAS_COMPILE=$(BARNABAS_COMPILE)"
	@rm -f $(VENV)/.installed-*
	@$(BIN)/python -m pip install --quiet --editable '.[http]'
	@$(BIN)/python -m compileall -q protocol storage server testing
	@$(BIN)/python -c "import barnabas.protocol.records.record as r; compiled = not r.__file__.endswith('.py'); \
	  print('The inner loops are compiled' if compiled else 'The inner loops run as plain Python, slower')"
	@touch $@

$(VENV)/.packaging: pyproject.toml | $(VENV)/.python
	@echo "Installing what packages are built with"
	@$(BIN)/python -m pip install --quiet --group packaging
	@touch $@

# PySpark comes as source: its wheel is made while another process compiles (make -j2 install).
$(VENV)/.spark: pyproject.toml | $(VENV)/.python
	@echo "Making a wheel of PySpark (it is large: minutes, once)"
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(VENV)/wheels $$($(BIN)/python -c \
	  "import tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	  print(*(needed for needed in extras['spark'] if needed.startswith('pyspark')))")
	@touch $@

# Without Spark: it takes minutes, and these tests need none.
$(VENV)/.unit: pyproject.toml | $(INSTALLED)
	@echo "Installing what tests need"
	@$(BIN)/python -m pip install --quiet --group dev --group interop
	@touch $@

$(VENV)/.developer: pyproject.toml | $(VENV)/.unit $(VENV)/.spark
	@echo "Installing Spark"
	@$(BIN)/python -m pip install --quiet --find-links $(VENV)/wheels --group spark --group docs
	@rm -rf $(VENV)/wheels
	@touch $@

.PHONY: release
release: $(VENV)/.tests $(VENV)/.packaging ## Check, pin and build a release, and print the commands that remain
	@$(BIN)/python release.py
