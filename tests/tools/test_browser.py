"""web/browser.py: a suite that is for one browser does not run in another."""

import pytest
from browser import Where, WrongBrowserError, is_firefox

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) {}Safari/537.36"


class Page:
    def __init__(self, *told):
        self.told = list(told)

    def evaluate(self, expression):
        return self.told


@pytest.mark.parametrize(
    ("agent", "adapter", "name"),
    [
        (CHROME.format("Chrome/156.0.0.0 "), "google swiftshader", "Chrome 156.0.0.0"),
        (CHROME.format("Version/60.5 "), "", "AppleWebKit 537.36"),
        ("Mozilla/5.0 (X11) Gecko/20100101 Firefox/153.0", "", "Firefox 153.0"),
        ("something else", "", "something else"),
    ],
)
def test_browsers_are_told_apart(agent, adapter, name):
    where = Where.of(Page(agent, adapter))
    assert (where.browser, where.webgpu) == (name, adapter)
    assert str(where) == f"{name}, WebGPU: {adapter or 'none'}"


@pytest.mark.parametrize(
    ("browser", "webgpu", "wanted", "words"),
    [
        ("Chrome 1", "google swiftshader", ("AppleWebKit", None), "needs AppleWebKit"),
        ("Firefox 1", "mesa", ("Chrome", "swiftshader"), "needs Chrome"),
        ("Chrome 1", "", ("Chrome", "swiftshader"), "WebGPU by swiftshader"),
        ("Chrome 1", "nvidia", ("Chrome", "swiftshader"), "WebGPU by swiftshader"),
        ("Firefox 1", "", ("Firefox", ""), "WebGPU by anything"),
        ("AppleWebKit 1", "apple", ("AppleWebKit", None), "no WebGPU"),
    ],
)
def test_the_wrong_place_is_an_error(browser, webgpu, wanted, words):
    with pytest.raises(WrongBrowserError, match=words):
        Where(browser, webgpu).must_be(*wanted)


@pytest.mark.parametrize(
    ("browser", "webgpu", "wanted"),
    [
        ("Chrome 1", "google swiftshader", ("Chrome", "swiftshader")),
        ("Firefox 1", "an adapter without a name", ("Firefox", "")),
        ("AppleWebKit 1", "", ("AppleWebKit", None)),
    ],
)
def test_the_right_place_is_none(browser, webgpu, wanted):
    Where(browser, webgpu).must_be(*wanted)


@pytest.mark.parametrize("named", ["firefox ", "Firefox", "webkit"])
def test_a_browser_that_is_none_is_an_error(named, monkeypatch):
    """make once handed on a blank, and a suite for Firefox ran in Chromium."""
    monkeypatch.setenv("BROWSER", named)
    with pytest.raises(WrongBrowserError, match="must be 'firefox' or 'chromium', not"):
        is_firefox()
