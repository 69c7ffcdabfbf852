# SPDX-License-Identifier: Apache-2.0
# The front door. `make help` lists the targets; each needs only a Debian 12 machine and installs what it misses.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS   ?= $(shell nproc)
PYTHON ?= .venv/bin/python
STAMPS := build/.stamps
TOSAIC := build/release/bin/tosaic

# The quick check is a stamp that depends on this file: nothing is asked again until the lists below change.
BUILD_PACKAGES := g++ cmake ninja-build ccache python3 libflatbuffers-dev flatbuffers-compiler libsimdjson-dev \
                  libcli11-dev libfmt-dev libgtest-dev libbenchmark-dev libhwy-dev libxxhash-dev libmd-dev zlib1g-dev \
                  libvulkan-dev libvulkan-volk-dev
# Any Vulkan 1.3 driver will do; Mesa's runs on the CPU.
DRIVER_PACKAGES := libvulkan1 mesa-vulkan-drivers
VULKAN_PACKAGES := $(DRIVER_PACKAGES) vulkan-validationlayers glslang-tools
LINT_PACKAGES  := clang-format-14 clang-tidy-14
FUZZ_PACKAGES  := clang-14 libclang-rt-14-dev
CROSS_PACKAGES := g++-aarch64-linux-gnu qemu-user-static
VENV_PACKAGES  := python3-venv python3-dev

.PHONY: help demo build plugin install wheel python-env pages build-tests dev test test-slice test-fresh test-cpp test-asan test-asan-part test-sanitized test-py test-python test-python-sanitized test-python-races check-aarch64 check-aarch64-runtime test-executorch-suite test-executorch-vulkan-suite test-versions test-peers test-ethosu test-vgf test-vulkan conformance fuzz bench bench-ethosu bench-vgf bench-vulkan bench-large bench-llm matrix models quick-models zoo zoo-env venv format lint lint-part lint-files clean

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

# ---- set-up ---------------------------------------------------------------------------------------------------

$(STAMPS)/packages-%: .ci/install-packages Makefile
	@.ci/install-packages $($*_PACKAGES)
	@mkdir -p $(@D) && touch $@

.venv/bin/python: | $(STAMPS)/packages-VENV
	@echo "== creating .venv"
	@/usr/bin/python3 -m venv .venv

$(STAMPS)/venv: test/requirements.txt | .venv/bin/python
	@echo "== installing the Python peers (torch, executorch, tosa-tools) into .venv; once, a few minutes"
	@.venv/bin/python -m pip install -qq --no-compile --disable-pip-version-check "$$(grep '^torch==' test/requirements.txt)"
	@.venv/bin/python -m pip install -qq --no-compile --disable-pip-version-check -r test/requirements.txt
	@mkdir -p $(@D) && touch $@

# Arm's compiler for Ethos-U and its emulation layer for Vulkan, all that the demo needs of Python packages.
$(STAMPS)/vela: test/requirements.txt | .venv/bin/python
	@.venv/bin/python -m pip install -qq --no-compile --disable-pip-version-check "$$(grep '^ethos-u-vela==' test/requirements.txt)"
	@mkdir -p $(@D) && touch $@

$(STAMPS)/emulation-layer: test/requirements.txt | .venv/bin/python $(STAMPS)/packages-VULKAN
	@.venv/bin/python -m pip install -qq --no-compile --disable-pip-version-check "$$(grep '^ai_ml_emulation_layer' test/requirements.txt)"
	@mkdir -p $(@D) && touch $@

# What makes the Python package.
$(STAMPS)/wheel-tools: test/requirements.txt | .venv/bin/python
	@.venv/bin/python -m pip install -qq --no-compile --disable-pip-version-check $$(grep -E '^(nanobind|scikit-build-core)==' $<)
	@mkdir -p $(@D) && touch $@

# PYTHON=/path/to/python uses an environment that already holds test/requirements.txt.
ifeq ($(PYTHON),.venv/bin/python)
venv: $(STAMPS)/venv $(STAMPS)/packages-VULKAN  ## the pinned Python environment of the peer tests
emulation-layer: $(STAMPS)/emulation-layer
wheel-tools: $(STAMPS)/wheel-tools
else
wheel-tools:
venv: $(STAMPS)/packages-VULKAN
emulation-layer: $(STAMPS)/packages-VULKAN
endif
PYTHON_FOLDER = $(abspath $(dir $(PYTHON))..)

# ---- build ----------------------------------------------------------------------------------------------------

# /usr/bin first: a pip-installed cmake or ninja elsewhere on PATH may need a Python that is not there.
CMAKE := PATH=/usr/bin:$$PATH cmake
# $(call build-of,PRESET,TARGETS): none are all.
build-of = [ -f build/$(1)/build.ninja ] || $(CMAKE) --preset $(1) >/dev/null; \
  $(CMAKE) --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))

build: $(STAMPS)/packages-BUILD  ## the command line tool, at build/release/bin/tosaic
	@$(call build-of,release,tosaic)

PREFIX ?= /usr/local
install: build  ## the tool, libtosaic (shared and static), its headers and package files, below PREFIX
	@$(CMAKE) --build --preset release -j $(JOBS) --target tosaic_shared tosaic_static tosaic_ethosu_c
	@$(CMAKE) --install build/release --prefix $(PREFIX) --component tosaic

# For the ExecuTorch of PYTHON's environment; asked again only when that is another one.
PLUGIN_FOR = $$($(PYTHON) -c 'import importlib.util as u, sys; s = u.find_spec("executorch"); \
  print(s.submodule_search_locations[0]) if s else sys.exit("$(PYTHON) has no ExecuTorch: pip install executorch")')
plugin: $(STAMPS)/packages-BUILD venv  ## the ExecuTorch plug-in, at build/release/lib/libtosaic_executorch.so
	@place=$(PLUGIN_FOR); grep -qsx "TOSAIC_EXECUTORCH:PATH=$$place" build/release/CMakeCache.txt \
	  || $(CMAKE) --preset release -DTOSAIC_EXECUTORCH="$$place" >/dev/null
	@$(CMAKE) --build --preset release -j $(JOBS) --target tosaic_executorch plugin_check

# The module is built in build/release, with what is compiled there already.
# ExecuTorch's plug-in is in it where PYTHON's environment has an ExecuTorch; nothing else of the peers is needed.
wheel: build wheel-tools  ## the Python package, in build/dist
	@rm -rf build/dist
	@PATH=/usr/bin:$$PATH $(PYTHON) -m pip wheel -q --no-deps --no-build-isolation --disable-pip-version-check \
	  --config-settings build-dir=build/release -w build/dist .

build-tests: $(STAMPS)/packages-BUILD
	@$(call build-of,release)

dev: $(STAMPS)/packages-BUILD  ## debug build with address and undefined-behaviour sanitizers, in build/dev
	@$(call build-of,dev)

# ---- tests ----------------------------------------------------------------------------------------------------

# Everything that must hold before a change goes in. The last line reads "N passed, M failed". Downloads and PyTorch
# leave cores idle, so they go beside the build. How each part ended counts as well as what it reported.
PARTS := test-cpp test-asan test-asan-part test-py test-python
test:  ## all tests; the last line counts them
	@rm -rf build/test-results && mkdir -p $(addprefix build/test-results/,$(PARTS))
	@$(MAKE) -j2 build-tests quick-models
	@for part in $(PARTS); do code=0; $(MAKE) $$part || code=$$?; echo $$code > build/test-results/$$part/exit; done
	@python3 test/count_results.py build/test-results $(PARTS)

# $(call ctest-of,BUILD,PART): its programs, each with a report of its own beside ctest's.
ctest-of = rm -rf build/test-results/$(2) && mkdir -p build/test-results/$(2) && \
  PATH=/usr/bin:$$PATH VIRTUAL_ENV=$(PYTHON_FOLDER) GTEST_OUTPUT=xml:$(CURDIR)/build/test-results/$(2)/ \
    ctest --test-dir build/$(1) -j $(JOBS) --no-tests=error \
    --output-on-failure --output-junit $(CURDIR)/build/test-results/$(2)/ctest.xml

# What a fresh machine is asked: is there all that each part needs? The answers of all tests are `make test`'s business.
SLICES := slice-cpp slice-asan slice-py slice-python
test-slice: export GTEST_TOTAL_SHARDS := 1000
test-slice: export GTEST_SHARD_INDEX := 0
test-slice: build-tests plugin python-env quick-models emulation-layer zoo-env  ## the first test of each test file; minutes
	@rm -rf $(addprefix build/test-results/,$(SLICES)) && mkdir -p $(addprefix build/test-results/,$(SLICES))
	@code=0; $(call ctest-of,release,slice-cpp) || code=$$?; \
	  echo $$code > build/test-results/slice-cpp/exit
	@$(call build-of,sanitized,test_ir)
	@code=0; $(call ctest-of,sanitized,slice-asan) $(call only,ir) || code=$$?; echo $$code > build/test-results/slice-asan/exit
	@code=0; $(PYTHON) -m pytest -q test --first-of-each-file --ignore test/python -n $(JOBS) \
	  --junitxml=build/test-results/slice-py/pytest.xml || code=$$?; echo $$code > build/test-results/slice-py/exit
	@code=0; PATH=$(PYTHON_FOLDER)/bin:$$PATH build/python-env/bin/python -m pytest -q test/python --first-of-each-file -n $(JOBS) \
	  --junitxml=build/test-results/slice-python/pytest.xml || code=$$?; echo $$code > build/test-results/slice-python/exit
	@python3 test/count_results.py build/test-results $(SLICES)

# SUITES are Debian's; the first is the one that is supported, the second the next.
SUITES ?= bookworm trixie
test-fresh:  ## demo and test-slice in Debian systems that have nothing, made by debootstrap; as root
	@.ci/test-fresh $(SUITES)

test-cpp: build-tests emulation-layer  ## C++ tests, release build
	@$(call ctest-of,release,test-cpp)

# Under AddressSanitizer and UndefinedBehaviorSanitizer, from the readers to the API: all that takes little, and of the
# programs that take long one part in SHARDS, another one with every commit. SEED=7 is part 7.
ASAN_TESTS    ?= ir formats read line plan pack partition pipeline rewrites runtime tosa targets ethosu vulkan
SAMPLED_TESTS ?= ops cpu api
SHARDS        ?= 8
SEED          ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 0)
THREADED_TESTS ?= cpu api
only = -R "^($$(echo $(1) | tr ' ' '|'))$$"

test-asan: $(STAMPS)/packages-BUILD emulation-layer  ## readers, stages, executors, runtime with sanitizers
	@$(call build-of,sanitized,$(addprefix test_,$(ASAN_TESTS)))
	@$(call ctest-of,sanitized,test-asan) $(call only,$(ASAN_TESTS))

test-asan-part: $(STAMPS)/packages-BUILD  ## a part of the lowerings', kernels' and API's tests with sanitizers; SEED chooses
	@$(call build-of,sanitized,$(addprefix test_,$(SAMPLED_TESTS)))
	@echo "== part $$(( $(SEED) % $(SHARDS) )) of $(SHARDS)"
	@export GTEST_TOTAL_SHARDS=$(SHARDS) GTEST_SHARD_INDEX=$$(( $(SEED) % $(SHARDS) )); \
	  $(call ctest-of,sanitized,test-asan-part) $(call only,$(SAMPLED_TESTS))

test-sanitized: build quick-models emulation-layer  ## everything with sanitizers, threads with theirs; an hour or two
	@$(call build-of,sanitized)
	@$(call ctest-of,sanitized,test-sanitized)
	@$(PYTHON) -m pytest -q test/cli test/delegates --tosaic build/sanitized/bin/tosaic -n $(JOBS) --dist worksteal
	@$(call build-of,tsan,$(addprefix test_,$(THREADED_TESTS)))
	@$(call ctest-of,tsan,test-threads) $(call only,$(THREADED_TESTS))

# Another processor: Debian's cross-compiler, its arm64 packages unpacked in build/arm64-root, and qemu. Kernels are held to
# the interpreter (test_cpu), and tool and Python package to what this machine's make and compute.
ARM64_ROOT := build/arm64-root
check-aarch64-runtime: build quick-models $(STAMPS)/packages-CROSS $(STAMPS)/vela  ## the runtime with its TOSA and Ethos-U delegates for aarch64, under qemu; three minutes of CPU
	@$(CMAKE) --build --preset release -j $(JOBS) --target run_tosa run_ethos_u
	@.ci/arm64-root $(ARM64_ROOT) $(filter lib% zlib%,$(BUILD_PACKAGES)) libpython3-dev python3
	@$(CMAKE) --preset aarch64 -DTOSAIC_PYTHON=ON -DTOSAIC_ARM64_ROOT=$(CURDIR)/$(ARM64_ROOT) -DPython_EXECUTABLE=$(abspath $(PYTHON)) >/dev/null
	@$(CMAKE) --build --preset aarch64 -j $(JOBS) --target run_tosa run_ethos_u
	@PATH=$(PYTHON_FOLDER)/bin:$$PATH $(PYTHON) test/aarch64/run_aarch64.py --runtime $(TOSAIC) build/aarch64/bin/tosaic $(ARM64_ROOT)

check-aarch64: check-aarch64-runtime  ## everything but the ExecuTorch plug-in compiled for aarch64, and tried under qemu; an hour
	@$(CMAKE) --build --preset aarch64 -j $(JOBS) --target tosaic tosaic_python tosaic_shared tosaic_ethosu_c test_cpu
	@rm -rf build/aarch64/numpy && $(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --only-binary=:all: \
	  --platform manylinux2014_aarch64 --target build/aarch64/numpy "$$(grep '^numpy==' test/requirements.txt)"
	@PATH=$(PYTHON_FOLDER)/bin:$$PATH $(PYTHON) test/aarch64/run_aarch64.py $(TOSAIC) build/aarch64/bin/tosaic $(ARM64_ROOT) build/aarch64/python build/aarch64/numpy
	@$(call ctest-of,aarch64,check-aarch64) $(call only,cpu)

test-py: build plugin  ## all of Python but the package: golden text, the demo, peers (fast subset), delegates, fuzz seeds, conformance slice
	@rm -rf build/test-results/test-py && mkdir -p build/test-results/test-py
	@$(MAKE) -s zoo-env || echo "== without the zoo's libraries its tests fail, the others run"
	@$(PYTHON) -m pytest -q test --ignore test/python -n $(JOBS) --dist worksteal --junitxml=build/test-results/test-py/pytest.xml

# An environment of its own: the wheel, and the peers where they are installed already.
python-env: venv plugin wheel
	@$(PYTHON) -m venv --clear build/python-env
	@$(PYTHON) -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  >$$(build/python-env/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/peers.pth
	@build/python-env/bin/python -m pip install -q --no-deps --disable-pip-version-check build/dist/*.whl

test-python: python-env quick-models  ## the Python package, installed from its wheel
	@rm -rf build/test-results/test-python && mkdir -p build/test-results/test-python
	@PATH=$(PYTHON_FOLDER)/bin:$$PATH build/python-env/bin/python -m pytest -q test/python -n $(JOBS) --dist worksteal \
	  --junitxml=build/test-results/test-python/pytest.xml
	@$(call executorch-suite,$(CURDIR)/build/test-results/test-python/executorch_suite.xml,400,0,ours,$(SUITE) $(SUITE_FILES))
	@$(call executorch-suite,$(CURDIR)/build/test-results/test-python/executorch_quantized_suite.xml,1000,0,ours_quantized,$(SUITE))
	@$(call executorch-suite,$(CURDIR)/build/test-results/test-python/executorch_vulkan_suite.xml,50,0,vulkan,$(VULKAN_SUITE))

# The core and the ExecuTorch plug-in with AddressSanitizer and UBSan in a Python that has neither, so both are loaded before
# it; Python's objects lie in memory that they see.
PYTHON_REPORTS = $(CURDIR)/build/test-results/test-python-sanitized
test-python-sanitized: $(STAMPS)/packages-BUILD quick-models  ## a part of the Python package's tests with sanitizers; SEED chooses, SHARDS=1 is all
	@$(CMAKE) --preset sanitized -DTOSAIC_PYTHON=ON -DTOSAIC_EXECUTORCH="$(PLUGIN_FOR)" -DPython_EXECUTABLE=$(abspath $(PYTHON)) >/dev/null
	@$(CMAKE) --build --preset sanitized -j $(JOBS) --target tosaic tosaic_python
	@rm -rf $(PYTHON_REPORTS) && mkdir -p $(PYTHON_REPORTS)
	@echo "== part $$(( $(SEED) % $(SHARDS) )) of $(SHARDS)"
	@libraries=$$(for name in asan ubsan stdc++; do g++ -print-file-name=lib$$name.so; done | paste -sd:); \
	  PATH=$(PYTHON_FOLDER)/bin:$$PATH LD_PRELOAD=$$libraries PYTHONMALLOC=malloc SHARDS=$(SHARDS) SEED=$(SEED) \
	  ASAN_OPTIONS=detect_leaks=1:leak_check_at_exit=0:abort_on_error=1:detect_stack_use_after_return=1:log_path=$(PYTHON_REPORTS)/report \
	  UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=build/sanitized/python:test/python \
	  TOSAIC_EXECUTORCH_PLUGIN=$(CURDIR)/build/sanitized/python/tosaic/lib/libtosaic_executorch.so \
	  $(PYTHON) -m pytest -q test/python -p sanitized -p no:faulthandler -n $(JOBS) --dist worksteal --junitxml=$(PYTHON_REPORTS)/pytest.xml

# As above with ThreadSanitizer, which sees what is compiled for it alone: PyTorch's threads and a driver's are theirs. It
# wants its addresses where they always are (setarch). Tests of threads are all in every part.
RACES = $(CURDIR)/build/test-results/test-python-races
test-python-races: $(STAMPS)/packages-BUILD quick-models  ## the Python package in threads, and a part of its other tests, with ThreadSanitizer; SEED, SHARDS
	@$(CMAKE) --preset tsan -DTOSAIC_PYTHON=ON -DTOSAIC_EXECUTORCH="$(PLUGIN_FOR)" -DPython_EXECUTABLE=$(abspath $(PYTHON)) >/dev/null
	@$(CMAKE) --build --preset tsan -j $(JOBS) --target tosaic tosaic_python
	@rm -rf $(RACES) && mkdir -p $(RACES)
	@libraries=$$(for name in tsan stdc++; do g++ -print-file-name=lib$$name.so; done | paste -sd:); \
	  PATH=$(PYTHON_FOLDER)/bin:$$PATH LD_PRELOAD=$$libraries SHARDS=$(SHARDS) SEED=$(SEED) \
	  TSAN_OPTIONS=ignore_noninstrumented_modules=1:report_thread_leaks=0:exitcode=0:log_path=$(RACES)/report \
	  PYTHONPATH=build/tsan/python:test/python TOSAIC_EXECUTORCH_PLUGIN=$(CURDIR)/build/tsan/python/tosaic/lib/libtosaic_executorch.so \
	  setarch -R $(PYTHON) -m pytest -q test/python -p sanitized -p no:faulthandler -n $(JOBS) --dist worksteal --junitxml=$(RACES)/pytest.xml

# ExecuTorch's own tests of its Arm backends and of its Vulkan one, with tosaic under them.
# $(call executorch-suite,REPORT,SAMPLE,SEED,PLUGIN,TESTS)
SUITE ?= executorch/backends/arm/test/ops
VULKAN_SUITE ?= executorch/backends/vulkan/test/test_vulkan_delegate.py
SAMPLE ?= 40
# Of the folders that take long to collect: `make test` has two tests of each. The number chooses files that are quick.
PLUGIN ?= ours
SUITE_FILES = $$($(abspath $(PYTHON)) $(CURDIR)/test/peers/executorch_suite/chosen.py 10910 misc misc models)
executorch-suite = cd "$$($(PYTHON) -c "import sysconfig; print(sysconfig.get_path('purelib'))")" && \
  PATH=$(PYTHON_FOLDER)/bin:$$PATH PYTHONPATH=$(CURDIR)/test/peers/executorch_suite SAMPLE=$(2) SEED=$(3) LEAST=2 \
    $(CURDIR)/build/python-env/bin/python -m pytest -q -p $(4) -p no:cacheprovider -c /dev/null --rootdir=. -W ignore \
      --tb=short -n $(JOBS) --dist worksteal --junitxml=$(1) $(5)

test-executorch-suite: python-env  ## ExecuTorch's 12,000 tests of its Arm backends on tosaic's: every SAMPLE-th (40), the SEED-th of them
	@$(call executorch-suite,$(CURDIR)/build/executorch_suite.xml,$(SAMPLE),$(or $(SEED),0),$(PLUGIN),$(SUITE))

test-executorch-vulkan-suite: python-env  ## ExecuTorch's 101 tests of its Vulkan backend on tosaic's; ten minutes
	@$(call executorch-suite,$(CURDIR)/build/executorch_vulkan_suite.xml,1,0,vulkan,$(VULKAN_SUITE))

# In environments of their own, made and removed: gigabytes of downloads. PARTS_OF_VERSIONS="torch --only 2.14.1" is one of them.
PARTS_OF_VERSIONS ?=
test-versions: wheel quick-models  ## other versions of PyTorch and of the peers; half an hour, and gigabytes of downloads
	@$(PYTHON) test/versions/run_versions.py $(PARTS_OF_VERSIONS)

test-peers: build venv  ## every model against PyTorch, tosa_reference_model and ExecuTorch
	@$(PYTHON) -m pytest -q test/peers --ignore test/peers/test_ethosu.py --all-models -n $(JOBS) --dist worksteal

test-ethosu: build-tests venv  ## every Ethos-U network, model and conformance sample, on every product
	@$(PYTHON) -m pytest -q test/ethosu test/peers/test_ethosu.py --all-models -n $(JOBS) --dist worksteal

test-vulkan: build-tests venv  ## every model, operator graph and conformance sample as compute shaders, under the validation layer
	@TOSAIC_ALL_SHADERS=1 .ci/validated --opens build/release/bin/test_shaders --gtest_brief=1
	@$(PYTHON) -m pytest -q test/peers/test_vulkan.py --all-models --tosaic .ci/validated-tool -n $(JOBS) --dist worksteal
	@$(PYTHON) -m pytest -q test/vulkan_runtime --all-models
	@$(PYTHON) test/conformance/run_sample.py all --executors shaders --tosaic .ci/validated-tool --jobs $(JOBS)

test-vgf: build-tests venv  ## every model and operator graph as VGF, on the CPU, on Vulkan and in Arm's runner
	@PATH=/usr/bin:$$PATH VIRTUAL_ENV=$(PYTHON_FOLDER) ctest --test-dir build/release -R '^vulkan$$' --output-on-failure
	@$(PYTHON) -m pytest -q test/peers/test_vgf*.py --all-models -n $(JOBS) --dist worksteal
	@$(PYTHON) test/conformance/run_sample.py slice --executors vgf vulkan scenario --jobs $(JOBS)

conformance: build venv  ## the TOSA 1.0.1 conformance sample, on both executors
	@$(PYTHON) test/conformance/run_sample.py all --jobs $(JOBS)

FUZZ_SECONDS ?= 60
fuzz: build $(STAMPS)/packages-FUZZ $(STAMPS)/vela  ## every fuzzer for FUZZ_SECONDS (60)
	@$(call build-of,fuzz)
	@PATH="$(PYTHON_FOLDER)/bin:$$PATH" python3 test/fuzz/make_seeds.py $(TOSAIC) build/fuzz/seeds
	@.ci/run-fuzzers build/fuzz/bin $(FUZZ_SECONDS)

matrix: build-tests  ## what targets take: test/pipeline/support_matrix.txt and docs/operators.md, written again
	@TOSAIC_BLESS=1 build/release/bin/test_pipeline --gtest_filter='SupportMatrix.*' --gtest_brief=1
	@$(TOSAIC) ops --markdown >docs/operators.md

errors: build  ## docs/errors.md, written again
	@$(TOSAIC) explain-error --markdown >docs/errors.md

pages: python-env  ## what the Python package's tests print (_core.pyi, _compile_options.py, docs/parity.md), written again
	@TOSAIC_BLESS=1 build/python-env/bin/python -m pytest -q test/python/test_types.py test/python/test_parity.py -k 'stub or page or options'

models: venv  ## the test models, into build/models
	@$(PYTHON) test/models/make_models.py --output build/models

# Classes of other libraries, without their compiled operators, which belong to other builds of PyTorch and no model needs.
build/zoo-env/done: test/models/zoo_requirements.txt | venv
	@rm -rf build/zoo-env && $(PYTHON) -m venv build/zoo-env
	@$(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' > $$(echo build/zoo-env/lib/python3*/site-packages)/peers.pth
	@build/zoo-env/bin/python -m pip install -q --no-deps --no-compile --disable-pip-version-check -r $<
	@rm -rf build/zoo-env/lib/python3*/site-packages/torchaudio/lib
	@touch $@

zoo-env: build/zoo-env/done  ## the libraries whose models the zoo has

zoo: build zoo-env  ## 86 families of models on the targets, one table in build/zoo/zoo.md; half an hour
	@build/zoo-env/bin/python -W ignore test/models/zoo.py --tosaic build/release/bin/tosaic --output build/zoo

quick-models: venv
	@mkdir -p build/models
	@$(PYTHON) test/models/make_models.py --quick --output build/models 2>build/models/make_models.log \
	  || { cat build/models/make_models.log; exit 1; }

# ---- use ------------------------------------------------------------------------------------------------------

demo: build $(STAMPS)/vela $(STAMPS)/packages-DRIVER  ## compile, explain and run the handwritten digits, also for an NPU and on Vulkan; no PyTorch needed
	@PATH="$(CURDIR)/.venv/bin:$$PATH" examples/digits/demo.sh $(TOSAIC)

bench: build venv  ## tosaic beside its peers, one table
	@$(CMAKE) --build --preset release -j $(JOBS) --target in_process
	@$(PYTHON) bench/bench.py --tosaic $(TOSAIC) --output build/bench.md

bench-ethosu: build venv  ## Vela's estimates for our TOSA and for ExecuTorch's, every model
	@$(PYTHON) bench/ethos_u.py --tosaic $(TOSAIC) --output build/bench-ethosu.md

bench-vgf: build venv  ## VGF files and their making, beside Arm's model converter and ExecuTorch's flow
	@$(PYTHON) bench/vgf.py --tosaic $(TOSAIC) --output build/bench-vgf.md

bench-large: build venv  ## decoders of 60 to 250 million random weights: seconds, memory, bytes of each command
	@$(PYTHON) bench/large_weights.py --tosaic $(TOSAIC) --output build/bench-large.md

bench-llm: build venv  ## a decoder of 0.43 billion weights, of 32 to 4 bits, beside llama.cpp where LLAMA=PYTHON has llama-cpp-python, and ExecuTorch's XNNPACK with XNNPACK=1 (a quarter of an hour, once)
	@$(PYTHON) bench/llm.py --tosaic $(TOSAIC) $(if $(LLAMA),--llama $(LLAMA)) $(if $(XNNPACK),--xnnpack $(PYTHON)) --output build/bench-llm.md

bench-vulkan: build venv  ## compute shaders on this machine's Vulkan device, beside ncnn's from PyPI
	@$(PYTHON) bench/vulkan.py --tosaic $(TOSAIC) --output build/bench-vulkan.md

# ---- hygiene --------------------------------------------------------------------------------------------------

CXX_FILES = $(shell git ls-files '*.cpp' '*.h' '*.hpp')

format: $(STAMPS)/packages-LINT  ## rewrite the sources in the house format
	@clang-format-14 -i $(CXX_FILES)

lint: lint-files  ## format, SPDX lines, file sizes, clang-tidy
	@$(call tidy,cat)

lint-part: lint-files  ## as lint, with an eighth of clang-tidy's files; SEED chooses
	@$(call tidy,awk 'NR % $(SHARDS) == $(SEED) % $(SHARDS)')

lint-files: $(STAMPS)/packages-BUILD $(STAMPS)/packages-LINT
	@clang-format-14 --dry-run -Werror $(CXX_FILES)
	@python3 .ci/check-files

# $(call tidy,CHOOSE): of the files that CHOOSE leaves.
define tidy
[ -f build/lint/build.ninja ] || $(CMAKE) --preset lint >/dev/null; \
  $(CMAKE) --build build/lint --target flatbuffers_headers; \
  git ls-files 'src/*.cpp' | $(1) | xargs -P $(JOBS) -n 4 clang-tidy-14 -p build/lint --quiet --warnings-as-errors='*'
endef

clean:  ## remove the builds (keeps .venv and cached models)
	@rm -rf build/release build/dev build/sanitized build/fuzz build/coverage build/tsan build/test-results
