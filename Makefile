# Two commands do everything from a fresh clone with Python and pip alone: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps

.PHONY: demo test lint types docs clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	mkdir -p $(STAMPS) && touch $@

demo: $(STAMPS)/demo  ## privatize a real corpus, fit it from the noisy counts alone, compare
	$(BIN)/countveil demo

test: $(STAMPS)/test lint types  ## everything that must hold
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/test
	$(BIN)/mypy

docs: $(STAMPS)/docs  ## the documentation as a site in build/site; a warning is an error
	rm -rf docs/api
	$(BIN)/sphinx-build --quiet --jobs 2 --fail-on-warning --keep-going -b html docs build/site

clean:
	rm -rf $(VENV) build dist docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache
