# Everything runs in .venv, which is made here from the locks in requirements/ with plain pip.
# The machine supplies Python 3.11 or later, a C++17 compiler, make and perl.

PYTHON ?= $(firstword $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done) python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile
WORKERS ?= 2
ARGS ?=
# Bytecode is kept, in one place, whatever the environment says: without it each process compiles pandas and Matplotlib
# anew (3.3 s of processor time an `import pandas`, 0.8 s with it).
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX ?= $(abspath build/pycache)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-board test-netlist test-browser coverage lint cocotb rtl-check interop attach formal synth bitstream bench digests soak docs docs-check docs-figures clean locks

help: ## this list
	@echo "bentpipe: make TARGET"
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Options: ARGS='...' goes to the program behind test, cocotb, rtl-check, formal, synth, bench, digests, docs-check; WORKERS=$(WORKERS) processes test"

DEMO := acts-1flow fall-floyd-4

demo: $(VENV)/.runtime ## a published result, whole: a gigabyte by TCP over an OC-3c satellite link in RTL; and four TCPs after the same losses
	$(BIN)/bentpipe run $(word 1,$(DEMO)) --out runs/demo --force
	$(BIN)/bentpipe run $(word 2,$(DEMO)) --out runs/demo-losses --force
	@echo
	@echo "Look at runs/demo/report.html; runs/demo-losses/sequence.png has Tahoe, Reno, New Reno and SACK beside each other."
	@echo "Then (. .venv/bin/activate before):"
	@echo "  bentpipe list                             what else there is"
	@echo "  bentpipe run acts-3flows --quick          three flows share the satellite's line, and its switch discards"
	@echo "  bentpipe new my.toml --from acts-3flows   an experiment of your own"

test: $(VENV)/.test ## the default tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-board: $(VENV)/.test $(VENV)/.litex $(VENV)/.fusesoc ## whole experiments in lockstep with a board: its RTL in Verilator, and in software; LiteX's tools on it; exported cores in other designs (minutes)
	@command -v iverilog >/dev/null || { echo "Icarus Verilog is missing; get it: apt-get install iverilog" >&2; exit 2; }
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest -o faulthandler_timeout=0 tb/boards $(ARGS)

test-netlist: $(VENV)/.test $(VENV)/.synth ## interface, switch, link and bridge after synthesis for an ECP5, beside their RTL; models of its cells (minutes)
	@command -v iverilog >/dev/null || { echo "Icarus Verilog is missing; get it: apt-get install iverilog" >&2; exit 2; }
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest -o faulthandler_timeout=0 tb/netlist $(ARGS)

test-browser: $(VENV)/.test $(VENV)/.browser $(VENV)/.docs ## reports, live pages and the documentation in a real browser; no barriers by axe-core; Debian's chromium
	@command -v chromium >/dev/null || { echo "chromium is missing; get it: apt-get install chromium" >&2; exit 2; }
	$(BIN)/python -m pytest tb/browser $(ARGS)

coverage: $(VENV)/.test ## what the default tests reach: branches of Python, lines and toggles of the RTL; writes docs/coverage.md
	cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m cover --workers $(WORKERS) $(ARGS)

lint: $(VENV)/.test ## style, format, types, layers of the packages, language of the pages, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python .ci/prose.py
	$(BIN)/codespell

cocotb: $(VENV)/.test ## only the tests of nodes and networks in cocotb and Verilator
	$(BIN)/python -m pytest -n $(WORKERS) tb/cocotb $(ARGS)

rtl-check: $(VENV)/.test $(VENV)/.synth ## Verilog of `bentpipe rtl` in Icarus, Verilator, cocotb's runner and after Yosys, beside Amaranth's simulator (minutes)
	@command -v iverilog >/dev/null || { echo "Icarus Verilog is missing; get it: apt-get install iverilog" >&2; exit 2; }
	cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m exported $(ARGS)

interop: $(VENV)/.test ## our TCP against the Linux kernel's through a TUN device; the kernel's through an experiment's network, in real time (minutes)
	$(BIN)/python -m pytest -rs tb/interop $(ARGS)

attach: $(VENV)/.test ## whether real hosts' packets keep time: a minute of them over 534 ms; the process stopped for 10 and for 200 ms; how long calls take
	cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m realtime $(ARGS)
	cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m realtime --seconds 10 --stops 10,200
	cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m realtime.calls

formal: $(VENV)/.test $(VENV)/.formal ## the proofs
	$(BIN)/python -m pytest -o faulthandler_timeout=0 tb/formal $(ARGS)

synth: $(VENV)/.runtime $(VENV)/.synth ## LUT, FF, EBR and clock rate of the components on an ECP5
	$(BIN)/python -m bentpipe_boards.synth $(ARGS)

BOARD := ulx3s-85f
PLAN := line
SEEDS :=

bitstream: $(VENV)/.runtime $(VENV)/.synth $(if $(filter ecpix5-%,$(BOARD)),$(VENV)/.litex) ## a bitstream in build/BOARD-PLAN (minutes; PLAN=lan half an hour a seed); BOARD='ulx3s-85f' PLAN='line' SEEDS='1 2 3' choose
	nice -n 5 $(BIN)/bentpipe board build $(BOARD) $(PLAN) $(foreach seed,$(SEEDS),--seed $(seed)) $(ARGS)

bench: $(VENV)/.test ## how fast it is: CPU seconds a simulated second, ns a node's tick, us a segment; beside ns-3 where that is installed
	$(BIN)/python -m bentpipe.bench $(ARGS)
	$(if $(ARGS),,cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m speed.terminals)
	$(if $(ARGS),,cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m realtime.full)

digests: $(VENV)/.test ## whether the catalogue's quick runs carry the same cells at the same ticks as before (a minute)
	cd tb && $(abspath $(BIN))/python -m digests $(ARGS)

SOAKS := widths registers sonet lines reactive credits bursts networks parts beside theory losses hurst catalogue rare resume native simulator tcp capsules

soak: $(VENV)/.test ## long random checks (hours); SOAKS='sonet networks' selects some, ARGS go to each
	cd tb && for part in $(SOAKS); do \
	PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m soak.$$part $(ARGS) || exit 1; done

docs: $(VENV)/.docs ## the documentation, as HTML in build/docs
	$(BIN)/sphinx-build -q -W --keep-going -b html -d build/doctrees docs build/docs
	@echo "Documentation: build/docs/index.html"

docs-check: $(VENV)/.test ## whether the manual's commands, Python and TOML work as they stand (minutes); ARGS='--long' ARGS='tutorial.md'
	@command -v iverilog >/dev/null || { echo "Icarus Verilog is missing; get it: apt-get install iverilog" >&2; exit 2; }
	cd tb && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m manual $(ARGS)

docs-figures: $(VENV)/.runtime ## the pictures of the catalogue's page, of real runs: half an hour to an hour; QUICK=1 of shortened ones
	$(BIN)/bentpipe catalogue run $(if $(QUICK),--quick) --out runs/docs-figures
	$(BIN)/python docs/figures.py runs/docs-figures

clean: ## remove everything made here but run folders (runs/) and the cache of compiled nodes
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# For maintainers: new locks from pyproject.toml. Without UPGRADE=1 versions stay where they can.
locks: $(VENV)/.runtime
	$(INSTALL) uv
	UV=$(BIN)/uv .ci/locks $(if $(UPGRADE),--upgrade)

$(VENV)/bin/python:
	@sh .ci/preflight "$(PYTHON)"
	$(PYTHON) -m venv $(VENV)

# The compilers work while the rest is fetched. What they can't do, a run says.
$(VENV)/.runtime: requirements/compile.lock requirements/runtime.lock pyproject.toml | $(VENV)/bin/python
	@sh .ci/preflight "$(PYTHON)"
	$(INSTALL) --require-hashes -r requirements/compile.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	$(BIN)/bentpipe build $(DEMO) & trap "kill $$!; exit 1" INT TERM; \
	$(INSTALL) --require-hashes -r requirements/runtime.lock && wait || { kill $$!; exit 1; }
	@touch $@

$(VENV)/.%: requirements/%.lock $(VENV)/.runtime
	$(INSTALL) --require-hashes -r $<
	@touch $@
