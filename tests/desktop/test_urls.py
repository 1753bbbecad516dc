"""Files at URLs to a GPU: pieces arrive while other tasks run, and an upload that is left ends."""

import asyncio
import threading

import numpy as np
import pytest
from tensor_files import npy_of
from url_site import STRONG, Site

import dlpack_web as dlw

ARRAY = np.arange(5_000_000, dtype="u4")  # three pieces
NPY = npy_of(ARRAY)
MODEL = {"a": ARRAY[:7], "b": ARRAY}


@pytest.fixture(scope="module")
def site():
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.mark.parametrize(
    "options", [{}, {"cut": 9_000_000}, {"ranges": False}], ids=str
)
def test_an_array_and_a_model(site, options):
    cut = options.pop("cut", None)

    def answer(data):
        return lambda h: h.give(
            data, STRONG, cut=cut if h.time < 3 else None, **options
        )

    async def work():
        await dlw.webgpu.request_device()
        told = []
        url = site("a.npy", answer(NPY))
        progress = {"progress": lambda *n: told.append(n)}
        with await dlw.open(url, device="webgpu", **progress) as tensor:
            assert (await tensor.to_host() == ARRAY).all()
        assert [n for n, _ in told] == sorted({n for n, _ in told})
        assert told[-1] == (ARRAY.nbytes, ARRAY.nbytes)
        url = site("m.safetensors", answer(await dlw.save(None, MODEL)))
        with await dlw.open(url, device="webgpu", whole=True) as model:
            part, (b, _) = await asyncio.gather(
                model.get_slice("b")[1000::2].load(), model.load("b", "a")
            )
            assert (await part.to_host() == ARRAY[1000::2]).all()
            assert (await b.to_host() == ARRAY).all()
        with await dlw.open(url, device="webgpu") as model:
            assert (await model["b"].to_host() == ARRAY).all()

    asyncio.run(work())


def test_an_upload_that_is_left_ends(site):
    ended = threading.Event()

    def answer(h):
        h.give(NPY, cut=10_000_000)
        ended.wait(30)

    async def work():
        await dlw.webgpu.request_device()
        live = dlw.live_tensors()
        first = asyncio.Event()
        opening = dlw.open(
            site("b.npy", answer), device="webgpu", progress=lambda *n: first.set()
        )
        task = asyncio.ensure_future(opening)
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(
            100
        ):  # the thread that read lets go of them after the task has ended
            if dlw.live_tensors() == live:
                break
            await asyncio.sleep(0.05)
        assert dlw.live_tensors() == live
        assert not ended.is_set()

    try:
        asyncio.run(work())
    finally:
        ended.set()
