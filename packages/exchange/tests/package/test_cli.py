"""`dlpack-web-exchange`, as users of the package run it: on a file of theirs."""

from __future__ import annotations

import re
from pathlib import Path

from projects import ROOT, run, tarballs

HERE = Path(__file__).parent
CLI = "node_modules/dlpack-web-exchange/js/dist/cli.js"
RIGHT, WRONG = "right.mjs", "wrong.mjs"


def install(folder: Path) -> None:
    """The package alone, from its tarball and without a network; a producer, and one that lies."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    quiet = ("--offline", "--no-audit", "--no-fund")
    run("npm", "install", *quiet, tarballs()["dlpack-web-exchange"], at=folder)
    right = (HERE / RIGHT).read_text()
    (folder / RIGHT).write_text(right)
    lie = right.replace("data.byteLength,", "data.byteLength + 64,")
    (folder / WRONG).write_text(lie)
    assert lie != right


def tells_right_from_wrong(folder: Path, *runner: str) -> None:
    install(folder)
    told = run(*runner, RIGHT, at=folder)
    assert re.search(r"^ *S5 +ok$", told, re.MULTILINE), told
    assert "FAILED" not in told
    told = run(*runner, WRONG, at=folder, fails=True)
    assert re.findall(r"^ *(\w+) +FAILED", told, re.MULTILINE) == ["S5"], told
    run(*runner, "none.mjs", at=folder, fails=True)
    run(*runner, at=folder, fails=True)


def test_npx_runs_the_suite(tmp_path: Path) -> None:
    tells_right_from_wrong(tmp_path, "npx", "--no", "--offline", "dlpack-web-exchange")
    there = {path.name for path in (tmp_path / "node_modules").glob("[!.]*")}
    assert there == {"dlpack-web-exchange"}


def test_the_page_about_producers(tmp_path: Path) -> None:
    """Its files, saved as the page says."""
    page = (HERE.parents[1] / "docs" / "write-a-producer.md").read_text("utf-8")
    (picture,) = re.findall(r'(?s)run_js\("""\n(.+?)\nPicture"""\)', page)
    assert "save the JavaScript of the first example" in " ".join(page.split())
    (tmp_path / "picture.mjs").write_text(
        picture.replace("class Picture", "export class Picture")
    )
    listings = re.findall(r"(?ms)^```(js|sh)\n(.*?)^```", page)
    (producer,) = (text for _, text in listings if text.startswith("// producer.mjs"))
    (tmp_path / "producer.mjs").write_text(producer)
    (use,) = (text for _, text in listings if "Tensor.from(picture)" in text)
    counted = re.sub(
        r"// .*?picture\.held is (\d)", r"console.log(picture.held === \1);", use
    )
    (tmp_path / "use.mjs").write_text(counted)
    ((_, install, check),) = (
        text.splitlines() for kind, text in listings if kind == "sh"
    )
    offline = "npm install --offline --no-audit --no-fund"
    install = install.replace("npm install", offline).replace("$CLONE", str(ROOT))
    run("bash", "-c", install, at=tmp_path)
    assert "no rule of EXCHANGE.md is broken" in run(*check.split(), at=tmp_path)
    assert run("node", "use.mjs", at=tmp_path) == "true\ntrue\n"
