# Everything sets itself up: the virtual environment is made on first use and again when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests of numbers, which run once more as on an old processor: what files, processes and pictures do is the same on any.
NUMBERS := compiled/test_arithmetic compiled/test_vectors domains/test_domains learners/test_learners learners/test_mixture \
	learners/test_references learners/test_slots losses regret/test_bounds regret/test_certificates regret/test_digest steps \
	test_docs test_house test_traps

.PHONY: run test check soak bench docs pages pictures clean

run: $(VENV)/.run          ## learn a real stream and print risk, mistakes and the certificate
	$(BIN)/python examples/first_run.py

# More threads of BLAS than idle cores wait for each other by spinning: drawing the docs' pictures took 30 s instead of 9.
test soak: export OPENBLAS_NUM_THREADS := 1

test: check                ## everything CI runs
	$(BIN)/python -m rue.cli.prebuild
	$(BIN)/python -m pytest -n 2 --dist worksteal
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 tests/test_checks.py tests/learners/test_references.py
	$(BIN)/python tests/narrow.py -n 2 --dist worksteal $(wildcard $(NUMBERS:%=tests/%) $(NUMBERS:%=tests/%.py))

check: $(VENV)/.test       ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(VENV)/.soak        ## the long runs, of which `make test` has a short version each
	RUE_SOAK=1 $(BIN)/python -m pytest -n 2 -m soak tests

bench: $(VENV)/.bench      ## speed, as ratios against peers in the same run
	$(BIN)/python -m benchmarks

docs: pages pictures       ## the site, in build/site
	$(BIN)/python -m mkdocs build --strict --quiet

pages: $(VENV)/.test       ## the generated pages of the docs, after a change of docstrings
	$(BIN)/python docs/make_pages.py --text

pictures: $(VENV)/.test    ## the pictures of the docs, after a change of what is drawn
	$(BIN)/python docs/make_pages.py --pictures

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'hatchling>=1.25' editables
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m rue.cli.prebuild tables
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'hatchling>=1.25' editables
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[test]'
	$(BIN)/python -m compileall -q src
	touch $@ $(VENV)/.run

$(VENV)/.soak: $(VENV)/.test
	$(BIN)/python -m pip install --quiet 'setuptools>=70.1' # what pyspark is built with
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[test,soak]'
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[test,bench]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
