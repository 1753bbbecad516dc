"""What moves, as tensors, from Python inside the page."""

import asyncio

import js
import numpy as np
import pytest
from gpu_fixtures import needs_canvas

import dlpack_web as dlw

pytestmark = [pytest.mark.usefixtures("device", "nothing_leaks"), needs_canvas]


def painted(level):
    canvas = js.OffscreenCanvas.new(6, 4)
    paint(canvas, level)
    return canvas


def paint(canvas, level):
    context = canvas.getContext("2d")
    context.fillStyle = f"rgb({level} {level} {level})"
    context.fillRect(0, 0, canvas.width, canvas.height)


async def test_frames_show_what_the_canvas_shows(device):
    canvas = painted(0)
    seen = []
    with dlw.webgpu.frames(canvas, device, channels=3) as frames:
        async for image in frames:
            assert (image.shape, image.dtype, image.device) == (
                (4, 6, 3),
                "uint8",
                device,
            )
            seen.append(int((await image.to_host())[0, 0, 0]))
            if len(seen) == 4:
                break
            paint(canvas, 50 * len(seen))
    assert seen == [0, 50, 100, 150]
    assert frames.stats["frames"] == 4
    assert frames.stats["bytes"] == frames.stats["moved"] == 4 * 6 * 3


async def test_each_frame_is_released_for_the_next(device):
    frames = dlw.webgpu.frames(painted(9), device, np.float32)
    first = await anext(frames)
    second = await anext(frames)
    with pytest.raises(dlw.ReleasedError):
        await first.to_host()
    assert np.allclose(await second.to_host(), [9 / 255] * 3 + [1])
    frames.stop()
    with pytest.raises(dlw.ReleasedError):
        await second.to_host()
    with pytest.raises(StopAsyncIteration):
        await anext(frames)


async def test_what_is_forgotten_is_stopped(device):
    frames = dlw.webgpu.frames(painted(9), device)
    js_frames = frames._kept.js
    await anext(frames)
    del frames
    assert await js_frames.next() is None


async def test_it_can_be_stopped_while_it_waits(device):
    video = js.document.createElement("video")
    frames = dlw.webgpu.frames(video, device)
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0.02)
    frames.stop()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_cancelled_wait_leaves_nothing(device):
    frames = dlw.webgpu.frames(js.document.createElement("video"), device)
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    frames.stop()


async def test_sources_and_options_that_cannot_be():
    frames = dlw.webgpu.frames
    with pytest.raises(TypeError, match="takes a JavaScript video, canvas or track"):
        frames(np.zeros((2, 2, 4), np.uint8))
    with pytest.raises(TypeError, match="frames takes a canvas"):
        await anext(frames(js.Object.new()))
    with pytest.raises(BufferError, match="images are uploaded to 'webgpu'"):
        frames(painted(0), "cpu")
    with pytest.raises(BufferError, match="int32 is not supported"):
        frames(painted(0), dtype="int32")
    with pytest.raises(ValueError, match="channels must be"):
        frames(painted(0), channels=2)
