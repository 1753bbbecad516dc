"""The landing page, used as a reader would: programs, sources, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from time import monotonic

import pytest
from browser import PATIENT_S, Watch, await_result, is_firefox, open_page
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect
from serve import Server

KERNELS = Path(__file__).resolve().parents[3] / "web" / "pages" / "live" / "kernels"


def colours(page: Page) -> int:
    """How many different colours the middle of the screen has now."""
    png = page.locator("#canvas").screenshot()
    shown = Image.open(BytesIO(png)).convert("RGB")
    width, height = shown.size
    middle = shown.crop((width // 8, height // 8, width * 7 // 8, height * 7 // 8))
    return len(middle.getcolors(width * height) or [])


def comes_to(page: Page, least: int, most: int = 1 << 24) -> None:
    """Wait until the screen has so many colours: the frames before may be of another program,
    or too few for one that begins with a plain picture."""
    end = monotonic() + PATIENT_S
    while not least <= (found := colours(page)) <= most:
        assert monotonic() < end, f"the screen has {found} colours"


class Live:
    """The page, with Python in it."""

    def __init__(self, page: Page, watch: Watch) -> None:
        self.page, self.watch = page, watch

    def taken(self) -> int:
        return int(self.page.get_attribute("#canvas", "data-took") or 0)

    def run(self, text: str) -> None:
        """Write a program; its kernels are on the screen afterwards."""
        before = self.taken()
        self.page.fill("#program", text)
        self.page.wait_for_selector(f"#canvas[data-took='{before + 1}']")

    def broken(self, text: str) -> str:
        """Write a program that does not work; what the page says, unlike what it said."""
        before = self.page.inner_text("#fault")
        self.page.fill("#program", text)
        self.page.wait_for_selector("#program[aria-invalid]")
        expect(self.page.locator("#fault")).not_to_have_text(before)
        self.goes_on()
        return self.page.inner_text("#fault")

    def stands_still(self) -> None:
        """It shows the frames that were under way, and no more."""
        paused = now = self.page.evaluate("live.shown()")
        before = -1
        while now != before:
            self.page.wait_for_timeout(300)
            before, now = now, self.page.evaluate("live.shown()")
            assert now <= paused + 3, "more than the frames that were under way"

    def goes_on(self, frames: int = 3) -> None:
        """Wait for more frames."""
        self.page.evaluate(
            """([more, ms]) => new Promise((resolve, reject) => {
              const begin = live.shown();
              const timer = setInterval(() => live.shown() >= begin + more && done(resolve), 20);
              const late = setTimeout(() => done(() => reject(new Error("no frames"))), ms);
              const done = (then) => (clearInterval(timer), clearTimeout(late), then());
            })""",
            [frames, 1000 * PATIENT_S],
        )


@pytest.fixture(scope="module")
def live(browser: Browser, server: Server) -> Iterator[Live]:
    with open_page(browser, server.url) as (page, watch):
        page.goto(server.url)
        page.wait_for_selector("#canvas[data-by=python]")
        yield Live(page, watch)
        assert watch.complaints() == []


def program(name: str) -> str:
    return (KERNELS / name).read_text()


def test_frames_come_without_a_copy_and_as_the_usual_way_computes_them(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.goto(f"{server.url}live.html#auto")
        result = await_result(page)
        assert result["ok"], result
        assert result["frames"] >= 120
        assert result["copies_per_frame"] == result["map_async"] == 0
        assert result["first_frame_ms"] < result["python_frame_ms"]
        ours, usual = result["comparison"]["ours"], result["comparison"]["usual"]
        assert (ours["copies"], ours["bytes"], usual["copies"]) == (0, 0, 4)
        comes_to(page, 100)
        assert watch.complaints() == []


def test_the_button_compares_whatever_frame_is_under_way(live: Live) -> None:
    """A frame that ends after the press is counted like those before it."""
    live.run(program("edges.py"))
    live.goes_on()
    live.page.click("#compare")
    expect(live.page.locator("#compare")).to_be_enabled()
    assert live.page.inner_text("#compare-status") == ""
    assert live.page.locator("#ways tr").count() == 2
    live.goes_on()


def test_no_frame_is_shown_while_the_page_works(live: Live) -> None:
    """Work after work, before Python has said how it is stopped; and a frame that fails then."""
    shown = live.page.evaluate("""async () => {
      const { meter, player } = live;
      for (let i = 0; i < 3; i++) await player.meanwhile(() => {});
      return new Promise((resolve) => {
        meter.shown = () => {
          delete meter.shown;
          const work = async () => {
            const before = live.shown();
            await new Promise((done) => setTimeout(done, 1000));
            return live.shown() - before;
          };
          resolve(player.meanwhile(work));
          throw new Error("no frame");
        };
      });
    }""")
    assert shown == 0
    live.goes_on()


@pytest.mark.parametrize("file", sorted(path.name for path in KERNELS.glob("*.py")))
def test_programs_of_the_gallery_run(file: str, live: Live) -> None:
    live.run(program(file))
    live.goes_on()
    assert live.page.inner_text("#fault") == ""
    comes_to(live.page, 50)


def test_sliders_are_bound_to_uniforms(live: Live) -> None:
    live.run(program("edges.py"))
    slider = live.page.get_by_label("strength")
    slider.fill("0")  # nothing is left of the edges
    comes_to(live.page, 1, most=1)
    slider.fill("2")
    comes_to(live.page, 50)


def test_wgsl_that_does_not_compile_is_told_at_its_line(live: Live) -> None:
    good = program("edges.py")
    live.run(good)
    bad = good.replace("let y = i32", "let y = wrong")
    line = bad.split("\n").index("  let y = wrong(id.x / width);") + 1
    assert live.broken(bad).startswith(f"Line {line}: compiling kernel")
    assert live.page.inner_text("#gutter .at-fault").strip() == str(line)
    live.page.click("#go")
    selected = "(area) => area.value.slice(area.selectionStart, area.selectionEnd)"
    assert "wrong(id.x" in live.page.eval_on_selector("#program", selected)
    live.run(good)
    assert live.page.inner_text("#fault") == ""


def test_the_line_is_found_among_several_kernels(live: Live) -> None:
    bad = program("reaction.py").replace("let v = saturate(", "let v = wrong(")
    line = 1 + next(i for i, t in enumerate(bad.split("\n")) if "let v = wrong(" in t)
    assert live.broken(bad).startswith(f"Line {line}: compiling kernel")


# A kernel that is made when the page has looked for kernels already.
LATE = """
from dlpack_web.webgpu import Kernel

WGSL = '@group(0) @binding(0) var<storage, read_write> x: array<f32>; ' \
  '@compute @workgroup_size(1) fn main() { x[0] = nonsense; }'

def frame(image, result):
    Kernel(WGSL)(result, workgroups=1)
"""


WAITS = "import asyncio\nasync def frame(image, result):\n    await asyncio.Future()\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def frame(image, result)\n", "Line 1: SyntaxError: expected ':'"),
        ("\nx = unknown\n", "Line 2: NameError: name 'unknown'"),
        ("x = 1\n", "no function frame(image, result)"),
        ("def frame(image, result):\n    image.nothing\n", "Line 2: AttributeError"),
        ("while True: pass\n", "Line 1: TimeoutError: it ran for more than 3 s"),
        ("def frame(image, result):\n    while 1: pass\n", "Line 2: TimeoutError"),
        (WAITS, "Line 3: TimeoutError: it waited for more than 10 s"),
        ("import sys\nsys.exit()\n", "Line 2: SystemExit"),
        ("def frame(image, result):\n    raise SystemExit\n", "Line 2: SystemExit"),
        (LATE, "compiling kernel"),
    ],
    ids=[
        "syntax",
        "name",
        "no-frame",
        "attribute",
        "endless",
        "frame",
        "waits",
        "exit",
        "exits",
        "late",
    ],
)
def test_python_that_does_not_work_leaves_the_program_before(
    text: str, said: str, live: Live
) -> None:
    live.run(program("edges.py"))
    assert said in live.broken(text)
    comes_to(live.page, 50)


LOADING = "import js\nawait js.globalThis.held\n"


def test_a_program_that_loads_slowly_does_not_replace_a_newer_one(live: Live) -> None:
    page = live.page
    page.evaluate(
        "() => { globalThis.held = new Promise((done) => { globalThis.letGo = done; }); }"
    )
    page.fill("#program", LOADING + program("colours.py"))
    page.wait_for_timeout(600)  # until its writer has paused
    live.run(program("edges.py"))
    before = live.taken()
    page.evaluate("letGo()")
    live.goes_on(10)
    assert live.taken() == before
    assert page.inner_text("#fault") == ""
    requests: list[Route] = []
    page.route("**/kernels/blur.py", lambda route: requests.append(route))
    names = {each["file"]: each["name"] for each in json.loads(program("index.json"))}
    for file in ("blur.py", "edges.py"):
        page.get_by_role("button", name=names[file], exact=True).click()
    expect(page.locator("#program")).to_have_value(program("edges.py"))
    with page.expect_response("**/kernels/blur.py"):
        requests[0].continue_()
    live.goes_on()
    expect(page.locator("#program")).to_have_value(program("edges.py"))


def test_python_takes_over_though_a_program_never_loads(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.add_init_script("globalThis.held = new Promise(() => {})")
        page.goto(server.url)
        page.wait_for_selector("#canvas[data-took]")
        page.fill("#program", LOADING + program("edges.py"))
        page.evaluate(
            """() => new Promise((done) => {
              const timer = setInterval(() => {
                if (live.player.python === null) return;
                clearInterval(timer);
                done();
              }, 20);
            })"""
        )
        page.wait_for_timeout(300)
        page.fill("#program", program("edges.py"))
        page.wait_for_selector("#canvas[data-by=python]")
        assert watch.complaints() == []


# A track that is stopped says nothing; that of a camera that went does.
UNPLUG = """() => {
  const { track } = live.player.source;
  track.stop();
  track.dispatchEvent(new Event("ended"));
}"""


def test_an_animation_that_is_over_gives_its_pixels_back(live: Live) -> None:
    """Chromium keeps those of a canvas that is merely collected."""
    source = live.page.evaluate_handle("live.player.source")
    live.page.select_option("#size", "medium")
    live.goes_on()
    assert source.evaluate("({ source }) => [source.width, source.height]") == [0, 0]
    live.page.select_option("#size", "small")
    live.goes_on()


def test_the_camera_is_shown_and_its_end_is_told(
    browser: Browser, server: Server
) -> None:
    options = {} if is_firefox() else {"permissions": ["camera"]}
    with open_page(browser, server.url, **options) as (page, watch):
        if is_firefox():
            pytest.skip("its questions cannot be answered from here")
        page.goto(server.url)
        page.wait_for_selector("#canvas[data-took]")
        page.select_option("#source", "camera")
        page.wait_for_selector("#source-status:has-text('Frames of the camera')")
        live = Live(page, watch)
        live.goes_on()
        comes_to(page, 5)
        page.evaluate(UNPLUG)
        told = "#source-status:has-text('unplugged')"
        page.wait_for_selector(told)
        assert page.input_value("#source") == "animation"
        live.goes_on()
        assert watch.complaints() == []


@pytest.mark.parametrize(
    ("name", "said"),
    [("NotAllowedError", "was refused"), ("NotFoundError", "No camera was found")],
)
def test_without_a_camera_the_page_says_why(name: str, said: str, live: Live) -> None:
    live.page.evaluate(
        """(name) => {
          navigator.mediaDevices.getUserMedia = async () => {
            throw new DOMException("", name);
          };
        }""",
        name,
    )
    live.page.select_option("#source", "camera")
    live.page.wait_for_selector(f"#source-status:has-text('{said}')")
    live.goes_on()


def test_a_video_is_recorded_and_played(live: Live) -> None:
    live.page.select_option("#source", "clip")
    told = "#source-status:has-text('recorded here as a video')"
    live.page.wait_for_selector(told)
    assert live.page.locator("#input video").count() == 1
    live.goes_on()
    live.page.select_option("#source", "animation")
    live.page.wait_for_selector("#input canvas")


def test_a_file_that_is_no_video_is_told(live: Live) -> None:
    live.page.set_input_files("#file", KERNELS / "edges.py")
    told = "#source-status:has-text('edges.py is not a video')"
    live.page.wait_for_selector(told)
    live.goes_on()


@pytest.mark.skipif(
    is_firefox(), reason="Firefox 153 dies with the device of a canvas that is shown"
)
def test_a_lost_device_is_asked_for_again(live: Live) -> None:
    live.run(program("reaction.py"))
    live.page.evaluate("live.player.device.destroy()")
    live.page.wait_for_selector("#status:has-text('is back')")
    live.goes_on()
    assert "is back" in live.page.inner_text("#status")
    comes_to(live.page, 50)
    live.run(program("edges.py"))
    assert live.page.inner_text("#status") == "Python runs it."


def test_pausing_by_keyboard(live: Live) -> None:
    live.page.focus("#pause")
    live.page.keyboard.press("Space")
    expect(live.page.locator("#pause")).to_have_text("Play")
    live.stands_still()
    live.page.keyboard.press("Space")
    live.goes_on()


@pytest.mark.skipif(is_firefox(), reason="cannot be told so from here")
def test_reduced_motion_begins_with_a_still(browser: Browser, server: Server) -> None:
    options = {"reduced_motion": "reduce"}
    with open_page(browser, server.url, **options) as (page, watch):
        page.route("**/pyodide/pyodide.*", lambda route: route.abort())
        page.goto(server.url)
        page.wait_for_selector("#canvas[data-took]")
        expect(page.locator("#pause")).to_have_text("Play")
        comes_to(page, 50)
        page.wait_for_timeout(300)
        assert page.evaluate("live.shown()") <= 2
        page.click("#pause")
        Live(page, watch).goes_on()


def test_without_python_the_frames_go_on(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.route("**/pyodide/pyodide.*", lambda route: route.abort())
        page.goto(server.url)
        page.wait_for_selector("#problem:has-text('Python did not load')")
        Live(page, watch).goes_on()
        shown = page.evaluate("""async () => {
          live.player.loading = true;
          const before = live.shown();
          await new Promise((resolve) => setTimeout(resolve, 2000));
          live.player.loading = false;
          return live.shown() - before;
        }""")
        assert 1 <= shown <= 6, "a slow GPU would leave Python no time to load"
        bad = program("edges.py").replace("let y = i32", "let y = wrong")
        page.fill("#program", bad)
        page.wait_for_selector("#fault:has-text('compiling kernel')")


def test_without_webgpu_python_runs_on_the_cpu(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.add_init_script("delete Navigator.prototype.gpu")
        page.goto(server.url)
        page.wait_for_selector("#recorded img")
        page.wait_for_selector("#canvas[data-by=python]")
        assert page.inner_text("#status") == "Python runs it on the CPU."
        cpu = Live(page, watch)
        cpu.goes_on()
        page.get_by_label("strength").fill("0")  # nothing is left of the edges
        comes_to(page, 1, most=1)
        cpu.run(
            "def frame(image, result):\n"
            "    result[:] = 255 - image\n"
            "    result[..., 3] = 200\n"
        )
        comes_to(page, 50)
        shared = page.evaluate("""() => {
          const { data } = document.querySelector("#canvas").getContext("2d")
            .getImageData(0, 0, 320, 240);
          return data.filter((_, i) => i % 4 === 3).every((alpha) => alpha === 200);
        }""")
        assert shared, "the alpha of NumPy's array"
        assert "Line 2: ZeroDivisionError" in cpu.broken(
            "def frame(image, result):\n    1 / 0\n"
        )
        assert "Line 2: SystemExit" in cpu.broken("import sys\nsys.exit()\n")
        assert "no WebGPU" in cpu.broken(program("edges.py"))
        page.click("#pause")
        cpu.stands_still()
        page.click("#pause")
        cpu.goes_on()
        recorded = page.locator("#recorded img")
        recorded.scroll_into_view_if_needed()
        expect(recorded).to_have_js_property("naturalWidth", 320)
        assert watch.complaints() == []


@pytest.mark.skipif(is_firefox(), reason="Playwright cannot disable its scripts")
def test_without_scripts_a_recording_is_shown(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url, java_script_enabled=False) as (page, watch):
        page.goto(server.url)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("noscript img")).to_be_visible()
        expect(page.locator("noscript .problem")).to_contain_text("need JavaScript")
        for hidden in ("#canvas", "#program", "#compare", "#pause"):
            expect(page.locator(hidden)).to_be_hidden()
        expect(page.locator(".card").first).to_be_visible()
        assert watch.complaints() == []
