"""Rules 106 to 114: WebGPU and the browser, as far as C and Python decide them.

And that no rule is left out: what only JavaScript or a browser can show is named in
ELSEWHERE, with the test that shows it.
"""

import re
from pathlib import Path

import pytest
from forge import Forged, versioned
from test_conformance_a_structs import REFUSED

import dlpack_web as dlw
from dlpack_web._backends import default

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

# rule -> file, a line of the test there, why not here
ELSEWHERE = {
    32: (
        "tests/native/tensor/test_messages.py",
        "test_an_array_that_cannot_be_shared_names_the_dtype_and_the_way_out",
        "it has all dtypes that are refused",
    ),
    33: (
        "tests/native/tensor/test_messages.py",
        "test_an_array_that_cannot_be_shared_names_the_dtype_and_the_way_out",
        "it has all dtypes that are refused",
    ),
    59: (
        "tests/native/exchange/test_lifetime.py",
        "test_everything_after_release_is_refused",
        "it has all uses of a released tensor",
    ),
    79: (
        "tests/native/exchange/test_as_an_array.py",
        "test_others_are_told_what_to_do_in_one_line",
        "it has all that is no array",
    ),
    107: (
        "tests/js/webgpu/gpu.test.mjs",
        "devices are told apart by identity, and keep their ids",
        "the table of devices is JavaScript's",
    ),
    108: (
        "tests/js/webgpu/gpu.test.mjs",
        "a borrowed buffer is given back, never destroyed",
        "GPUBuffers are JavaScript's",
    ),
    109: (
        "tests/js/webgpu/gpu.test.mjs",
        "what lies behind the elements is zero, also in a buffer that is used again",
        "GPUBuffers are JavaScript's",
    ),
    110: (
        "tests/browser/cases/py/gpu_errors.py",
        "test_kernel_without_storage_usage",
        "usage flags are the GPUBuffer's",
    ),
    111: (
        "tests/browser/cases/js/cpu_cases.mjs",
        "growth",
        "only wasm memory grows under typed arrays",
    ),
    112: (
        "tests/js/webgpu/transfer.test.mjs",
        "whole words are one write straight from the array's own memory",
        "writeBuffer is the queue's",
    ),
    114: (
        "tests/native/exchange/test_lifetime.py",
        "test_everything_after_release_is_refused",
        "it has all uses of a released tensor",
    ),
    121: (
        "tests/native/exchange/test_bridge.py",
        "test_rule_121_stale_handles_are_refused_for_a_million_others",
        "handles are JavaScript's",
    ),
}


@pytest.fixture
def on_gpu():
    producer = Forged(device_type=15, device_id=3, data=0x1234, byte_offset=256)
    with dlw.from_dlpack(producer) as tensor:
        yield tensor


def test_rule_106_data_is_a_handle_and_never_followed(on_gpu, monkeypatch):
    monkeypatch.setattr(default(), "can_block", lambda: False)
    assert (str(on_gpu.device), on_gpu.byte_offset) == ("webgpu:3", 256)
    struct = versioned(on_gpu.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (struct.data, struct.byte_offset) == (0x1234, 256)
    for touch in (memoryview, dlw.from_buffer):
        with pytest.raises(BufferError):
            touch(on_gpu)


def test_rule_106_a_copy_on_the_cpu_is_on_the_cpu(on_gpu, monkeypatch):
    """Whatever the Python side returns: a tensor on the GPU would be asked for ever."""
    monkeypatch.setattr(dlw.Tensor, "_read_blocking", lambda self: self)
    for touch in (memoryview, lambda t: t.__dlpack__(dl_device=(1, 0))):
        with pytest.raises(BufferError, match="could not be read back"):
            touch(on_gpu)


def test_rule_113_every_dtype_may_be_on_a_gpu(dtype):
    """Whether WGSL has a type for it or not: bytes are moved as they are."""
    producer = Forged(
        code=dtype["code"], bits=dtype["bits"], device_type=15, data=0x1234
    )
    with dlw.from_dlpack(producer) as tensor:
        assert (tensor.dtype, str(tensor.device)) == (dtype["name"], "webgpu:0")


def test_every_rule_has_a_test(host_python):
    """1 to 121, each once in the name of a test or in ELSEWHERE."""
    found = {*ELSEWHERE, *(rule for rule, *_ in REFUSED)}
    for path in HERE.glob("test_conformance_*.py"):
        for rules in re.findall(
            r"def test_rule((?:_\d{3})+)_", path.read_text("utf-8")
        ):
            found |= {int(rule) for rule in rules.split("_") if rule}
    assert found == set(range(1, 122))
    for file, title, why in ELSEWHERE.values():
        assert title in (ROOT / file).read_text("utf-8"), f"{file}: {title}"
        assert why
