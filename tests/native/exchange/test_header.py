"""wasm/dlpack.h against the official header, which apache-tvm-ffi ships."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

OURS = Path(__file__).parents[3] / "wasm"

STRUCTS = {
    "DLPackVersion": "major minor",
    "DLDevice": "device_type device_id",
    "DLDataType": "code bits lanes",
    "DLTensor": "data device ndim dtype shape strides byte_offset",
    "DLManagedTensor": "dl_tensor manager_ctx deleter",
    "DLManagedTensorVersioned": "version manager_ctx deleter flags dl_tensor",
    "DLPackExchangeAPIHeader": "version prev_api",
    "DLPackExchangeAPI": "header managed_tensor_allocator "
    "managed_tensor_from_py_object_no_sync managed_tensor_to_py_object_no_sync "
    "dltensor_from_py_object_no_sync current_work_stream",
}
NUMBERS = [
    "DLPACK_MAJOR_VERSION",
    "DLPACK_MINOR_VERSION",
    "DLPACK_FLAG_BITMASK_READ_ONLY",
    "DLPACK_FLAG_BITMASK_IS_COPIED",
    "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED",
]


def official_include():
    package = Path(importlib.util.find_spec("tvm_ffi").origin).parent
    return next(package.rglob("dlpack/dlpack.h")).parent.parent


def enums(header):
    """Names and numbers of DLDeviceType and DLDataTypeCode."""
    text = header.read_text("utf-8")
    kinds = text.index("kDLInt")  # the first of the codes, which come after the devices
    return [
        {name: int(value) for name, value in re.findall(r"\b(kDL\w+) = (\d+)", part)}
        for part in (text[:kinds], text[kinds:])
    ]


def check_numbers(ours, theirs):
    """The same numbers. What only we have is of DLPack's main branch, after 1.3, and has
    numbers above theirs."""
    assert {name: ours.get(name) for name in theirs} == theirs
    ahead = [value for name, value in ours.items() if name not in theirs]
    assert all(value > max(theirs.values()) for value in ahead)


BUILDS = {  # compile, name of the program, run
    "native": (["cc"], "report", []),
    # Old Emscriptens fetch() their file otherwise, which newer Nodes do not do.
    "wasm32": (["emcc", "-sWASM_ASYNC_COMPILATION=0"], "report.js", ["node"]),
}


def report(tmp_path, build, include, header, names):
    """What a C compiler says of every size, offset and number."""
    compiler, output, runner = BUILDS[build]
    lines = [f'#include "{header}"', "#include <stddef.h>", "#include <stdio.h>"]
    lines.append("int main(void) {")
    for struct, fields in STRUCTS.items():
        lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
        for field in fields.split():
            offset = f"offsetof({struct}, {field})"
            lines.append(f'printf("{struct}.{field} %zu\\n", {offset});')
    for name in names:
        lines.append(f'printf("{name} %llu\\n", (unsigned long long){name});')
    source, program = tmp_path / "report.c", tmp_path / output
    source.write_text("\n".join([*lines, "return 0;", "}"]))
    command = [*compiler, "-std=c11", f"-I{include}", source, "-o", program]
    subprocess.run(command, check=True, timeout=300)
    command = [*runner, program]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


@pytest.mark.parametrize("build", BUILDS)
def test_layout_and_numbers_are_the_official_ones(build, tmp_path, host_python):
    compiler = BUILDS[build][0][0]
    if shutil.which(compiler) is None:
        pytest.fail(
            f"{compiler} is missing; `make suite NAME=native` says how to get it"
        )
    official = official_include()
    devices, codes = enums(official / "dlpack" / "dlpack.h")
    for ours, theirs in zip(enums(OURS / "generated.h"), (devices, codes), strict=True):
        check_numbers(ours, theirs)
    names = [*devices, *codes, *NUMBERS]
    assert len(names) > 30
    theirs = report(tmp_path, build, official, "dlpack/dlpack.h", names)
    assert report(tmp_path, build, OURS, "dlpack.h", names) == theirs


def test_python_device_types_are_the_official_ones(host_python):
    from dlpack_web import DLDeviceType

    devices, _ = enums(official_include() / "dlpack" / "dlpack.h")
    check_numbers({member.name: member.value for member in DLDeviceType}, devices)
