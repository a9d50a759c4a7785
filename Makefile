# Two commands to begin with: `make demo` and `make test`. Both make their own virtual environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help demo demo-model test check format native-test fuzz benchmark clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /	/' | expand -t 14

ENGINE := $(wildcard native/CMakeLists.txt native/include/* native/src/* native/bindings/*)

$(READY): pyproject.toml constraints.txt $(ENGINE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "micronet-lm needs Python 3.11 or newer; name one with: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[train,dev]"
	@touch $@

demo: $(READY)  ## the whole pipeline on the embedded corpus, in minutes: runs/demo
	$(BIN)/micronet run demo --out runs/demo

demo-model: demo  ## make the packed model anew that ships with the package
	cp runs/demo/packed/model.safetensors src/micronet_lm/models/demo.safetensors

test: check  ## all checks and tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY)  ## formatter, linter, strict types, import order
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: $(READY)  ## put the sources in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

native-test:  ## the native engine's own tests, under AddressSanitizer and UBSan
	cmake -S native -B build/native-test -DMICRONET_TESTS=ON -DMICRONET_FUZZ=ON -DMICRONET_SANITIZE=ON -DCMAKE_BUILD_TYPE=None
	cmake --build build/native-test --parallel 2
	build/native-test/native_tests
	build/native-test/fuzz native/fuzz/corpus 20000

FUZZ_INPUTS ?= 1000000
FUZZ_SEED   ?= 1
fuzz:  ## FUZZ_INPUTS hostile files for the native engine, under the sanitizers (minutes)
	cmake -S native -B build/native-test -DMICRONET_TESTS=ON -DMICRONET_FUZZ=ON -DMICRONET_SANITIZE=ON -DCMAKE_BUILD_TYPE=None
	cmake --build build/native-test --parallel 2 --target fuzz
	build/native-test/fuzz native/fuzz/corpus $(FUZZ_INPUTS) $(FUZZ_SEED)

benchmark: $(READY)  ## the side-by-side measurements (minutes)
	$(BIN)/python benchmarks/corpus.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/distillation.py

clean:  ## remove what was made, but no runs and no data
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
