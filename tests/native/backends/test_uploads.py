"""Uploads that end in the middle, over the driver in memory."""

import io
import sys

import numpy as np
import pytest

if sys.platform == "emscripten":
    pytest.skip("the GPU of the page is at hand here", allow_module_level=True)

import dlpack_web as dlw
from dlpack_web._files import local
from dlpack_web_memory import Device, GPUError

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")


@pytest.mark.parametrize("error", [GPUError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("packed", [False, True])
async def test_an_upload_that_ends_early_is_not_seen_as_whole(
    error, packed, monkeypatch
):
    """Also where its pieces are packed; a GPU's error comes with the elements, others at once."""
    array = np.ones((2, 5 << 18), "u1")[:, : -3 if packed else None]
    with dlw.from_dlpack(array, device="webgpu") as there:
        for last in range(4):
            there.write(array)
            done = []

            def write(
                self, buffer, offset, memory, plain=Device.write, last=last, done=done
            ):
                if len(done) == last:
                    raise error("no more")
                done.append(offset)
                plain(self, buffer, offset, memory)

            with monkeypatch.context() as patch:
                patch.setattr(Device, "write", write)
                try:
                    there.write(array + 1)
                    raised = False
                except error:
                    raised = True
            assert raised == (error is not GPUError and last < 3)
            if last == 3:
                assert (await there.to_host() == 2).all()
                continue
            with pytest.raises(
                BufferError, match=r"uploading uint8 (ended early|failed)"
            ):
                await there.to_host()


@pytest.mark.parametrize("dtype", ["bfloat16", "uint8x3", "float32x12"])
async def test_a_file_waits_only_for_tensors_that_may_wait(dtype, device, monkeypatch):
    """Pieces of whole words are smaller than PIECE, and not by elements of any size."""
    settled = []
    monkeypatch.setattr(local, "PIECE", 512)
    monkeypatch.setattr(Device, "settle", lambda record: settled.append(record))
    step = dlw.DType(dtype).itemsize
    for size in *range(1, 44), *range(320, 345), 512, 513, 1000:
        file = io.BytesIO()
        np.savez(file, w=np.zeros(size, f"V{step}"))
        del settled[:]
        with await dlw.open(file.getvalue(), device=device, dtype=dtype) as tensors:
            (await tensors.load("w"))[0].release()
            assert not settled or size * step > 1024
    assert settled
