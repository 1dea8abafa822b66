# From a fresh clone with Python and pip alone: `make demo`, `make test` before every commit, `make test-all` before landing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps
# uv installs in a fifth of the time; where it cannot, pip does. Two processes then compile what was installed, except for the
# tests of other packages, and the sources: tests start hundreds of processes, and where PYTHONDONTWRITEBYTECODE is set,
# each would compile all that it imports.
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check
define install
	($(PIP) uv && $(BIN)/python -m uv pip install --quiet --python $(BIN)/python --editable '.[$(@F)]') \
		|| $(PIP) --no-compile --editable '.[$(@F)]'
	$(BIN)/python -W ignore -m compileall -qq -j 2 -x '/tests/' $(VENV)/lib src || true
	mkdir -p $(STAMPS) && touch $@
endef

# mypy keeps one processor busy, so that it runs beside the tests.
MAKEFLAGS += --jobs=2

.PHONY: demo test test-all lint types tests all-tests docs clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/docs: pyproject.toml | $(BIN)/python
	$(install)

demo: $(STAMPS)/demo  ## privatize a real corpus, fit it from the noisy counts alone, compare
	$(BIN)/countveil demo

test: lint types tests  ## what a contributor runs before every commit: minutes

test-all: lint types all-tests  ## everything that must hold

tests: $(STAMPS)/test
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not long"

all-tests: $(STAMPS)/test
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/test
	$(BIN)/mypy

# It runs beside the tests, and threads of matrix products wait awake for a core.
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(STAMPS)/docs  ## the documentation as a site in build/site; a warning is an error
	rm -rf docs/api
	$(BIN)/sphinx-build --quiet --jobs 2 --fail-on-warning --keep-going -b html docs build/site

clean:
	rm -rf $(VENV) build dist docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache
