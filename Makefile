# Two commands to begin with: `make demo` and `make test`. Both make their own virtual environment.
PYTHON ?= python3
# `test-base` has its own environment: one without torch.
VENV   ?= $(if $(filter test-base,$(MAKECMDGOALS)),.venv-base,.venv)
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo demo-model test test-harness test-base check format docs wheel native-test native-test-emulated native-test-threads native-test-32 native-test-arm test-arm web install fuzz benchmark clean

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

demo-model: $(TRAIN)  ## make the packed model that ships with the package again: runs/shipped
	$(BIN)/micronet run demo/shipped --out runs/shipped
	cp runs/shipped/packed/model.safetensors src/micronet_lm/models/demo.safetensors

test: check  ## all checks and tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Not part of any gate: lm-evaluation-harness needs 44 packages, pandas and SciPy among them.
test-harness: $(READY)  ## lm-evaluation-harness against the server: the same numbers as the Python API (installs lm-eval)
	$(PIP) "micronet-lm[serve-test-heavy]"
	$(BIN)/python -m pytest -q tests/serve/test_clients.py -k lm_evaluation_harness

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

wheel:  ## a wheel for this Python and platform, with the engine: dist/
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps -c constraints.txt -w dist .

# Under AddressSanitizer and UBSan, which choose how the compiler optimizes.
CONFIGURE_TESTS := cmake -S native -DMICRONET_TESTS=ON -DMICRONET_FUZZ=ON -DMICRONET_SANITIZE=ON -DCMAKE_BUILD_TYPE=None

native-test:  ## the native engine's own tests, under AddressSanitizer and UBSan
	$(CONFIGURE_TESTS) -B build/native-test
	cmake --build build/native-test --parallel 2
	build/native-test/native_tests
	build/native-test/failure_tests
	build/native-test/fuzz_open native/fuzz/corpus/open 20000

native-test-emulated:  ## the same with AVX-512 emulated (libsimde-dev): its kernels on any x86 with AVX2
	@if echo '#include <simde/x86/avx512.h>' | $(CXX) -E -x c++ - >/dev/null 2>&1; then \
		$(CONFIGURE_TESTS) -B build/native-emulated -DMICRONET_SIMDE=ON && \
		cmake --build build/native-emulated --parallel 2 --target native_tests && \
		build/native-emulated/native_tests; \
	else \
		echo "native-test-emulated needs the header simde/x86/avx512.h: apt install libsimde-dev"; \
		test "$(SIMDE)" = optional; \
	fi

# Where pointers have 32 bits, sizes from hostile files could wrap. g++-multilib cannot stand beside cross-compilers
# on Debian, so the versioned package is asked for, and the kernel's headers are named.
MULTILIB := -m32 -idirafter /usr/include/$(shell uname -m)-linux-gnu
native-test-32:  ## the native tests and the fuzzer with pointers of 32 bits (g++-12-multilib), under the sanitizers
	@if echo '#include <vector>' | $(CXX) $(MULTILIB) -x c++ -shared -o /dev/null - >/dev/null 2>&1; then \
		$(CONFIGURE_TESTS) -B build/native-32 -DCMAKE_CXX_FLAGS="$(MULTILIB)" -DCMAKE_C_FLAGS="$(MULTILIB)" && \
		cmake --build build/native-32 --parallel 2 --target native_tests fuzz_open && \
		build/native-32/native_tests && build/native-32/fuzz_open native/fuzz/corpus/open 20000; \
	else \
		echo "native-test-32 needs a compiler for 32 bits: apt install --no-install-recommends g++-12-multilib"; \
		test "$(PACKAGES)" = optional; \
	fi

ARM := -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
QEMU := qemu-aarch64 -L /usr/aarch64-linux-gnu
ARM_POSITIONS ?= 300
SHIPPED := src/micronet_lm/models/demo.safetensors
native-test-arm:  ## the native tests for 64-bit ARM under qemu, NEON's bits against AVX2's (g++-aarch64-linux-gnu, qemu-user)
	@if command -v aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null; then \
		cmake -S native -B build/native-arm -DMICRONET_TESTS=ON -DCMAKE_BUILD_TYPE=Release $(ARM) && \
		cmake --build build/native-arm --parallel 2 --target native_tests fingerprint && \
		$(QEMU) build/native-arm/native_tests && \
		for page in 16384 65536; do $(QEMU) -p $$page build/native-arm/fingerprint neon 20 $(SHIPPED) || exit 1; done && \
		$(MAKE) --no-print-directory native-compare-arm; \
	else \
		echo "native-test-arm needs a compiler and an emulator: apt install g++-aarch64-linux-gnu qemu-user"; \
		test "$(PACKAGES)" = optional; \
	fi

# Both programs print a hash of all distributions along random texts of the same models. The one for this processor
# is that of native-test, so that nothing more is compiled after it.
native-compare-arm:
	@if grep -qw avx2 /proc/cpuinfo; then \
		$(CONFIGURE_TESTS) -B build/native-test >/dev/null && \
		cmake --build build/native-test --parallel 2 --target fingerprint >/dev/null && \
		build/native-test/fingerprint avx2 $(ARM_POSITIONS) random $(SHIPPED) >build/avx2.txt && \
		$(QEMU) build/native-arm/fingerprint neon $(ARM_POSITIONS) random $(SHIPPED) >build/neon.txt && \
		cat build/neon.txt && diff build/avx2.txt build/neon.txt && echo "NEON has AVX2's bits."; \
	else \
		echo "NEON is not compared with AVX2: this processor lacks it"; \
	fi

# Not part of any gate: Python under an emulator takes an hour and more.
ARM_TESTS ?= tests/parity tests/runtime
test-arm: $(BASE)  ## the runtime's Python tests for 64-bit ARM: Debian's Python under qemu (native/tools/arm_python.sh)
	$(PIP) nanobind
	native/tools/arm_python.sh build/arm-python $(BIN)/python
	build/arm-python/python -m pytest -q -p no:xdist -p no:cacheprovider $(ARM_TESTS)

web:  ## the engine for browsers and Node: web/dist/micronet.wasm (Debian's clang 14; web/build.sh names the packages)
	web/build.sh

PREFIX ?= /usr/local
INSTALL_BUILD   ?= build/install
INSTALL_OPTIONS ?= -DCMAKE_BUILD_TYPE=Release
install:  ## header, static and shared library and pkg-config file for C and other languages: PREFIX=/usr/local
	cmake -S native -B $(INSTALL_BUILD) -DMICRONET_INSTALL=ON $(INSTALL_OPTIONS) -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build $(INSTALL_BUILD) --parallel 2
	cmake --install $(INSTALL_BUILD)

native-test-threads:  ## the engine's threads under ThreadSanitizer
	cmake -S native -B build/native-threads -DMICRONET_TESTS=ON -DMICRONET_SANITIZE_THREADS=ON -DMICRONET_SCALAR=ON \
		-DCMAKE_BUILD_TYPE=None
	cmake --build build/native-threads --parallel 2 --target native_tests
	build/native-threads/native_tests thread

# What a fuzzer learned is kept in FUZZ_CORPUS with the counts of all runs, so that the next run continues from there.
FUZZ_SECONDS ?= 600
FUZZ_CORPUS  ?= build/fuzz-corpus
FUZZ_TARGETS ?= utf8,json,metadata,codes,tokenizers,text,restore,memories,open
CLANG        ?= $(firstword $(foreach name,clang++-14 clang++-15 clang++-16 clang++,$(shell command -v $(name))))
CAMPAIGN     := $(BIN)/python tests/fuzzing/campaign.py --seconds $(FUZZ_SECONDS) --corpus $(FUZZ_CORPUS)
fuzz:  ## fuzz the readers for FUZZ_SECONDS each: native with libFuzzer (clang), Python's with Atheris if it is there
	@if [ -n "$(CLANG)" ]; then \
		cmake -S native -B build/fuzz -DCMAKE_CXX_COMPILER=$(CLANG) -DMICRONET_FUZZ=ON -DMICRONET_LIBFUZZER=ON \
			-DMICRONET_SANITIZE=ON -DMICRONET_SCALAR=ON -DCMAKE_BUILD_TYPE=None && \
		cmake --build build/fuzz --parallel 2 && \
		$(CAMPAIGN) --targets $(FUZZ_TARGETS); \
	elif [ "$(FUZZ)" = optional ]; then \
		echo "fuzz: left out, it needs clang with libFuzzer: apt install clang-14"; \
	else \
		echo "fuzz: it needs clang with libFuzzer: apt install clang-14"; exit 1; \
	fi
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then \
		$(CAMPAIGN) --targets recipe,packed,both,tokens,checkpoint,personal; \
	else \
		for target in recipe packed both tokens checkpoint personal; do \
			$(BIN)/python tests/fuzzing/readers.py $$target --plain $$((FUZZ_SECONDS * 20)) || exit 1; \
		done; \
	fi

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
