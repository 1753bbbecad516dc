"""Packages beside the bridge: what they import."""

import re

import check_packages


def test_packages_and_the_bridge_know_no_more_of_each_other():
    assert [*check_packages.complaints()] == []


def test_other_imports_and_names_are_refused(tmp_path, monkeypatch):
    files = {
        "packages/beside/py/beside/one.py": "import dlpack_web._core\n"
        "from dlpack_web import Tensor, _arrow\nfrom dlpack_web.internal import CPU\n",
        "packages/beside/py/beside/two.py": "def f():\n    from dlpack_web._kernels.kernel import Kernel\n",
        "py/dlpack_web/internal.py": f"__all__ = {[f'n{i}' for i in range(40)]}\n",
        "py/dlpack_web/backends.py": f"__all__ = {[f'm{i}' for i in range(6)]}\n",
        "py/dlpack_web/_hints.py": "WAY = 'use dlpack_web_beside'\n",
        "py/dlpack_web/_moved.py": "WAY = 'use dlpack_web_beside'\n",
        "js/src/core/hints.ts": "// dlpack-web-beside\n// dlpack-web/beside is ours\n",
        "js/src/core/text.ts": "// packages/beside/README.md\n",
        "js/src/internal.ts": f"export {{\n  {', '.join(f'n{i}' for i in range(44))},\n}} from './a.js';\n"
        "export type { T } from './a.js';\nexport async function f(x) {}\n",
        "package.json": '{"exports": {".": "", "./core": ""}}',
        "packages/beside/package.json": '{"peerDependencies": {"dlpack-web": "1"}}',
        "packages/beside/js/src/one.ts": 'import type { Tensor } from "dlpack-web";\n'
        'import { x } from "dlpack-web/core";\nexport * from "dlpack-web/internal";\n'
        'import("./two.js");\nimport process from "node:process";\n',
        "packages/beside/js/src/two.ts": 'import "../../../../js/src/core/hints.js";\n'
        'const late = await import("dlpack-web/js/dist/core/index.js");\n',
        "packages/below/package.json": "{}",
        "packages/below/js/src/one.ts": 'export type {\n} from "dlpack-web/core";\n',
    }
    for path, text in files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(check_packages, "ROOT", tmp_path)
    assert [re.sub(", which.*", "", each) for each in check_packages.complaints()] == [
        "packages/below/js/src/one.ts:2: imports dlpack-web/core",
        "packages/beside/js/src/two.ts:1: imports ../../../../js/src/core/hints.js",
        "packages/beside/js/src/two.ts:2: imports dlpack-web/js/dist/core/index.js",
        "packages/beside/py/beside/one.py:1: imports dlpack_web._core",
        "packages/beside/py/beside/one.py:2: imports dlpack_web._arrow",
        "packages/beside/py/beside/two.py:2: imports dlpack_web._kernels.kernel",
        "dlpack_web.backends and dlpack_web.internal have 46 names, and 45 are allowed",
        "dlpack-web/internal has 46 names, and 45 are allowed",
        "py/dlpack_web/_hints.py:1: names the package beside",
        "js/src/core/hints.ts:1: names the package beside",
        "js/src/core/text.ts:1: names the package beside",
    ]
