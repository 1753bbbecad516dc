"""Headless Chromium with WebGPU, for the demo runner, the browser tests and the bench;
or Firefox, if the environment variable BROWSER says so.

It defines the binary, its flags and the errors of a page: logging an error, throwing,
or sending a request to another host.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from guard import Guard

# Limit for any step in a page: it catches hangs and measures nothing. On a busy
# machine, a software GPU may take a minute for what usually takes a second.
PATIENT_S = float(os.environ.get("PATIENT_S", "300"))
LONGER_S = 10  # until the guard ends a step: Playwright's own message says more
FLAGS = (
    "--no-sandbox",  # containers and CI run as root
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",  # the same software GPU on every machine
    # The compositor on the same software GPU, which WebGPU canvases need.
    "--use-angle=swiftshader",
    "--enable-features=Vulkan",
    "--use-vulkan=swiftshader",
    # The browser itself must send no requests, so any foreign request is the page's.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A camera that shows a pattern. Pages must still request it.
    "--use-fake-device-for-media-stream",
)
INSTALL = (
    "No Chromium was found. Install one (Debian, Ubuntu: `apt-get install chromium`; "
    "elsewhere: `playwright install chromium`) or name a binary in the environment "
    "variable CHROMIUM."
)


FIREFOX_PREFERENCES = {
    "dom.webgpu.enabled": True,
    "dom.webgpu.workers.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,  # software drivers are on it
    "media.navigator.streams.fake": True,  # a camera that shows a pattern
}
# Firefox's own logs: shader faults, which pages also get, Playwright's style for
# screenshots, and libraries that test whether they may call eval().
FIREFOX_LOGS = (
    "shader module",
    "Shader '",
    "Shader validation error",
    "inline style",
    "blocked a JavaScript eval",
)
# The driver for a GPU in software; Debian's Chromium includes it.
SOFTWARE_GPU = Path("/usr/lib/chromium/vk_swiftshader_icd.json")


# Asked of the page itself: a suite for one browser must not run in another.
WHERE = """async () => {
  const adapter = await navigator.gpu?.requestAdapter();
  const { vendor, architecture, description } = adapter?.info ?? {};
  const names = [vendor, architecture, description].filter(Boolean).join(" ");
  return [navigator.userAgent, adapter ? names || "an adapter without a name" : ""];
}"""


def is_firefox() -> bool:
    """Whether BROWSER is "firefox"; raises for unknown names."""
    named = os.environ.get("BROWSER", "")
    if named not in ("", "chromium", "firefox"):
        raise WrongBrowserError(
            f"BROWSER must be 'firefox' or 'chromium', not {named!r}"
        )
    return named == "firefox"


@dataclass(frozen=True)
class Where:
    """A browser and its WebGPU, as reported by a page."""

    browser: str  # "Chrome 156.0.0.0"
    webgpu: str  # names of the adapter; "" for none

    @classmethod
    def of(cls, page: Evaluating) -> Where:
        agent, webgpu = page.evaluate(WHERE)  # type: ignore[misc]
        for name in ("Firefox", "Chrome", "AppleWebKit"):  # Chrome has both
            if found := re.search(rf"{name}/([0-9.]+)", agent):
                return cls(f"{name} {found[1]}", webgpu)
        return cls(agent, webgpu)

    def must_be(self, browser: str, webgpu: str | None) -> None:
        """Raises unless it is that browser, with an adapter of that name; None: no
        adapter."""
        if not self.browser.startswith(f"{browser} "):
            raise WrongBrowserError(f"this suite needs {browser}, but runs in {self}")
        found = self.webgpu != "" and (webgpu or "") in self.webgpu
        if found != (webgpu is not None):
            wanted = (
                "no WebGPU" if webgpu is None else f"WebGPU by {webgpu or 'anything'}"
            )
            raise WrongBrowserError(f"this suite needs {wanted}, but runs in {self}")

    def __str__(self) -> str:
        return f"{self.browser}, WebGPU: {self.webgpu or 'none'}"


class Evaluating(Protocol):
    """The part of Playwright's page that is used here."""

    def evaluate(self, expression: str) -> object: ...


def where_it_should_be(page: Evaluating) -> Where:
    """A page's browser and GPU; raises unless it is the requested browser, with its
    software GPU."""
    where = Where.of(page)
    if is_firefox():
        where.must_be("Firefox", "")
    else:
        where.must_be("Chrome", "swiftshader")
    return where


class WrongBrowserError(RuntimeError):
    """A page runs in an unexpected browser, or on another GPU."""


class BrowserMissingError(RuntimeError):
    """The browser is missing; the message says what to install."""


def find_chromium() -> str | None:
    """The binary to start, or None for Playwright's own."""
    named = os.environ.get("CHROMIUM")
    if named and not shutil.which(named):
        raise BrowserMissingError(f"CHROMIUM={named} is not a program. {INSTALL}")
    candidates = (named, "chromium", "chromium-browser", "google-chrome")
    return next(
        (path for name in candidates if name and (path := shutil.which(name))), None
    )


def find_firefox() -> str:
    for name in (os.environ.get("FIREFOX"), "firefox-esr", "firefox"):
        if name and (path := shutil.which(name)):
            return path
    raise BrowserMissingError(
        "No Firefox was found. Install one (Debian: `apt-get install firefox-esr "
        "libvulkan1`), or name a binary in the environment variable FIREFOX."
    )


class Restarting:
    """A Browser; where the guard has killed it, another one."""

    def __init__(self, playwright: Playwright, guard: Guard, extra: Sequence[str]):
        self.guard, self.start = guard, lambda: launch(playwright, guard, extra)
        self.current = self.start()

    def __getattr__(self, name: str) -> object:
        if self.guard.has_killed():
            self.current = self.start()
        return getattr(self.current, name)


def launch(playwright: Playwright, guard: Guard, extra: Sequence[str]) -> Browser:
    if not is_firefox():
        return playwright.chromium.launch(
            executable_path=find_chromium(),
            args=[*FLAGS, f"--remote-debugging-port={guard.port}", *extra],
            env=os.environ | guard.environment,
        )
    environment = guard.environment | {"MOZ_CRASHREPORTER_DISABLE": "1"}
    if SOFTWARE_GPU.exists():
        environment["VK_DRIVER_FILES"] = str(SOFTWARE_GPU)
    return playwright.firefox.launch(
        channel="moz-firefox",  # Mozilla's own build, by WebDriver BiDi
        executable_path=find_firefox(),
        firefox_user_prefs=FIREFOX_PREFERENCES,
        env=os.environ | environment,
    )


@contextmanager
def open_browser(
    extra: Sequence[str] = (), patient_s: float = PATIENT_S
) -> Iterator[Browser]:
    """A running browser, closed at the end; `extra` are further flags of Chromium. A step
    that takes longer than `patient_s` ends the browser, as crashes do: the next page
    opens in another one."""
    expect.set_options(timeout=1000 * PATIENT_S)
    with Guard(patient_s + LONGER_S) as guard, sync_playwright() as playwright:
        try:
            browser = Restarting(playwright, guard, extra)
        except PlaywrightError as error:
            if "Executable doesn't exist" in error.message:
                raise BrowserMissingError(INSTALL) from error
            raise
        try:
            yield browser
        finally:
            browser.current.close()


@dataclass
class Watch:
    """A page's errors, collected while it runs."""

    origin: str
    errors: list[str] = field(default_factory=list)
    external: list[str] = field(default_factory=list)

    def attach(self, context: BrowserContext) -> None:
        context.on("console", lambda message: self._console(message.type, message.text))
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", lambda request: self._request(request.url))

    def _console(self, kind: str, text: str) -> None:
        if kind == "error":
            self.errors.append(text)

    def _request(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:")):
            self.external.append(url)

    def complaints(self) -> list[str]:
        usual = FIREFOX_LOGS if is_firefox() else ()
        return [
            *(
                each
                for each in self.errors
                if not any(words in each for words in usual)
            ),
            *(f"request to another host: {url}" for url in self.external),
        ]


@contextmanager
def open_page(
    browser: Browser, origin: str, **options: object
) -> Iterator[tuple[Page, Watch]]:
    """A new page in its own context; `options` go to Browser.new_context."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    try:
        context.set_default_timeout(1000 * PATIENT_S)
        watch = Watch(origin)
        watch.attach(context)
        if isinstance(browser, Restarting):
            context.on("page", lambda page: page.on("crash", browser.guard.crashed))
        yield context.new_page(), watch
    finally:
        context.close()


def await_result(page: Page, timeout_s: float = PATIENT_S) -> dict[str, object]:
    """The result that the page publishes (web/site/support.mjs); TimeoutError if
    none."""
    # A promise instead of wait_for_function, which would need `unsafe-eval`.
    result = page.evaluate(
        """(ms) => new Promise((resolve) => {
          const tell = () => resolve(globalThis.__result ?? null);
          if (globalThis.__result) tell();
          addEventListener("result", tell);
          setTimeout(tell, ms);
        })""",
        timeout_s * 1000,
    )
    if result is None:
        raise TimeoutError(f"{page.url} published no result within {timeout_s:.0f} s")
    return result
