"""Images to tensors and back, from Python: canvases in a page, Pillow's on the desktop."""

import asyncio

import numpy as np
import pytest
from gpu_fixtures import needs_canvas
from gpu_world import (
    canvas_of,
    counted,
    only_in_a_page,
    painted,
    shown,
    start_counting,
)

import dlpack_web as dlw

pytestmark = [pytest.mark.usefixtures("device", "nothing_leaks"), needs_canvas]


def pattern(height, width):
    """Opaque RGBA pixels, every channel different."""
    pixels = (np.arange(height * width * 4) * 37 % 251).astype(np.uint8)
    pixels = pixels.reshape(height, width, 4)
    pixels[..., 3] = 255
    return pixels


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 257)], ids=str)
@pytest.mark.parametrize("channels", [3, 4])
async def test_numpy_sees_the_pixels(shape, channels):
    pixels = pattern(*shape)
    with await dlw.webgpu.from_image(painted(pixels), channels=channels) as tensor:
        assert (tensor.shape, tensor.dtype) == ((*shape, channels), "uint8")
        assert str(tensor.device).startswith("webgpu:")
        assert (np.asarray(tensor) == pixels[..., :channels]).all()


async def test_float32_is_between_0_and_1(device):
    pixels = pattern(5, 3)
    image = painted(pixels)
    with await dlw.webgpu.from_image(image, device, np.float32, 3) as tensor:
        assert tensor.device == device
        assert np.allclose(np.asarray(tensor), pixels[..., :3] / 255, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
async def test_image_to_tensor_to_image(dtype):
    pixels = pattern(3, 257)
    with await dlw.webgpu.from_image(painted(pixels), dtype=dtype) as tensor:
        assert (await dlw.webgpu.to_image(tensor) == pixels).all()


@only_in_a_page("canvases")
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
async def test_canvas_to_tensor_to_canvas(dtype):
    pixels, canvas = pattern(3, 257), canvas_of(1, 1)
    source = painted(pixels)
    start_counting()
    with await dlw.webgpu.from_image(source, dtype=dtype) as tensor:
        await dlw.webgpu.to_canvas(tensor, canvas)
    counts = counted()
    assert (counts.copies, counts.map_async) == (0, 0)
    assert (shown(canvas) == pixels).all()


@only_in_a_page("canvases")
async def test_array_on_a_canvas():
    import js

    grey = np.arange(6, dtype=np.uint8).reshape(2, 3, 1) * 50
    canvas = js.document.createElement("canvas")
    with dlw.from_dlpack(grey, device="webgpu") as tensor:
        await dlw.webgpu.to_canvas(tensor, canvas)
    assert (shown(canvas)[..., :3] == grey).all()


async def test_what_images_are_not_made_into():
    from_image, image = dlw.webgpu.from_image, painted(pattern(2, 2))
    with pytest.raises(BufferError, match="use uint8"):
        await from_image(image, dtype="int32")
    with pytest.raises(ValueError, match="channels must be 4"):
        await from_image(image, channels=2)
    with pytest.raises(BufferError, match="images are uploaded to 'webgpu'"):
        await from_image(image, "cpu")
    with pytest.raises(BufferError, match="webgpu:99"):
        await from_image(image, "webgpu:99")


@only_in_a_page("images of JavaScript")
async def test_a_picture_has_all_pixels_of_its_file():
    """However densely it is shown."""
    import js

    canvas = js.document.createElement("canvas")
    canvas.width, canvas.height = 6, 4
    context = canvas.getContext("2d")
    context.fillStyle = "#0f0"
    context.fillRect(3, 2, 3, 2)
    for density in ("1x", "2x", "0.5x"):
        picture = js.Image.new()
        picture.srcset = f"{canvas.toDataURL()} {density}"
        await picture.decode()
        with await dlw.webgpu.from_image(picture) as image:
            found = await image.to_host()
        assert found.shape == (4, 6, 4)
        assert (found[2:, 3:] == [0, 255, 0, 255]).all()
        assert found.sum() == 6 * 2 * 255


@only_in_a_page("images of JavaScript")
async def test_a_picture_that_is_given_up_leaves_no_tensor():
    import js

    canvas = js.document.createElement("canvas")
    picture = js.Image.new()
    picture.src = canvas.toDataURL()
    await picture.decode()
    live = dlw.live_tensors()
    for source in (canvas, picture):
        taking = asyncio.ensure_future(dlw.webgpu.from_image(source))
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError) as kept:
            await taking
        with await dlw.webgpu.from_image(picture) as later:
            await later.to_host()
        assert dlw.live_tensors() == live, kept


@only_in_a_page("images of JavaScript")
async def test_sources_that_are_refused():
    import js

    bitmap = await js.createImageBitmap(painted(pattern(2, 2)))
    bitmap.close()
    from_image = dlw.webgpu.from_image
    with pytest.raises(BufferError, match="has no pixels"):
        await from_image(bitmap)
    with pytest.raises(TypeError, match="fromImage takes a canvas"):
        await from_image(js.Object.new())
    with pytest.raises(TypeError, match="a JavaScript image, not an ndarray"):
        await from_image(np.zeros((2, 2, 4), np.uint8))


@only_in_a_page("canvases")
async def test_tensors_and_canvases_that_are_refused():
    import js

    to_canvas, canvas = dlw.webgpu.to_canvas, canvas_of(1, 1)
    with (
        dlw.empty((2, 2), device="webgpu") as flat,
        pytest.raises(BufferError, match="shape must be"),
    ):
        await to_canvas(flat, canvas)
    with dlw.empty((2, 2, 3)) as host, pytest.raises(BufferError, match="upload it"):
        await to_canvas(host, canvas)
    with (
        dlw.empty((2, 2, 3), device="webgpu") as tensor,
        pytest.raises(TypeError, match="needs a canvas"),
    ):
        await to_canvas(tensor, js.Object.new())
    with pytest.raises(dlw.ReleasedError):
        await to_canvas(tensor, canvas)
    with pytest.raises(TypeError, match="draws a Tensor"):
        await to_canvas(np.zeros((2, 2, 3)), canvas)
