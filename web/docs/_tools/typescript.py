"""The reference of TypeScript, as pages of Markdown, by TypeDoc."""

import json
import re
import subprocess
from pathlib import Path

from repository import BUILD, ROOT

TYPEDOC = BUILD / "typedoc"


def entries() -> dict[str, str]:
    """Name of each entry point of the npm package -> its source."""
    exports = json.loads((ROOT / "package.json").read_text("utf-8"))["exports"]
    found = {}
    for name, target in exports.items():
        file = target if isinstance(target, str) else target["types"]
        if "/dist/" in file:
            source = re.sub(r"(\.d\.ts|\.js)$", ".ts", file.replace("/dist/", "/src/"))
            found[name.removeprefix("./").replace(".", "dlpack-web")] = source
    return found


def newest(folder: Path) -> float:
    return max((f.stat().st_mtime for f in folder.rglob("*.ts")), default=0)


def write_typescript(target: Path) -> None:
    """Writes them anew where a source is newer than what was written."""
    done = target / "index.md"
    tools = Path(__file__).stat().st_mtime
    if done.is_file() and done.stat().st_mtime > max(newest(ROOT / "js" / "src"), tools):
        return
    options = {
        "entryPoints": [str(ROOT / source) for source in entries().values()],
        "tsconfig": str(TYPEDOC / "tsconfig.json"),
        "plugin": ["typedoc-plugin-markdown"],
        "out": str(target),
        "readme": "none",
        "entryFileName": "index",
        "hidePageHeader": True,
        "hideBreadcrumbs": True,
        "disableSources": True,
        "excludeInternal": True,
        "excludePrivate": True,
        "excludeExternals": True,
        "useCodeBlocks": True,
        "router": "module",
        "logLevel": "Warn",
        "name": "TypeScript",
        "parametersFormat": "list",
        "gitRevision": "main",
    }
    (TYPEDOC / "typedoc.json").write_text(json.dumps(options, indent=2), "utf-8")
    settings = {
        "extends": str(ROOT / "tsconfig.json"),
        "compilerOptions": {"rootDir": str(ROOT / "js" / "src"), "skipLibCheck": True},
        "include": [str(ROOT / "js" / "src")],
    }
    (TYPEDOC / "tsconfig.json").write_text(json.dumps(settings, indent=2), "utf-8")
    command = ["node", "node_modules/typedoc/bin/typedoc", "--options", "typedoc.json"]
    subprocess.run(command, cwd=TYPEDOC, check=True)
