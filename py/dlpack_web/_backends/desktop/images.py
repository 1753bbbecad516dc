"""Images to tensors on the desktop: arrays, Pillow images and textures of wgpu-py
(js/src/webgpu/images/images.ts). There is no canvas: pixels come from the CPU, and are
uploaded unchanged.
"""

from typing import Any

from ... import _core
from ..._layout.dtype import Array, DType
from ..._layout.text import type_of
from ..model import messages
from ..model.buffers.transfer import upload
from ..model.device.device import Device
from ..model.errors.operations import attempt
from . import wgpu

_FORMATS = {"rgba8unorm": (0, 1, 2, 3), "bgra8unorm": (2, 1, 0, 3)}
_COPY_SRC = 1  # GPUTextureUsage
# Pillow's modes of 8 bits in sRGB, or what it converts to it.
_MODES = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBX", "RGBa"}
_MODES |= {"CMYK", "YCbCr", "HSV"}
_ORIENTATION = 0x0112  # a tag of EXIF


def from_image(
    device: Device, source: Any, dtype: DType, channels: int
) -> _core.Tensor:
    """The pixels of an image, of shape (height, width, channels)."""
    device.check_alive()
    if dtype not in ("uint8", "float32"):
        raise BufferError(
            f"an image as {dtype} is not supported: use uint8 (0 to 255) or float32 (0 to "
            "1)"
        )
    if channels not in (3, 4):
        raise ValueError(messages.wrong_channels(repr(channels)))
    import numpy as np

    _core._check_mask(source)
    pixels = _pixels(device, source)
    height, width = pixels.shape[:2]
    if height == 0 or width == 0:
        raise BufferError(
            f"an image of {width} x {height} has no pixels: it is empty, closed, or not "
            "loaded yet"
        )
    pixels = np.ascontiguousarray(pixels[..., :channels])
    if dtype == "float32":
        pixels = pixels.astype("f4") / np.float32(255)
    return upload(_core.from_buffer(pixels), device, dtype)


def _pixels(device: Device, source: Any) -> Array:
    """Bytes of shape (height, width, 4), not premultiplied."""
    import numpy as np

    if isinstance(source, wgpu.wgpu().GPUTexture):
        return _of_texture(device, source)
    if callable(getattr(source, "convert", None)) and hasattr(source, "getbands"):
        return _of_pillow(source)
    if not isinstance(source, np.ndarray):
        raise TypeError(
            "from_image takes an array, a Pillow image or a wgpu.GPUTexture, not "
            f"{type_of(source)}: PIL.Image.open(path) makes one of a file"
        )
    array = source[..., None] if source.ndim == 2 else source
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or array.dtype != np.uint8:
        raise BufferError(
            f"an array of {source.dtype} and shape {source.shape} is not an image: it "
            "must be uint8 (0 to 255) of shape (height, width), or (height, width, "
            "channels) with 1, 3 or 4 channels"
        )
    pixels = np.full((*array.shape[:2], 4), 255, np.uint8)
    if array.shape[2] == 4:
        pixels[...] = array
    else:
        pixels[..., :3] = array
    return pixels


def _of_pillow(image: Any) -> Array:
    """The pixels of a Pillow image as browsers show them: turned as EXIF data says."""
    import numpy as np

    if image.mode not in _MODES:
        raise BufferError(
            f"a Pillow image of mode {image.mode!r} is not one of 8 bits in sRGB, and "
            "Pillow clips its values to that: scale or convert it first, 16 bits as "
            "Image.fromarray((np.asarray(image) // 257).astype(np.uint8)); "
            "from_dlpack(np.asarray(image)) keeps the values"
        )
    with_alpha = image.convert("LA") if image.mode == "La" else image
    pixels = np.asarray(with_alpha.convert("RGBA"))
    # After that, because Pillow turns TIFF itself as it loads the pixels.
    try:
        turned = image.getexif().get(_ORIENTATION)
    except Exception:  # noqa: BLE001 - damaged data turns nothing, as in browsers
        turned = None
    if turned in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if turned in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if turned in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def _of_texture(device: Device, texture: Any) -> Array:
    import numpy as np

    order = _FORMATS.get(texture.format)
    width, height, layers = texture.size
    flat = texture.dimension == "2d" and layers == 1 and texture.sample_count == 1
    if order is None or not flat or not texture.usage & _COPY_SRC:
        raise BufferError(
            f"from_image needs a GPUTexture of format {' or '.join(_FORMATS)} with "
            "GPUTextureUsage.COPY_SRC, 2d, of one layer and one sample; this is "
            f"{texture.format} with usage {int(texture.usage)}, {texture.dimension}, of "
            f"{layers} and {texture.sample_count}"
        )
    if wgpu.device_of(texture) is not device.gpu:
        raise BufferError(f"the GPUTexture belongs to another device, not to {device}")

    def read() -> Any:
        wgpu.refuse_destroyed(device.gpu, texture)
        return device.gpu.queue.read_texture(
            {"texture": texture}, {"bytes_per_row": 4 * width}, (width, height, 1)
        )

    memory = attempt(device, "reading a GPUTexture", read)
    return np.frombuffer(memory, np.uint8).reshape(height, width, 4)[..., order]
