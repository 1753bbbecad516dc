"""The TypeScript reference, as Markdown pages, by TypeDoc."""

import json
import re
import subprocess
import sys
from pathlib import Path

from repository import BUILD, ROOT

TYPEDOC = BUILD / "typedoc"
LIBRARIES = ROOT / "build" / "libraries" / "node_modules"
# Errors are thrown, not made, by programs, and some types describe objects of others.
UNDESCRIBED = re.compile(
    r"has an @param with name|"
    r"warning\] (?!\S*(?:Error|Pyodide|Port|Socket|Handle|__type|Arrow|Jax|LiteRT|Tf|Model|"
    r"Lifecycle)\.).* \(Parameter\), defined in \S*js/src/"
)
FIRST = """\
All exports, by the module that programs import. Types of browsers (`GPUDevice`,
`ImageBitmap`, …) are taken from the program, with `@webgpu/types` or without.
"""


def projects() -> dict[str, Path]:
    """Folders of the reference, and those of the bridge and of packages."""
    beside = sorted(ROOT.glob("packages/*/package.json"))
    return {".": ROOT} | {
        f"packages/{file.parent.name}": file.parent for file in beside
    }


def entries(project: Path) -> dict[str, str]:
    """Name of each entry point of an npm package -> its source."""
    manifest = json.loads((project / "package.json").read_text("utf-8"))
    found = {}
    for name, target in manifest["exports"].items():
        file = target if isinstance(target, str) else target["types"]
        if "/dist/" in file and name != "./internal":  # without promise, for packages
            source = re.sub(r"(\.d\.ts|\.js)$", ".ts", file.replace("/dist/", "/src/"))
            found[f"{manifest['name']}{name.removeprefix('.')}"] = source
    return found


def newest() -> float:
    folders = [project / "js" / "src" for project in projects().values()]
    return max(f.stat().st_mtime for each in folders for f in each.rglob("*.ts"))


def write_typescript(target: Path) -> None:
    """Writes the pages again if a source is newer than they are."""
    done = target / "index.md"
    tools = Path(__file__).stat().st_mtime
    packages = {target / folder for folder in projects()} - {target}
    same = {*(target / "packages").glob("*")} == packages  # one may have been removed
    if same and done.is_file() and done.stat().st_mtime > max(newest(), tools):
        return
    for folder, project in projects().items():
        describe(project, target / folder)
        (target / folder / "modules.md").unlink(missing_ok=True)
    name_pages(target)


def describe(project: Path, target: Path) -> None:
    sources = [*entries(project).values()]
    first = page_of(sources[0]) if len(sources) == 1 else "modules"
    options = {
        "entryPoints": [str(project / source) for source in sources],
        "tsconfig": str(TYPEDOC / "tsconfig.json"),
        "plugin": [str(LIBRARIES / "typedoc-plugin-markdown" / "dist" / "index.js")],
        "out": str(target),
        "readme": "none",
        "entryFileName": "index" if project == ROOT else first,
        "groupOrder": ["Namespaces", "Functions", "Classes", "Interfaces", "*"],
        "hidePageHeader": True,
        "hideBreadcrumbs": True,
        "disableSources": True,
        "excludeInternal": True,
        "excludePrivate": True,
        "excludeExternals": True,
        "useCodeBlocks": True,
        "router": "module",
        "requiredToBeDocumented": ["Parameter"],
        "validation": {"notDocumented": True, "notExported": False},
        "name": "TypeScript",
        "parametersFormat": "table",
        "interfacePropertiesFormat": "table",
        "classPropertiesFormat": "table",
        "typeAliasPropertiesFormat": "table",
        "propertyMembersFormat": "table",
        "typeDeclarationFormat": "table",
        "tableColumnSettings": {"hideSources": True, "hideModifiers": True},
        "gitRevision": "main",
    }
    TYPEDOC.mkdir(parents=True, exist_ok=True)
    (TYPEDOC / "typedoc.json").write_text(json.dumps(options, indent=2), "utf-8")
    own = project / "js" / "tsconfig.json"
    settings = {
        "extends": str(own if own.is_file() else ROOT / "tsconfig.json"),
        "compilerOptions": {
            "rootDir": str(project / "js" / "src"),
            "skipLibCheck": True,
        },
        "include": [str(project / "js" / "src")],
    }
    (TYPEDOC / "tsconfig.json").write_text(json.dumps(settings, indent=2), "utf-8")
    command = [
        "node",
        str(LIBRARIES / "typedoc" / "bin" / "typedoc"),
        "--options",
        "typedoc.json",
    ]
    ended = subprocess.run(
        command, cwd=TYPEDOC, text=True, capture_output=True, check=False
    )
    said = ended.stdout + ended.stderr
    if ended.returncode != 0:
        sys.exit(said)
    if wrong := undescribed(said):
        sys.exit("\n".join(wrong))


def undescribed(said: str) -> list[str]:
    """TypeDoc's warnings of a parameter without @param, and of a @param
    without parameter."""
    lines = (re.sub(r"\x1b\[\d+m", "", line) for line in said.splitlines())
    return [line for line in lines if UNDESCRIBED.search(line)]


def page_of(source: str) -> str:
    """TypeDoc's page for an entry point."""
    path = source.removeprefix("./").removeprefix("js/src/").removesuffix(".ts")
    return "index/index" if path == "index" else path.removesuffix("/index")


def without_dead_links(text: str) -> str:
    """Table rows have no anchors in Sphinx: replaces links to them by their text."""
    slugs = [
        re.sub(r"[^\w-]", "", h.lower()) for h in re.findall(r"(?m)^#+ (.+)$", text)
    ]

    def kept(match: re.Match[str]) -> str:
        name, number = re.fullmatch(r"(.*?)(?:-(\d+))?", match[2]).groups()  # type: ignore[union-attr]
        lost = number and slugs.count(name) <= int(number)
        return match[1] if name.startswith("property-") or lost else match[0]

    return re.sub(r"\[([^\]]+)\]\([^)#]*#([^)]+)\)", kept, text)


def name_pages(target: Path) -> None:
    """Names the pages by what programs import, and links to all of them from the
    first."""
    for file in target.rglob("*.md"):
        text = without_dead_links(file.read_text("utf-8"))
        # A destructured parameter has no name of its own.
        text = re.sub(r"(\\_\\_|__)namedParameters", "options", text)
        file.write_text(text, "utf-8")
    rows = []
    for folder, project in projects().items():
        for shown, source in entries(project).items():
            page = (Path(folder) / page_of(source)).as_posix()
            if not (target / f"{page}.md").is_file():
                page = page.removesuffix("/index")  # of a module without namespaces
            file = target / f"{page}.md"
            text = file.read_text("utf-8")
            titled = re.sub(r"\A# .*", f"# TypeScript: `{shown}`", text)
            file.write_text(titled, "utf-8")
            rows.append((shown, page))
    inside = sorted((target / "index" / "namespaces").glob("*.md"))
    for file in inside:
        text = re.sub(
            r"\A# .*",
            f"# TypeScript: `{file.stem}` of `dlpack-web`",
            file.read_text("utf-8"),
        )
        file.write_text(text, "utf-8")
    rows[1:1] = [
        (f"{f.stem}, of dlpack-web", f"index/namespaces/{f.stem}") for f in inside
    ]
    listed = "\n".join(f"`{shown}` <{page}>" for shown, page in rows)
    toctree = f"```{{toctree}}\n:maxdepth: 1\n\n{listed.replace('`', '')}\n```\n"
    (target / "index.md").write_text(f"# TypeScript\n\n{FIRST}\n{toctree}", "utf-8")
