# The suites in browsers: Chromium, Firefox, WebKitGTK.

# Four suites of tests/browser. In test-all test-browser runs all of it: one run counts the cases.
IN_PYODIDE := $(addprefix tests/browser/hosts/test_,in_pyodide.py webgpu.py)
PAGES := tests/browser/pages tests/browser/libraries/test_renderers.py
LIVE := tests/browser/pages/test_live.py
ADAPTERS := tests/browser/libraries/test_adapters.py
# Those with suites of their own, and what they need.
ONNXRUNTIME := tests/browser/onnxruntime
FOREIGN_ORT := $(ONNXRUNTIME)/test_foreign_onnxruntime.py
ARRAY_LIBRARIES := tests/browser/libraries/test_array_libraries.py
IN_PYODIDES := tests/browser/hosts/test_pyodides.py
IN_CHROMIUM := $(if $(READY),,$(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(if $(WHOLE),$(SOURCES)) $(EXAMPLE) $(PATCHED) whole-site chromium)

test-browser: $(IN_CHROMIUM)
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser $(patsubst %,--ignore %,\
	  $(LIVE) $(ONNXRUNTIME) $(ARRAY_LIBRARIES) $(IN_PYODIDES)) \
	  $(if $(WHOLE),,$(patsubst %,--ignore %,$(IN_PYODIDE) $(PAGES) $(ADAPTERS)))

test-in-pyodide: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) \
	  -k "not pyodide-0.29 and not sessions")

test-in-older-pyodide: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) -k pyodide-0.29)

test-pages: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(PAGES) --ignore $(LIVE))

test-adapters: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(ADAPTERS))

# What we use of Pyodide's inside, in the versions that hosts bring (minutes).
test-pyodides: $(MORE_PYODIDES) site chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDES)

test-onnxruntime: $(MODELS) $(NODES) $(OLDER) $(LIBRARIES) $(ARRAYS) $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) -k "sessions and not pyodide-0.29")
	$(SUITE) $(PYTHON_BIN)/python -m pytest $(ONNXRUNTIME)

test-live: $(NEEDS_live) site chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest $(LIVE)

soak: $(NEEDS_live) site chromium
	@$(PYTHON_BIN)/python tests/browser/pages/soak.py --minutes $(MINUTES)

test-lite: $(LITE) $(ARRAYS) $(PYPI_WHEELS) docs chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/lite
	$(SUITE) $(PYTHON_BIN)/python -m pytest $(ARRAY_LIBRARIES)

# A Jupyter server of its own for each run of the suite, on a free port of this machine. With
# BROWSER=firefox it runs in Firefox.
test-widget: build/widget/.done $(NATIVE) $(PAGE_SCRIPT) $(JS) $(LITE) $(LITE_WIDGETS) chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/widget

# No comment behind that: make would take the blank before it for a part of the name.
test-firefox: export BROWSER := firefox
test-firefox: $(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(SOURCES) $(EXAMPLE) $(PATCHED) $(LITE) package whole-site \
  build/widget/.done $(NATIVE) $(PAGE_SCRIPT) $(LITE_WIDGETS)
	@tools/need.sh firefox-esr chromium # of which the software GPU is
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser $(patsubst %,--ignore %,\
	  $(ONNXRUNTIME) $(ARRAY_LIBRARIES) $(IN_PYODIDES))
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package/test_pages.py
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/lite -k "tour or interrupted"
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/widget

test-webkit: whole-site
	@tools/need.sh WebKitWebDriver Xvfb
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/hosts/webkit.py
