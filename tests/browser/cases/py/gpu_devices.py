"""Which device a request gives: one by default, another where the options ask for it."""

import asyncio
from contextlib import suppress

import numpy as np
import pytest
from gpu_world import destroy, limit, same

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

request = dlw.webgpu.request_device


def registered():
    return len(dlw.webgpu.stats())


async def test_a_second_request_gives_the_same_device():
    first, before = await request(), registered()
    again = await request()
    assert again == first
    assert same(again.gpu, first.gpu)
    assert registered() == before
    with dlw.empty(1, device="webgpu") as tensor:
        assert tensor.device == first  # what "webgpu" means


async def test_options_ask_for_another_device():
    usual = await request()
    one, other = await request(label="one"), await request(label="other")
    assert len({usual, one, other}) == 3
    assert (one.gpu.label, other.gpu.label) == ("one", "other")
    small = await request(maxBufferSize=2**28)
    assert limit(small.gpu, "maxBufferSize") == 2**28
    assert small not in (usual, one, other)
    assert await request() == usual


async def test_the_same_options_give_the_same_device():
    asked = {"maxBufferSize": 2**27, "features": [], "label": "asked twice"}
    first, before = await request(**asked), registered()
    assert await request(**dict(reversed(asked.items()))) == first
    assert registered() == before
    assert await request(**asked | {"maxBufferSize": 2**28}) != first


async def test_two_requests_at_once_give_one_device():
    before = registered()
    found = await asyncio.gather(*(request(label="at once") for _ in range(3)))
    assert len(set(found)) == 1
    assert registered() == before + 1
    usual = await asyncio.gather(request(), request())
    assert len(set(usual)) == 1


async def test_a_request_that_fails_spoils_no_other():
    def refused():
        return request(maxBufferSize=2**52)

    good = request(label="beside one that fails")
    first, device, second = await asyncio.gather(
        refused(), good, refused(), return_exceptions=True
    )
    for error in first, second:
        assert isinstance(error, BufferError)
        assert "maxBufferSize" in str(error)
    assert await request(label="beside one that fails") == device
    with pytest.raises(TypeError, match="maxMagic"):
        await request(maxMagic=1)


async def test_a_request_that_is_cancelled_spoils_no_other():
    task = asyncio.ensure_future(request(label="cancelled"))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):  # the desktop's may be done by now
        await task
    first = await request(label="cancelled")
    assert await request(label="cancelled") == first
    with dlw.from_dlpack(np.arange(3.0), device=first) as tensor:
        assert (await tensor.to_host()).tolist() == [0, 1, 2]


async def test_a_lost_device_is_not_given_again():
    lost = await request(label="to be lost")
    lost.gpu.destroy()  # and nothing is waited for
    fresh = await request(label="to be lost")
    assert fresh != lost
    await destroy(fresh)
    assert await request(label="to be lost") not in (lost, fresh)


async def test_a_device_is_compared_with_names():
    usual, other = await request(), await request(label="another")
    for device in usual, other:
        assert device == "webgpu"
        assert device == str(device)
        assert device != "cpu"
    assert usual != str(other)
    with dlw.empty(1, device=other) as tensor:
        assert tensor.device == "webgpu"
        assert tensor.device in ("cpu", f"webgpu:{other.id}")


async def test_a_gpu_device_is_no_device():
    gpu = (await request()).gpu
    with pytest.raises(TypeError, match=r"GPUDevice.*use_device\(gpu\)"):
        dlw.empty(1, device=gpu)
