# Measurements, and the kit that takes them to other machines.

bench: $(NATIVE) $(LIBRARIES) $(PYPI_WHEELS) site chromium
	@$(PYTHON_BIN)/python tests/bench/bench.py

bench-quick: $(NATIVE) $(LIBRARIES) $(PYPI_WHEELS) site chromium
	@echo "[test] tests/bench --quick (figures that mean nothing)"
	$(PYTHON_BIN)/python tests/bench/bench.py --quick >/dev/null

bench-desktop: build/desktop/.done $(NATIVE)
	@build/desktop/bin/python tests/desktop/timing.py

bench-lite: $(LITE) site chromium
	@$(PYTHON_BIN)/python tests/lite/timing.py

bench-widget: build/widget/.done $(NATIVE) $(PAGE_SCRIPT) chromium
	@$(PYTHON_BIN)/python tests/widget/timing.py

gpu-kit: $(KIT)

# What goes into the kit, beside what is built.
KIT_FILES = $(shell find tests -name '*.mjs' -o -name '*.py' -o -name '*.json') \
  tests/kit/run.sh tests/kit/README.txt js/EXCHANGE.md web/site/counters.mjs

$(KIT): $(LIBRARIES) $(RUNTIMES) $(JS) $(WHEEL) $(NUMPY) $(KIT_FILES) | site
	@tools/need.sh libvulkan
	echo "[build] the kit for machines with a GPU (a minute)"
	$(PYTHON_BIN)/python tests/kit/build.py
