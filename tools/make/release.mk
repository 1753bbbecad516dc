# Releases, and what is published.

release: package $(PAGE_SCRIPT) $(VENV) build/windows/.done
	@$(PYTHON_BIN)/python tools/release.py build dist/release

# A clone gives the same bytes, and what was made installs where nothing else is.
release-check: release
	@$(PYTHON_BIN)/python tools/release.py versions --tag=$(TAG)
	rm -rf build/release
	git clone --quiet . build/release
	$(MAKE) --no-print-directory -C build/release release
	$(PYTHON_BIN)/python tools/release.py compare dist/release build/release/dist/release
	$(PYTHON_BIN)/python tools/release.py install dist/release
	rm -rf build/release

social-preview: $(VENV) chromium
	@$(PYTHON_BIN)/python tools/social_preview.py build/social-preview.png

recorded-clip: $(NEEDS_live) site chromium
	@$(PYTHON_BIN)/python tools/record_clip.py web/pages/live/recorded.webp

recorded-notebook: build/widget/.done $(NATIVE) $(PAGE_SCRIPT) chromium
	@$(PYTHON_BIN)/python tests/widget/picture.py web/docs/_static/cloud-kernel.webp

pack-docs: docs
	@$(PYTHON_BIN)/python tools/publish_site.py pack build/site build/docs-archives

publish-site: pack-docs $(LITE) $(LIBRARIES) $(MODEL) $(NEEDS_arrow)
	@rm -rf build/pages
	$(PYTHON_BIN)/python tools/publish_site.py lay-out build/site build/docs-archives build/pages

released: $(VENV)
	@$(PYTHON_BIN)/python tools/released.py "$(VERSION)"

address: $(VENV)
	@$(PYTHON_BIN)/python tools/release.py address "$(ADDRESS)"
