# `make help` lists the targets. Everything runs from .venv, which `make setup` makes.

PYTHON ?= python3.11
# Where PyTorch's CPU build comes from when it does not already lie in a folder pip looks in.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

# What runs is this folder's code, whatever a shell has exported.
unexport PYTHONPATH

VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -m harness
READY := $(VENV)/.ready
# scale=full in the environment: the artifacts that have a version on real weights, on a GPU.
SCALE := $(if $(scale),--scale $(scale))
HAS_CUDA := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 && echo yes)

.DEFAULT_GOAL := help
.PHONY: help setup corpora probe smoke test lint types layers unit figures claims report reproduce-all compare reference constraints clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv with everything pinned (vLLM for CUDA if there is a GPU, else for CPU)

$(READY): pyproject.toml constraints-cpu.txt harness_torch_imports.pth
	$(PYTHON) -m venv $(VENV)
ifeq ($(HAS_CUDA),yes)
	$(BIN)/python -m pip install -qq -e '.[gpu,dev]'
else
	@echo "no CUDA device: installing vLLM's CPU build (2 minutes, longer if it downloads)"
	@if $(BIN)/python -m pip install -qq --no-index --no-deps torch==2.13.0 2>/dev/null; \
	then echo "PyTorch's CPU build found on disk"; index=; \
	else echo "PyTorch's CPU build from $(TORCH_INDEX)"; index="--extra-index-url $(TORCH_INDEX)"; fi; \
	$(BIN)/python -m pip install -qq $$index --constraint constraints-cpu.txt -e '.[cpu,dev]'
endif
	@# Kyutai's own Moshi, the reference of a test; by itself it would pin an older torch.
	$(BIN)/python -m pip install -qq --no-deps moshi==0.2.13
	@touch $@

corpora: $(READY)  ## fetch, verify and convert the audio (about 60 MB; a second call does nothing)
	$(BIN)/python scripts/fetch_corpora.py

probe: $(READY)  ## fetch and dequantise the small text model of docs/sinks.md (100 MB; a second call does nothing)
	$(BIN)/python scripts/fetch_probe.py

smoke: corpora  ## one live cliff, both variants, one figure (about 3 minutes)
	$(RUN) experiment=cliff

test: lint types layers unit  ## all checks and tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports --no-cache

unit: corpora
	$(BIN)/pytest

figures: $(READY)  ## redraw every figure from the tables
	$(RUN) reproduce --stage figures

claims: $(READY)  ## judge every claim from the tables
	$(RUN) reproduce --stage claims

report: $(READY)  ## write results/report/index.html from what results/ holds
	$(RUN) reproduce --stage report

reproduce-all: corpora probe  ## run every row of conf/artifacts.yaml, draw its figure, judge its claims
	$(RUN) reproduce $(SCALE)

fig-%: corpora probe  ## one artifact by its id: fig-cliff, fig-sinks, ... (python -m harness reproduce --list)
	$(RUN) reproduce $(SCALE) --only $*

compare: $(READY)  ## what results/ holds beside the kept results/reference/, metric by metric
	$(RUN) compare

reference: $(READY)  ## keep what results/ holds as results/reference/
	$(RUN) reproduce --stage reference

constraints: $(READY)  ## write constraints-cpu.txt from what .venv holds
	{ head -1 constraints-cpu.txt; $(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//'; } > $@.new
	mv $@.new constraints-cpu.txt

clean:  ## remove outputs of runs (not the environment, not the corpora)
	rm -rf results/runs results/tables results/figures results/report results/claims.json results/CLAIMS.md outputs multirun
