# The suites in browsers: Chromium, Firefox, WebKitGTK.

# Four suites of tests/browser. In test-all test-browser runs all of it: one run counts the cases.
IN_PYODIDE := $(addprefix tests/browser/test_,in_pyodide.py webgpu.py)
PAGES := $(addprefix tests/browser/test_,pages.py renderers.py)
ADAPTERS := tests/browser/test_adapters.py
IN_CHROMIUM := $(if $(READY),,$(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(EXAMPLE) $(PATCHED) site chromium)

test-browser: $(IN_CHROMIUM)
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser $(addprefix --ignore tests/browser/test_,\
	  live.py onnxruntime.py foreign_onnxruntime.py array_libraries.py pyodides.py) \
	  $(if $(WHOLE),,$(patsubst %,--ignore %,$(IN_PYODIDE) $(PAGES) $(ADAPTERS)))

test-in-pyodide: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) -k "not pyodide-0.29")

test-in-older-pyodide: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) -k pyodide-0.29)

test-pages: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(PAGES))

test-adapters: $(IN_CHROMIUM)
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(ADAPTERS))

# What we use of Pyodide's inside, in the versions that hosts bring (minutes).
test-pyodides: $(MORE_PYODIDES) site chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/test_pyodides.py

FOREIGN_ORT := tests/browser/test_foreign_onnxruntime.py

test-onnxruntime: $(MODELS) $(NODES) $(OLDER) $(LIBRARIES) $(ARRAYS) site chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest $(FOREIGN_ORT) tests/browser/test_onnxruntime.py

test-live: $(NEEDS_live) site chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/test_live.py

soak: $(NEEDS_live) site chromium
	@$(PYTHON_BIN)/python tests/browser/soak.py --minutes $(MINUTES)

test-lite: $(LITE) $(ARRAYS) $(PYPI_WHEELS) chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/lite
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/test_array_libraries.py

# No comment behind that: make would take the blank before it for a part of the name.
test-firefox: export BROWSER := firefox
test-firefox: $(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(EXAMPLE) $(PATCHED) $(LITE) package site
	@tools/need.sh firefox-esr chromium # of which the software GPU is
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser --ignore tests/browser/test_onnxruntime.py \
	  --ignore $(FOREIGN_ORT) --ignore tests/browser/test_array_libraries.py --ignore tests/browser/test_pyodides.py
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package/test_pages.py
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/lite -k "tour or interrupted"

test-webkit: site
	@tools/need.sh WebKitWebDriver Xvfb
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/webkit.py
