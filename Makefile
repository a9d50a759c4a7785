# Two commands to begin with: `make demo` and `make test`. Both make their own virtual environment.
PYTHON ?= python3
# `test-base` has its own environment: one without torch.
VENV   ?= $(if $(filter test-base,$(MAKECMDGOALS)),.venv-base,.venv)
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo demo-model test test-base check format docs native-test native-test-emulated fuzz benchmark clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /	/' | expand -t 14

ENGINE := $(wildcard native/CMakeLists.txt native/include/* native/src/* native/bindings/*)

# The environment is made in steps, so that nobody waits for torch who does not need it.
BASE  := $(VENV)/.base
TRAIN := $(VENV)/.train
TESTS := $(VENV)/.tests
READY := $(VENV)/.ready
SITE  := $(VENV)/.site

$(BASE): pyproject.toml constraints.txt $(ENGINE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "micronet-lm needs Python 3.11 or newer; name one with: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

# By name the package is there already: pip adds what the extras need and does not build the engine
# again. Most of torch is never imported, so that its modules become byte code when they are: 15 s less.
$(TRAIN): $(BASE)
	$(PIP) --no-compile "micronet-lm[train,report]"
	@touch $@

$(TESTS): $(BASE)
	$(PIP) "micronet-lm[test]"
	@touch $@

$(READY): $(BASE)
	$(PIP) "micronet-lm[train,dev]"
	@$(BIN)/python -m compileall -q -j 2 $(VENV)/lib >/dev/null || true # in tests, its warnings would be errors
	@touch $@

$(SITE): $(READY)
	$(PIP) "micronet-lm[docs]"
	@touch $@

demo: $(BASE)  ## a first prediction, then the whole pipeline on the embedded corpus, in minutes: runs/demo
	@echo 'The model that ships with the package on what follows "Return a new", before anything is trained:'
	$(BIN)/micronet predict "Return a new"
	@echo 'Next, what training needs (torch), and a model like that one from text:'
	@$(MAKE) --no-print-directory VENV=$(VENV) $(TRAIN)
	$(BIN)/micronet run demo --out runs/demo

demo-model: $(TRAIN)  ## make the packed model anew that ships with the package: runs/shipped
	$(BIN)/micronet run demo/shipped --out runs/shipped
	cp runs/shipped/packed/model.safetensors src/micronet_lm/models/demo.safetensors

test: check  ## all checks and tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-base: $(TESTS)  ## the tests that need no torch; with PYTHON=python3.13 VENV=.venv-3.13 for another Python
	@! $(BIN)/python -c 'import torch' 2>/dev/null || \
		{ echo "$(VENV) has torch; name another environment with: make test-base VENV=.venv-base"; exit 1; }
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY)  ## formatter, linter, strict types, import order
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: $(READY)  ## put the sources in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The whole repository is the source, so that links between the pages work there and on the site.
docs: $(SITE)  ## the documents as a site, warnings as errors, without the network: build/site/index.html
	$(BIN)/python -m sphinx -W --keep-going -n -q -E -c docs -d build/site-doctrees . build/site

# Under AddressSanitizer and UBSan, which choose how the compiler optimizes.
CONFIGURE_TESTS := cmake -S native -DMICRONET_TESTS=ON -DMICRONET_FUZZ=ON -DMICRONET_SANITIZE=ON -DCMAKE_BUILD_TYPE=None

native-test:  ## the native engine's own tests, under AddressSanitizer and UBSan
	$(CONFIGURE_TESTS) -B build/native-test
	cmake --build build/native-test --parallel 2
	build/native-test/native_tests
	build/native-test/fuzz native/fuzz/corpus 20000

native-test-emulated:  ## the same with AVX-512 emulated (libsimde-dev): its kernels on any x86 with AVX2
	@if echo '#include <simde/x86/avx512.h>' | $(CXX) -E -x c++ - >/dev/null 2>&1; then \
		$(CONFIGURE_TESTS) -B build/native-emulated -DMICRONET_SIMDE=ON && \
		cmake --build build/native-emulated --parallel 2 --target native_tests && \
		build/native-emulated/native_tests; \
	else \
		echo "native-test-emulated needs the header simde/x86/avx512.h: apt install libsimde-dev"; \
		test "$(SIMDE)" = optional; \
	fi

FUZZ_INPUTS ?= 1000000
FUZZ_SEED   ?= 1
fuzz:  ## FUZZ_INPUTS hostile files for the native engine, under the sanitizers (minutes)
	$(CONFIGURE_TESTS) -B build/native-test
	cmake --build build/native-test --parallel 2 --target fuzz
	build/native-test/fuzz native/fuzz/corpus $(FUZZ_INPUTS) $(FUZZ_SEED)

benchmark: $(BASE)  ## speed of training, distillation, corpora and the engine, side by side (minutes)
	$(PIP) --no-compile "micronet-lm[bench]"
	@echo 'Four of the programs in benchmarks/: training, distillation, corpus, engine. README.md there has the others.'
	$(BIN)/python benchmarks/training.py --precision float32 --rounds 5
	$(BIN)/python benchmarks/distillation.py --precision float32 --rounds 3
	@if ls "$${MICRONET_DATA:-../shared/data}"/wikitext-2* >/dev/null 2>&1; then \
		echo $(BIN)/python benchmarks/corpus.py; $(BIN)/python benchmarks/corpus.py; \
	else \
		echo "corpus.py is left out: set MICRONET_DATA to a folder with wikitext-2*.zip or .tar*"; \
	fi
	$(BIN)/python benchmarks/engine.py --bits 9 --rounds 5

clean:  ## remove what was made, but no runs and no data
	rm -rf $(VENV) .venv-base build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
