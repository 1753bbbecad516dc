"""A file of a gibibyte goes to the GPU, and Python's memory stays as it is."""

import numpy as np
import pytest
from gpu_world import limit, memory

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("nothing_leaks")

MB = 1 << 20
COUNT = (1 << 28) - 32  # elements of 4 bytes; with its header the file has 1 GiB


async def test_a_gibibyte_to_the_gpu(device):
    parts = 1 if limit(device.gpu, "maxBufferSize") >= 4 * COUNT else 8
    kind = "npy" if parts == 1 else "safetensors"
    count = COUNT // parts
    url = f"/made/large.{kind}?count={count}&tensors={parts}"
    with await dlw.open(f"/made/warm.{kind}?count=8", device="webgpu") as warm:
        if parts > 1:
            warm["0"].release()
    told = []
    before = memory()
    found = await dlw.open(
        url, device="webgpu", progress=lambda loaded, total: told.append(loaded)
    )
    tensors = [found] if parts == 1 else await found.load()
    grown = memory() - before
    assert grown <= 32 * MB, f"{grown} bytes"
    assert told[-1] == 4 * count
    for i, tensor in enumerate(tensors):
        first = i * count
        for at in (0, 1_234_567, count - 1000):
            with tensor[at : at + 1000] as part:
                expected = np.arange(first + at, first + at + 1000)
                assert (await part.to_host() == expected).all()
        tensor.release()
    assert memory() - before <= 32 * MB
