# Servo: build, test, measure. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools installed by rustup, cargo or uv are found also when the shell's profile was not read.
export PATH := $(HOME)/.cargo/bin:$(HOME)/.local/bin:$(PATH)
BUILD := $(or $(CARGO_TARGET_DIR),target)
VENV := $(CURDIR)/.venv
PYTHON := $(VENV)/bin/python
# Python outside of python/, as seen from there.
ELSEWHERE := ../scripts ../chaos ../examples ../crates/servo-cli/templates

# What the demo and the tests are built with: one profile and one set of features, so that dependencies compile once.
DEV_BUILD := --workspace

# The peers of `make bench-peers`, and those that need a virtualenv of their own.
comma := ,
PEER_LIST := $(or $(PEERS),floor$(comma)servo$(comma)rivers)
PEER_VENVS := $(filter-out floor servo,$(subst $(comma), ,$(PEER_LIST)))

# What is measured or broken needs no pages.
bench bench-peers chaos sim: export SERVO_WITHOUT_UI = 1

# One step after another, also under `make -j`: cargo uses the cores by itself.
.NOTPARALLEL:
.PHONY: help setup ui build demo test lint fmt bench bench-peers chaos fuzz mutants sim clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 13

setup: ## install what is missing: system packages, .venv, cargo-nextest
	@bash scripts/setup.sh

ui: ## build the web UI into ui/dist; needs Node 20 or newer
	@bash scripts/ui.sh build

build: ui ## build the release binary, with the web UI in it
	cargo build --locked --release

demo: ## materialize the flights example for January 2013 in a fresh directory, and query the result
	@bash scripts/setup.sh demo
	@bash scripts/ui.sh offer
	@[ -e "$(BUILD)/debug/servo" ] || echo "demo: compiling servo; on two cores this takes about 8 minutes, once, and make test goes on from it"
	cargo build --locked $(DEV_BUILD) --bin servo
	@SERVO="$(BUILD)/debug/servo" PYTHON="$(PYTHON)" bash scripts/demo.sh

test: lint ## everything that must pass before a commit
	cargo nextest run --locked $(DEV_BUILD) --no-fail-fast
	"$(BUILD)/debug/servo-sim" plant
	cargo test --locked --doc --workspace
	cd python && "$(PYTHON)" -m pytest
	SERVO_BIN="$(BUILD)/debug/servo" "$(PYTHON)" -m pytest -c python/pyproject.toml chaos/tests
	SERVO_BIN="$(abspath $(BUILD))/debug/servo" SERVO_PYTHON="$(PYTHON)" bash scripts/ui.sh test

lint: setup ## formatting, clippy, ruff, mypy, docs, tsc and eslint; changes nothing
	@[ -e "$(BUILD)/debug/servo-sim" ] || echo "lint: compiling for clippy, about 8 minutes on two cores, once; make test then compiles the tests, about 12"
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cd python && "$(PYTHON)" -m ruff check --config pyproject.toml . $(ELSEWHERE)
	cd python && "$(PYTHON)" -m ruff format --config pyproject.toml --check . $(ELSEWHERE)
	cd python && "$(PYTHON)" -m mypy --strict src tests $(ELSEWHERE)
	"$(PYTHON)" scripts/check_docs.py
	bash scripts/ui.sh lint

fmt: setup ## format Rust and Python
	cargo fmt --all
	cd python && "$(PYTHON)" -m ruff format --config pyproject.toml . $(ELSEWHERE)

bench: ui ## print every figure and write target/bench/results.json; FULL=1 adds the slow ones
	cargo build --locked --release -p servo-cli
	cargo run --locked --release -p servo-bench -- --out target/bench/results.json $(if $(filter 1,$(FULL)),--full)
	SERVO_BIN="$(abspath $(BUILD))/release/servo" SERVO_BENCH_BIN="$(abspath $(BUILD))/release/servo-bench" \
	  SERVO_PYTHON="$(PYTHON)" bash scripts/ui.sh bench

bench-peers: ui ## measure Servo beside its peers in one run, and write bench/RESULTS.md; PEERS=floor,servo,rivers WORKLOADS=W1,W2
	@bash scripts/setup.sh
	cargo build --locked --release -p servo-cli
	BENCH_PYTHON="$$(command -v python3)" sh bench/peers/setup.sh $(PEER_VENVS)
	cd bench && SERVO_BIN="$(abspath $(BUILD))/release/servo" SERVO_PYTHON="$(PYTHON)" python3 -m peers.run \
	  --peers $(PEER_LIST) --workloads $(or $(WORKLOADS),W0,W1,W2,W3,W4,W5,W6) --out "$(abspath $(BUILD))/bench/peers.json"
	cd bench && python3 -m peers.report "$(abspath $(BUILD))/bench/peers.json" RESULTS.md peers.svg

chaos: ui ## kill and stop real processes under load, then check that nothing is lost, doubled or left; SECONDS=600 SEED=1
	@bash scripts/setup.sh
	cargo build --locked --release -p servo-cli
	@"$(PYTHON)" -m chaos --servo "$(BUILD)/release/servo" --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) --json "$(BUILD)/chaos.json"

fuzz: ## look for bytes that break a parser; TARGET=name for one of them, SECONDS=60 for each
	@bash scripts/fuzz.sh "$(TARGET)" "$(or $(SECONDS),60)"

mutants: ## plant small mistakes, one at a time, and count those that no test notices; COUNT=300 SEED=1 FILE=path
	@bash scripts/setup.sh
	@PYTHON="$(PYTHON)" bash scripts/mutants.sh "$(or $(COUNT),300)" "$(or $(SEED),1)" $(FILE)

sim: ## run seeds of the simulation on all cores; SEEDS=1000000 for a night, FROM=0
	cargo run --locked --release -p servo-sim -- run --seeds $(or $(SEEDS),20000) --from $(or $(FROM),0)

clean: ## remove build output; .venv stays
	cargo clean
