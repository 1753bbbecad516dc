"""Every listing of every page: Python runs in the page's own kernel, on the desktop, or must at
least be Python; TypeScript compiles. What fails is told by page and line."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import open_page
from documentation import ROOT, SITE, Fence, all_fences, built
from playwright.sync_api import Browser, Page
from serve import Server

RUN = """async ([url, seconds, gpu]) => {
  const text = await (await fetch(url)).text();
  const blocks = new DOMParser().parseFromString(text, "text/html").querySelectorAll(".block");
  const { kernel } = globalThis.__python;
  const late = new Promise((resolve) => setTimeout(resolve, 1000 * seconds, "late"));
  await kernel.run("%reset -f", () => {});
  const failed = [];
  for (const block of blocks) {
    const { source, line } = block.dataset;
    const raises = "raises" in block.dataset;
    let code = block.querySelector("pre").textContent.replace(/\\n$/, "");
    // As the page does it where there is no GPU: blocks below may need the imports.
    if (!gpu && "gpu" in block.dataset) code = code.match(/^(import|from) .+$/gm)?.join("\\n") ?? "";
    const told = [];
    const outcome = await Promise.race([kernel.run(code, (message) => told.push(message)), late]);
    if (outcome === (raises ? "error" : "ok")) continue;
    const texts = told.map(({ text, traceback }) => traceback?.join("\\n") ?? text ?? "");
    const why = raises && outcome === "ok" ? "it should have raised" : outcome;
    failed.push(`${source}:${line}: ${why}\\n${texts.join("").slice(-2000)}`);
    break;
  }
  return [blocks.length, failed];
}"""
RUNNABLE = [
    page.relative_to(SITE).as_posix()
    for page in built()
    if 'class="block"' in page.read_text("utf-8")
    # Training takes most of a minute.
    and ("WHOLE" in os.environ or page.stem != "train")
]
SECONDS = 240  # for a page; a guard, not a measurement


@pytest.fixture(scope="module")
def kernel_page(browser: Browser, server: Server) -> Iterator[Page]:
    """The first page with its Python started, which then runs the blocks of all pages."""
    with open_page(browser, server.url) as (page, _):
        page.goto(f"{server.url}docs/index.html")
        page.wait_for_selector("html[data-blocks]")
        page.evaluate("globalThis.__python.restart()")
        page.wait_for_selector(".python-bar[data-state=idle]")
        yield page


MIXED = [
    name
    for name in RUNNABLE
    if len(
        set(
            re.findall(
                r'class="block".*?( data-gpu)?>', (SITE / name).read_text("utf-8")
            )
        )
    )
    > 1
]


@pytest.mark.parametrize(
    ("name", "gpu"),
    [*((name, True) for name in RUNNABLE), *((name, False) for name in MIXED)],
)
def test_python_runs_in_the_page(
    name: str, gpu: bool, kernel_page: Page, server: Server
) -> None:
    """All blocks; and those that need no GPU, without what the others make."""
    address = f"{server.url}docs/{name}"
    count, failed = kernel_page.evaluate(RUN, [address, SECONDS, gpu])
    if failed:  # the next page begins with another Python
        kernel_page.evaluate("globalThis.__python.kernel.restart()")
        kernel_page.wait_for_selector(".python-bar[data-state=idle]")
    assert count > 0
    assert failed == [], "\n".join(failed)


def test_pages_have_the_blocks_of_their_sources() -> None:
    """What is written as a block that runs is one on the page."""
    text = "".join(page.read_text("utf-8") for page in built())
    on_pages = set(re.findall(r'data-line="(\d+)" .*?data-source="([^"]+)"', text))
    on_pages |= {
        (line, source)
        for source, line in re.findall(r'data-source="([^"]+)" data-line="(\d+)"', text)
    }
    written = [
        fence
        for fence in all_fences("python")
        if not fence.classes & {"desktop", "shown"}
    ]
    assert len(written) > 50
    pages_of = {source for _, source in on_pages}
    for fence in written:
        # Pages of packages are in one folder of the site.
        source = re.sub(r"^packages/\w+/docs/", "packages/", fence.page)
        assert source.removeprefix("web/docs/") in pages_of, str(fence)


@pytest.mark.parametrize(
    "page",
    sorted({each.page for each in all_fences("python") if "desktop" in each.classes}),
)
def test_python_runs_on_the_desktop(page: str, tmp_path: Path) -> None:
    python = ROOT / "build" / "libs" / "bin" / "python"
    if not python.is_file():
        pytest.fail(
            "build/libs is not there: run `make suite NAME=docs`, which makes it"
        )
    program = ["import asyncio, linecache", "names = {'__name__': '__main__'}"]
    for fence in all_fences("python"):
        if fence.page == page and "desktop" in fence.classes:
            # Lines are told as they are in the page; `await` is allowed as in `python -m asyncio`.
            padded = "\n" * (fence.line - 1) + fence.code
            program.append(
                f"code = compile({padded!r}, {page!r}, 'exec', flags={ast.PyCF_ALLOW_TOP_LEVEL_AWAIT})\n"
                "result = eval(code, names)\n"
                "if asyncio.iscoroutine(result): loop.run_until_complete(result)"
            )
    program.insert(1, "loop = asyncio.new_event_loop(); asyncio.set_event_loop(loop)")
    script = tmp_path / "page.py"
    script.write_text("\n".join(program), "utf-8")
    packages = sorted((ROOT / "packages").glob("*/py"))
    paths = [str(path) for path in (ROOT / "py", ROOT / "web", *packages)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    driver = software_vulkan()
    if driver:
        environment |= {"VK_DRIVER_FILES": str(driver)}
    done = subprocess.run(
        [python, script],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def software_vulkan() -> Path | None:
    """The driver that `make suite NAME=desktop` uses."""
    if "VK_DRIVER_FILES" in os.environ:
        return None
    found = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
    return found[0] if found else None


def test_what_is_only_shown_is_python() -> None:
    for fence in all_fences("python"):
        try:
            compile(
                fence.code, str(fence), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            )
        except SyntaxError as error:
            if "%pip" in fence.code or "raises" in fence.classes:
                continue  # a line of notebooks; one that shows an error of Python's
            pytest.fail(f"{fence.page}:{fence.line + (error.lineno or 1) - 1}: {error}")


def test_typescript_compiles() -> None:
    """Each listing for itself, with what prelude.d.ts declares."""
    folder = ROOT / "build" / "docs" / "listings"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.*ts"):
        old.unlink()
    prelude = ROOT / "web" / "docs" / "_tools" / "prelude.d.ts"
    (folder / "prelude.d.ts").write_text(prelude.read_text("utf-8"), "utf-8")
    application = (
        ROOT / "examples" / "vite" / "main.ts"
    )  # Vite only takes its types away
    example = Fence(
        "examples/vite/main.ts", 1, "ts", frozenset(), application.read_text("utf-8")
    )
    fences = [example, *all_fences("ts")]
    assert len(fences) > 10
    by_name = {}
    for i, fence in enumerate(fences):
        by_name[f"listing{i}.ts"] = fence
        module = f"{fence.code}\nexport {{}};\n"
        (folder / f"listing{i}.ts").write_text(module, "utf-8")
    options = json.loads((ROOT / "tsconfig.json").read_text("utf-8"))["compilerOptions"]
    for name in ("outDir", "rootDir", "declaration", "declarationMap", "sourceMap"):
        options.pop(name)
    # Listings are short: they do not look at every element before they use it.
    options |= {"noEmit": True, "noUncheckedIndexedAccess": False, "skipLibCheck": True}
    settings = {"compilerOptions": options, "include": ["*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(settings), "utf-8")
    tsc = ROOT / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [tsc, "--project", folder, "--pretty", "false"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
    )

    def place(match: re.Match[str]) -> str:
        fence = by_name[match[1]]
        return f"{fence.page}:{fence.line + int(match[2]) - 1}"

    told = re.sub(r"(?:\S*/)?(listing\d+\.ts)\((\d+),\d+\)", place, done.stdout)
    assert done.returncode == 0, told
