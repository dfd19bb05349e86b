.PHONY: check test bench
PYTHON ?= .venv/bin/python

check:  ## style, types and import arrows
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(dir $(PYTHON))lint-imports

test:  ## the whole suite
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest

bench:  ## speeds, as ratios measured side by side
	OMP_NUM_THREADS=1 $(PYTHON) benchmarks/search_speed.py
	OMP_NUM_THREADS=1 $(PYTHON) benchmarks/collective_speed.py
