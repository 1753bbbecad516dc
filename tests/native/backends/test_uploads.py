"""Uploads that end in the middle, over the driver in memory."""

import numpy as np
import pytest
from memory_driver import GPUError, Record

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")


@pytest.mark.parametrize("error", [GPUError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("packed", [False, True])
async def test_an_upload_that_ends_early_is_not_seen_as_whole(
    error, packed, monkeypatch
):
    """Also where its pieces are packed; a GPU's error comes with the elements, others at once."""
    array = np.ones((2, 5 << 20), "u1")[:, : -3 if packed else None]
    with dlw.from_dlpack(array, device="webgpu") as there:
        for last in range(4):
            there.write(array)
            done = []

            def write(
                self, buffer, offset, memory, plain=Record.write, last=last, done=done
            ):
                if len(done) == last:
                    raise error("no more")
                done.append(offset)
                plain(self, buffer, offset, memory)

            with monkeypatch.context() as patch:
                patch.setattr(Record, "write", write)
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
