# Every target bootstraps what it needs from a bare Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
ROOMS := contract infra db tasks flows api cli
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport PYTHONPATH
.DEFAULT_GOAL := help
.PHONY: help install install-dev demo test check format format-table schemas front lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(UV): requirements-bootstrap.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"zarrmill needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}; name another with make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.txt
	@touch $(UV)

$(VENV)/.installed: requirements.lock pyproject.toml $(UV)
	@echo "installing zarrmill into $(VENV)"
	@$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	@$(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q $(ROOMS)
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	@$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements-dev.lock
	@touch $@

install: $(VENV)/.installed  ## install zarrmill into .venv

install-dev: $(VENV)/.installed-dev  ## install also what tests and checks need

demo: install  ## write a small BIDS dataset, convert it, show where to look
	@$(BIN)/zarrmill demo

test: install-dev  ## run every test
	@$(BIN)/python -m pytest

check: install-dev  ## format, lint, types, floors, documentation coverage
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/house

format: install-dev  ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

schemas: install-dev  ## write contract/schemas and docs/contract.md again from the models
	@$(BIN)/python -m contract.schemas

format-table: install-dev  ## write the measured table of docs/formats.md again
	@$(BIN)/python -m pytest -q tests/tasks/convert/test_served_values.py --write-tables

front:  ## build the scripts of the dashboard again; needs node
	@cd api/dashboard/front && npm ci --silent --ignore-scripts --no-audit --no-fund && node build.mjs

lock: $(UV)  ## resolve the dependencies again into the hashed locks
	@$(UV) pip compile --quiet pyproject.toml --generate-hashes --universal --python-version 3.11 --custom-compile-command 'make lock' -o requirements.lock
	@$(UV) pip compile --quiet pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 --custom-compile-command 'make lock' -c requirements.lock -o requirements-dev.lock

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build *.egg-info
