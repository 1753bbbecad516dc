"""What wheels have of the sources: wasm/toolchain/wheels.py."""

import pytest
import wheels


def test_a_wheel_for_pyodide_is_without_what_its_manifest_names(tmp_path):
    package = tmp_path / "py" / "package"
    (package / "desktop").mkdir(parents=True)
    for name in ("__init__", "desktop/__init__", "desktop/gpu", "other", "stays"):
        (package / f"{name}.py").write_text("# nothing\n")
    manifest = tmp_path / "pyproject.toml"
    manifest.write_text(
        '[tool.dlpack-web.pyodide]\nwithout = ["package/desktop", "package/other.py"]\n'
    )
    wheels.reduce(tmp_path)
    there = {file.name: file.read_text() for file in package.rglob("*")}
    assert there == {"__init__.py": "\n", "stays.py": "\n"}
    with pytest.raises(FileNotFoundError):  # a name that is wrong
        wheels.reduce(tmp_path)
    manifest.write_text("[tool.other]\n")
    wheels.reduce(tmp_path)
