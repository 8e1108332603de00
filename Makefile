# Holdfast. `make up` starts everything, `make test` proves it (ARGS="-k approval" passes through; JOBS=1 for one process).
# PYTHON chooses the interpreter (3.11 or newer); everything is installed into .venv and nothing outside it.

PYTHON ?= python3
ARGS ?=
MINUTES ?= 60
SEED ?=
JOBS ?= 3
PEERS ?=
RESTATE := 1.7.12
VENV := .venv
RUN := $(VENV)/bin/python
# The files name every package with its version and hash, so pip has nothing to resolve and nothing else to fetch.
INSTALL := -m pip install -qq --no-input --disable-pip-version-check --no-compile --no-deps --require-hashes

# Python keeps what it compiled, whatever the environment says: else every process that starts compiles all of it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up test fuzz bench profile bench-ui bench-abuse peers bench-packages screenshots chaos chaos-selftest browser lock \
  upgrade sbom audit clean venv packages test-packages

up: packages
	@$(RUN) manage.py up

test: test-packages browser
	@$(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Not a test: measurements, which take as long as you let them. PEERS=1 measures what others use beside Holdfast; ARGS=--growth draws plots.
bench: test-packages $(if $(PEERS),peers) $(if $(findstring --growth,$(ARGS)),bench-packages)
	@$(RUN) -m tests.bench $(if $(PEERS),--peers) $(ARGS)

# Where the time goes in the headline loads: flame graphs and statements. OUT names the folder, .profile otherwise.
profile: test-packages bench-packages
	@$(RUN) -m tests.bench.profile $(if $(OUT),--out $(OUT)) $(ARGS)

# Not a test either: the builder with flows of 20, 100 and 500 steps, in a real browser; ARGS="--runs 1000000": pages beside a million runs.
bench-ui: test-packages browser
	@$(RUN) -m tests.bench.ui $(ARGS)

# Nor this: slow clients, floods, huge bodies and many open links, and what others feel of them. ARGS="--seconds 60".
bench-abuse: test-packages
	@$(RUN) -m tests.bench.abuse $(ARGS)

# OUT names the folder, .screenshots otherwise; ARGS=--readme renews the README's two pictures.
screenshots: test-packages browser
	@$(RUN) -m tests.screenshots $(if $(OUT),--out $(OUT)) $(ARGS)

# Random programs under every fault at once: SEED=7 MINUTES=5 KILLS=100. FAILPOINTS=1 dies at every failpoint, every time.
chaos: test-packages
	@$(RUN) -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(KILLS),--kills $(KILLS)) $(if $(FAILPOINTS),--failpoints) $(ARGS)

# Builds that are broken on purpose, each of which `make chaos` must find out. ONLY=name takes one.
chaos-selftest: test-packages
	@$(RUN) -m tests.chaos.selftest $(ONLY)

browser: test-packages
	@$(RUN) tests/browser.py

# A copy of each file inside .venv tells what is installed there: only a changed file is installed again.
packages: venv
	@cmp -s requirements.txt $(VENV)/requirements.installed || { \
	  echo "Installing packages into $(VENV) (about a minute, the first time)"; \
	  $(RUN) $(INSTALL) -r requirements.txt && cp requirements.txt $(VENV)/requirements.installed; }

test-packages: packages
	@cmp -s tests/requirements.txt $(VENV)/tests.installed || { \
	  echo "Installing what the tests need into $(VENV)"; \
	  $(RUN) $(INSTALL) -r tests/requirements.txt && cp tests/requirements.txt $(VENV)/tests.installed; }

# What is measured beside Holdfast has an environment of its own.
bench-packages: venv
	@cmp -s tests/bench/requirements.txt .bench/python/installed || { \
	  echo "Installing what the measurements need into .bench"; $(RUN) -m venv --clear .bench/python && \
	  .bench/python/bin/python $(INSTALL) -r tests/bench/requirements.txt && cp tests/bench/requirements.txt .bench/python/installed; }

# The server of Restate comes by npm; without npm it is left out, and the run tells so.
peers: bench-packages
	@! command -v npm >/dev/null || test -x .bench/node/node_modules/.bin/restate-server || \
	  npm install --silent --ignore-scripts --no-audit --no-fund --prefix .bench/node @restatedev/restate-server@$(RESTATE) || true

venv:
	@$(RUN) -m pip --version >/dev/null 2>&1 || { \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Holdfast needs Python 3.11 or newer. Name one: make up PYTHON=python3.12"; exit 1; }; \
	  $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "This Python cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }; \
	  echo "Making $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }

# Writes both requirement files anew from pyproject.toml, keeping versions where they still fit; `make upgrade` moves them.
lock upgrade: LOCK := .venv-lock
lock upgrade:
	@test -x $(LOCK)/bin/uv || { $(PYTHON) -m venv $(LOCK) && $(LOCK)/bin/pip install --quiet uv; }
	@$(LOCK)/bin/python tests/lock.py $(if $(filter upgrade,$@),--upgrade)

# Many more examples for the property tests, until the time is over or something is found.
fuzz: test-packages
	@$(RUN) tests/fuzz.py $(MINUTES) $(SEED)

# What is installed to run Holdfast, as a CycloneDX document on standard output.
sbom:
	@$(PYTHON) tests/sbom.py

# Known vulnerabilities of what is installed, asked of the package index. What it could not be asked of is no clean bill: a mirror
# may serve packages and know nothing of them; ARGS="--vulnerability-service osv" asks elsewhere.
audit:
	@test -x .venv-lock/bin/pip-audit || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet pip-audit; }
	@.venv-lock/bin/pip-audit --requirement requirements.txt --require-hashes --disable-pip --strict $(ARGS) || { \
	  echo "Not clean: something is known of a package, or the index could not be asked about one. The lines above say which."; exit 1; }

clean:
	rm -rf $(VENV) .venv-lock .bench .pytest_cache .hypothesis
