# What is compiled, packed and laid out; pages and the server.

.PHONY: js served site whole-site

native: $(NATIVE)

# Warnings are errors here, not in pyproject.toml: a user's newer compiler may have more.
$(NATIVE): $(C_FILES) pyproject.toml $(wildcard packages/*/pyproject.toml) $(VENV)
	@tools/need.sh cc
	echo "[build] native extension"
	CFLAGS=-Werror $(PYTHON) -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation $(addprefix --editable ,. $(addprefix ./,$(dir $(wildcard packages/*/pyproject.toml)))) >build/native.log 2>&1 \
	  || { cat build/native.log; exit 1; }
	touch $@

$(ASAN): $(C_FILES) $(PY_FILES) pyproject.toml $(VENV) $(TOOLCHAIN)/build_asan.py
	@echo "[build] native extension with sanitizers"
	$(PYTHON) $(TOOLCHAIN)/build_asan.py build/asan

$(FAULTS): $(C_FILES) $(PY_FILES) pyproject.toml $(VENV) $(TOOLCHAIN)/build_asan.py tests/fuzz/faults.c
	@echo "[build] native extension with sanitizers and memory that runs out"
	$(PYTHON) $(TOOLCHAIN)/build_asan.py build/faults --faults

build/fuzz/core%: $(C_FILES) $(FUZZ_FILES) $(TOOLCHAIN)/build_fuzzer.sh
	@tools/need.sh clang libfuzzer$*
	echo "[build] fuzzer of the C core, $* bits"
	$(TOOLCHAIN)/build_fuzzer.sh $* $@

build/fuzz/hostile.so: tests/fuzz/hostile.c $(VENV)
	@mkdir -p build/fuzz
	include=$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
	gcc -shared -fPIC -O1 -g -Wall -Wextra -Wconversion -Werror -Iwasm -I"$$include" $< -o $@

wheel: $(WHEEL) $(PACKAGE_WHEELS)

$(PACKAGE_WHEELS): $(PACKAGE_FILES) pyproject.toml LICENSE $(TOOLCHAIN)/wheels.py $(VENV) $(JS)
	@echo "[build] wheels of the packages"
	mkdir -p dist
	$(PYTHON) $(TOOLCHAIN)/wheels.py packages dist

$(WHEEL): $(C_FILES) $(PY_FILES) $(BRIDGE) pyproject.toml README.md LICENSE \
  build/xbuildenv/.done $(addprefix $(TOOLCHAIN)/,build_wheel.sh wheels.py)
	@tools/need.sh emcc
	$(TOOLCHAIN)/build_wheel.sh build/venv build/xbuildenv dist

$(VECTORS): tests/files/make_vectors.py tests/files/views.py | $(VENV)
	@$(PYTHON) $< $@

# A module without Python, whose tensors are dlpack-web's in JavaScript.
$(EXAMPLE): $(EXAMPLE_FILES) wasm/dlpack.h wasm/generated.h
	@tools/need.sh emcc
	echo "[build] example module in C"
	mkdir -p $(@D)
	PATH=$$PATH$${EMSDK:+:$$EMSDK/upstream/emscripten} emcc $(filter %.c,$^) -o $@ \
	  -Iwasm -std=c11 -O2 -Wall -Wextra -Wconversion -Werror --no-entry -sSTANDALONE_WASM \
	  -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=8MB -sMAXIMUM_MEMORY=64MB

$(BRIDGE): $(TS_FILES) $(NPM) tools/bundle_bridge.mjs
	@echo "[build] JavaScript for the wheel"
	node tools/bundle_bridge.mjs $@

js: $(JS)
$(JS): $(PACKAGE_TS) tsconfig.json tools/join_chunks.mjs tools/bundle_scripts.mjs $(NPM)
	@echo "[build] JavaScript"
	rm -rf js/dist $(PACKAGE_JS:=/js/dist)
	$(NODE_BIN)/tsc --project .
	node tools/join_chunks.mjs js/dist
	for package in $(PACKAGE_JS); do $(NODE_BIN)/tsc --project $$package/js; done
	node tools/bundle_scripts.mjs

# Without Chromium there is none, and pages do without.
$(SNAPSHOT): tools/snapshot.py $(NPM) $(VENV)
	@echo "[build] memory of a Python that has started"
	tools/need.sh chromium || true
	$(PYTHON) tools/snapshot.py node_modules/pyodide $@

# Always laid out again: it is all links, made in an instant.
site: $(JS) $(WHEEL) $(PACKAGE_WHEELS) $(NUMPY) $(SNAPSHOT)
	@$(PYTHON) tools/build_site.py

# With the older Pyodide's NumPy, for tests.
whole-site: $(OLDER_NUMPY) | site
	@$(PYTHON) tools/build_site.py

package: $(JS) $(WHEEL) $(PACKAGE_WHEELS)
	npm pack --silent --pack-destination dist
	mkdir -p dist/packages
	for package in $(PACKAGE_JS); do cp LICENSE $$package; npm pack --silent --ignore-scripts --pack-destination dist/packages ./$$package; done

lite: $(LITE)

# Written again only if a block has changed.
build/docs/notebooks/.done: docs
	@true

$(LITE): $(VENV) $(wildcard web/lite/* web/lite/notebooks/*) tools/snapshot.py $(WHEEL) $(PACKAGE_WHEELS) \
  $(NEEDS_chain) $(PYPI_WHEELS) build/docs/notebooks/.done | site
	@$(PYTHON) tools/fetch_packages.py node_modules/pyodide \
	  build/lite/packages $(LITE_PACKAGES)
	$(PYTHON) web/lite/build.py
	$(PYTHON) tools/snapshot.py build/lite/site/static/pyodide build/lite/site/static/pyodide/snapshot.bin
	touch $@

docs: $(LIBRARIES) $(NATIVE) site
	@$(PYTHON) web/docs/_tools/build.py

demo:
	@$(MAKE) --no-print-directory -j3 $(NEEDS_$(PAGE)) site chromium
	$(PYTHON) web/demo.py --page $(PAGE)

# Serves at once, and shows what is still being built.
serve:
	@python=$$(tools/find_python.sh)
	exec "$$python" web/serve.py --port $(or $(PORT),8000) $(if $(OUTSIDE),--outside) \
	  --build "make --no-print-directory -j2 served"

served: $(LITE) $(NEEDS_arrow) $(NEEDS_live) $(NEEDS_train) docs

