# Everything runs in .venv, made once by `setup` from pyproject.toml and constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Tests start hundreds of processes: what was compiled once is kept, also where the surroundings say no.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: docs docs-outputs screenshots setup setup-cluster setup-pages demo check test test-running test-rest test-cluster test-slurm test-ray test-wheel test-pages lint bench calibrate clean chaos fuzz

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "pit-doe needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[pit,dev]'
	$(BIN)/python -m compileall -q doe pit_model
	touch $(STAMP)

demo: setup
	$(BIN)/doe plan --preset demo
	$(BIN)/doe run --study runs/pit-demo --cpu 2
	$(BIN)/doe analyze --study runs/pit-demo --response dec_avg
	$(BIN)/doe report --study runs/pit-demo

# A file stays in one process.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

# While editing: lint, types and the tests that need no waiting, training, browser or LaTeX.
QUICK := tests/test_layers.py tests/test_install.py tests/test_presets.py tests/doe/study tests/doe/design tests/doe/analysis
check: setup
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest $(PARALLEL) $(QUICK) -m 'not slow and not cluster and not wheel'

# Two at once, each in two processes: those that kill and wait mostly sleep, and import little.
test: setup
	$(MAKE) --no-print-directory --jobs --keep-going test-running test-rest

test-running: setup
	$(BIN)/python -m pytest $(PARALLEL) tests/doe/running
test-rest: setup
	$(BIN)/python -m pytest $(PARALLEL) --ignore tests/doe/running tests

# What a cluster of one node needs: Ray, and Debian's Slurm (installed as root).
setup-cluster: setup
	$(BIN)/python -c 'import ray' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[pit,dev,ray]'
	command -v sbatch slurmctld slurmd munged >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge >/dev/null; }

# The engine suite on a real Slurm of one node (started as root) and, beside it, on a real Ray and on
# this machine; ENGINES=cluster leaves out what `test` has run.
ENGINES ?= cluster or not cluster
test-cluster: setup-cluster
	$(MAKE) --no-print-directory --jobs --keep-going test-slurm test-ray

test-slurm: setup-cluster
	$(BIN)/python -m pytest tests/doe/running/engines -m '$(ENGINES)' -k slurm
test-ray: setup-cluster
	$(BIN)/python -m pytest tests/doe/running/engines -m '$(ENGINES)' -k 'not slurm'

# The package as a user gets it: a wheel in an environment of its own, without the trainer.
test-wheel: setup
	$(BIN)/python -m pytest tests/test_wheel.py -m wheel

# The packages that the pages of docs/backends.md are about; without them `test` skips those pages.
setup-pages: setup
	$(BIN)/python -c 'import transformers, pytorch_lightning' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[pit,dev,frameworks]'

test-pages: setup-pages
	$(BIN)/python -m pytest tests/test_backends_page.py

# The site in site/, which needs no network to be read; a broken link or a page that nothing leads to is an error.
docs: setup
	$(BIN)/python -c 'import material, mkdocstrings' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[pit,dev,docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What the commands of the tutorials print, run anew.
docs-outputs: setup
	$(BIN)/python -m tests.pages docs/tutorial/*.md

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy doe pit_model

chaos: setup
	$(BIN)/python tests/doe/running/chaos.py --kills 1000

# Study files, files of studies, options and tables that nobody should write: no traceback, no hang.
INPUTS ?= 2000
fuzz: setup
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS)

# Size, coverage and power of what the analysis prints, by simulation; the tables go to docs/calibration.md.
calibrate: setup
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.calibrate
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.looks
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.stopping
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.hopeless
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.confirmation
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.streams
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.goals
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.surfaces
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.strata

# The page at 1400 and 390 pixels, light, dark and on paper, of the reference study and of one with long
# names; the pictures of the README (docs/images) are made anew as well.
screenshots: setup
	$(BIN)/python tests/doe/views/screenshots.py screenshots

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
