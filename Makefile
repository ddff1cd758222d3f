# Needs Python 3.11 or newer and make; everything else goes into .venv.

PYTHON ?= python3
VENV ?= .venv
TEST_JOBS ?= 2
PY := $(VENV)/bin/python
# Without compiling to bytecode: Python does that for what is imported, a small part of what is installed.
PIP_INSTALL := $(PY) -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

# Even where the environment says otherwise: hundreds of processes would each compile PyTorch's sources again.
export PYTHONDONTWRITEBYTECODE :=

# Files that say what is installed: an installation is repeated when one of them changes.
SETUP := pyproject.toml constraints.txt
READY := $(VENV)/.ready
READY_TEST := $(VENV)/.ready-test
DEMO := out/demo

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types unit quick browser study study-rl study-optimise study-faults study-contact study-mjcf study-motion study-cpus study-arm bench matrix docs package format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## install, then train a UR5 that puts a bottle into a socket: about two minutes
	rm -rf $(DEMO)
	$(VENV)/bin/costate train insertion --out $(DEMO)
	$(VENV)/bin/costate evaluate $(DEMO)
	$(VENV)/bin/costate report $(DEMO)

# Side by side: the environment and the browser, then types and tests, since one of each pair leaves a core idle.
test: ## install, then run every check: format, lint, layers, types, tests
	@$(MAKE) --no-print-directory -j 2 $(READY_TEST) browser
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j 2 types unit

check: lint types ## format, lint, layers and types only

lint: $(READY_TEST)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(VENV)/bin/lint-imports

types: $(READY_TEST)
	$(PY) -m pyright

# One thread for NumPy's linear algebra: the tests run side by side, and its threads would wait for each other. Files that take
# long begin first (tests/progress.py).
PYTEST_OPTIONS := -p tests.progress --dist loadfile --no-loadscope-reorder --max-worker-restart 0
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(PY) -m pytest $(PYTEST_OPTIONS)
unit: $(READY_TEST) browser ## tests only
	$(PYTEST) -m "not study" -n $(TEST_JOBS)

quick: $(READY_TEST) ## the tests nearest to what changed since SINCE (HEAD), below two minutes; its kernels are kept in build
	$(PY) -m ruff check .
	COSTATE_CACHE=$(CURDIR)/build/kernels $(PY) -m tests.quick --since $(or $(SINCE),HEAD) --jobs $(TEST_JOBS) -- $(PYTEST_OPTIONS)

# Never fails: where Chromium is missing and cannot be installed, the tests of pages are skipped, and say so.
browser: ## install Chromium for the tests of pages, if there is none (Debian, Ubuntu)
	@for name in "$$COSTATE_CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do \
	  [ -n "$$name" ] && command -v "$$name" > /dev/null && exit 0; done; \
	as_root=; [ "$$(id -u)" = 0 ] || as_root="sudo -n"; \
	if command -v apt-get > /dev/null && $$as_root true 2> /dev/null; then \
	  echo "installing Chromium"; \
	  { $$as_root apt-get -qq update && $$as_root apt-get -qq install -y --no-install-recommends chromium; } > /dev/null 2>&1 && exit 0; \
	fi; \
	echo "Chromium is missing and was not installed: the tests of pages will be skipped"

study: $(READY_TEST) ## the studies: long runs that are tests too
	$(PY) -m pytest -m study --timeout 0

study-optimise: $(READY_TEST) ## every task from random starts, with gradients and without
	$(PY) -m benchmarks.study_optimise --markdown docs/optimisation.md --plots docs/plots

study-faults: $(READY_TEST) ## damaged and hostile inputs, kills, full disks, load: what happens when things go wrong
	$(PY) -m benchmarks.study_faults --markdown docs/reliability.md

study-contact: $(READY_TEST) ## contact against known answers and MuJoCo: a stack, an arch, a gripper, bowling, robots
	$(PY) -m benchmarks.study_validation --markdown docs/validation.md --plots docs/plots

# The packages are only looked through for files: what they need to run is not installed.
study-mjcf: $(READY_TEST) ## every MJCF file of gymnasium, dm_control and gymnasium-robotics beside MuJoCo
	$(PIP_INSTALL) --no-deps dm_control gymnasium-robotics
	$(PY) -m benchmarks.study_mjcf --markdown docs/validation.md

study-motion: $(READY_TEST) ## derivatives of roll-outs against those of the true motion: known answers and 500 random scenes
	$(PY) -m benchmarks.study_motion --markdown docs/motion.md --record docs/motion.json

study-cpus: $(READY_TEST) ## same bits on other CPUs: shorter vectors, older x86 and ARM under emulation (fetches 2 GB into build/cpus)
	$(PY) -m benchmarks.study_cpus

study-arm: $(READY_TEST) ## the same on ARM alone, with tests, which take hours: MINUTES=10 for some, the next call goes on
	$(PY) -m benchmarks.study_cpus --only ARM --minutes $(or $(MINUTES),600)

study-rl: $(READY_TEST) ## four ways to train the insertion, three seeds each; minutes of processor time for each training: MINUTES=10
	$(PIP_INSTALL) -e '.[rl]'
	$(PY) -m benchmarks.study_rl --minutes $(or $(MINUTES),10) --json docs/plots/insertion_rl.json --plots docs/plots --markdown docs/insertion.md

# On a quiet machine: two hours, most of them compilations of the peers. Films, replays and the viewer only print what they measure.
bench: $(READY_TEST) ## all benchmarks, into docs/benchmarks.md; then Costate beside other libraries, into docs/peers.md, and the gate
	$(PIP_INSTALL) example-robot-data
	set -e; for file in benchmarks/bench_*.py; do name=$$(basename $$file .py); \
	  case $$name in bench_film|bench_replay|bench_view) page=;; bench_sim) page="--markdown docs/benchmarks.md --plots docs/plots";; \
	  *) page="--markdown docs/benchmarks.md";; esac; \
	  $(PY) -m benchmarks.$$name $$page; done
	$(PY) -m benchmarks.peers --markdown docs/peers.md --plots docs/plots
	$(PY) -m benchmarks.peers --gate

matrix: $(READY_TEST) ## the accuracy of every gradient: functions, joints, shapes, contact models, integrators, parameters
	$(PY) -m benchmarks.matrix --markdown docs/accuracy_matrix.md

docs: $(READY_TEST) ## the documentation site, into build/site: pages, reference, notebooks, gallery
	$(PY) -m docs.site

# In environments of their own, outside the checkout; PYTHON=python3.13 for another interpreter. Extras are resolved, not installed.
EXTRAS := continuum,data,decompose,export,jax,log,mesh,mjcf,optimise,rl,scale,view
package: ## build wheel and sdist into dist, install each into a new environment and try it
	rm -rf dist && set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; checkout=$$PWD; \
	$(PYTHON) -m venv "$$folder/build"; "$$folder/build/bin/pip" install --quiet build; \
	"$$folder/build/bin/python" -m build --outdir dist . > "$$folder/log" || { cat "$$folder/log"; exit 1; }; \
	for file in "$$PWD"/dist/*.whl "$$PWD"/dist/*.tar.gz; do \
	  rm -rf "$$folder/venv"; $(PYTHON) -m venv "$$folder/venv"; \
	  "$$folder/venv/bin/pip" install --quiet --disable-pip-version-check -c constraints.txt torch "$$file"; \
	  (cd "$$folder" && COSTATE_CACHE="$$folder/cache" venv/bin/python -P "$$checkout/tests/wheel_smoke.py" "$$checkout"); \
	  "$$folder/venv/bin/pip" install --quiet --disable-pip-version-check --dry-run -c constraints.txt "$$file[$(EXTRAS)]"; \
	done

format: $(READY_TEST) ## put the code into form
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean: ## remove the environment and all caches
	rm -rf $(VENV) build dist out .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Costate needs Python 3.11 or newer; $(PYTHON) is %d.%d. Try make PYTHON=python3.11 ..." % v[:2])'
	$(PYTHON) -m venv $(VENV)

$(READY): $(SETUP) | $(PY)
	@echo "installing into $(VENV) (a few minutes the first time)"
	$(PIP_INSTALL) -e '.[export,mjcf,view]'
	@touch $@

$(READY_TEST): $(SETUP) | $(PY)
	@echo "installing into $(VENV) (a few minutes the first time)"
	$(PIP_INSTALL) -e '.[test]'
	@touch $@ $(READY)
