"""Pillow's images as tensors: as browsers show their files, or refused."""

import io
import itertools

import numpy as np
import pytest

import dlpack_web as dlw

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")
RANDOM = np.random.default_rng(45)


async def pixels_of(image, **options):
    with await dlw.webgpu.from_image(image, **options) as tensor:
        return await tensor.to_host()


def bands(*shape):
    return RANDOM.integers(0, 256, shape, dtype="u1")


def grey(values, alpha=255):
    return np.stack([values] * 3 + [np.broadcast_to(alpha, values.shape)], -1)


def of_palette(mode, indices):
    colours = bands(256, 3)
    image = Image.fromarray(indices, "L") if mode == "P" else Image.new(mode, (6, 4))
    if mode == "P":
        image.putpalette(colours.tobytes())
        return image, np.dstack([colours[indices], np.full(indices.shape, 255)])
    image.putpalette(colours.tobytes())
    alpha = bands(4, 6)
    for y, x in np.ndindex(4, 6):
        image.putpixel((x, y), (int(indices[y, x]), int(alpha[y, x])))
    return image, np.dstack([colours[indices], alpha])


def cases():
    """Images of all modes that are taken, with their pixels by other means."""
    values, alpha, colour = bands(4, 6), bands(4, 6), bands(4, 6, 3)
    opaque = np.full((4, 6), 255)
    yield "L", Image.fromarray(values), grey(values)
    bits = values > 127
    yield "1", Image.fromarray(bits), grey(bits * np.uint8(255))
    yield "LA", Image.fromarray(np.dstack([values, alpha])), grey(values, alpha)
    yield "RGB", Image.fromarray(colour), np.dstack([colour, opaque])
    both = np.dstack([colour, alpha])
    yield "RGBA", Image.fromarray(both), both
    yield "RGBX", Image.frombytes("RGBX", (6, 4), both.tobytes()), both | [0, 0, 0, 255]
    for mode in ("P", "PA"):
        yield (mode, *of_palette(mode, values))
    # Premultiplied, by alphas that divide all bytes.
    few = np.where(alpha > 127, 255, 51).astype("u1")
    dark = colour // 15 * 3 + 0
    scaled = np.dstack([dark, few])
    straight = np.dstack([np.where(few[..., None] == 51, dark * 5, dark), few])
    yield "RGBa", Image.frombytes("RGBa", (6, 4), scaled.tobytes()), straight
    pair = np.dstack([dark[..., 0], few])
    shown = grey(np.where(few == 51, dark[..., 0] * 5, dark[..., 0]), few)
    yield "La", Image.frombytes("La", (6, 4), pair.tobytes()), shown
    for mode, kind in (("CMYK", 4), ("YCbCr", 3), ("HSV", 3)):
        image = Image.frombytes(mode, (6, 4), bands(4, 6, kind).tobytes())
        yield mode, image, np.dstack([np.asarray(image.convert("RGB")), opaque])
    # Files that have one colour, or some, without alpha.
    for mode, key in (("L", 7), ("1", 255), ("RGB", (1, 2, 3))):
        image = Image.fromarray(values).convert(mode)
        image.putpixel((2, 1), key)
        image.info["transparency"] = key
        expected = np.dstack([np.asarray(image.convert("RGB")), opaque])
        where = (expected[..., :3] == np.broadcast_to(key, 3)).all(-1)
        yield (
            f"{mode} with a colour",
            image,
            np.where(where[..., None] & [False, False, False, True], 0, expected),
        )
    for transparency in (3, bytes(range(200))):
        image, expected = of_palette("P", values % 10)
        image.info["transparency"] = transparency
        table = np.full(256, 255)
        if isinstance(transparency, int):
            table[transparency] = 0
        else:
            table[:200] = range(200)
        expected[..., 3] = table[values % 10]
        yield f"P with {type(transparency).__name__}", image, expected


CASES = list(cases())


@pytest.mark.parametrize(
    ("image", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_a_mode_of_8_bits_is_taken(image, expected):
    assert image.mode in {case[0].partition(" ")[0] for case in CASES}
    assert (await pixels_of(image) == expected).all()
    three = await pixels_of(image, channels=3)
    assert (three == expected[..., :3]).all()
    scaled = await pixels_of(image, dtype="float32")
    assert (np.round(scaled * 255) == expected).all()


@pytest.mark.parametrize("mode", ["I;16", "I;16L", "I;16B", "I;16N", "I", "F", "LAB"])
async def test_other_modes_are_refused(mode):
    """Pillow clips them to 0 to 255."""
    with pytest.raises(
        BufferError, match=f"mode '{mode}' is not one of 8 bits"
    ) as told:
        await pixels_of(Image.new(mode, (6, 4)))
    assert "from_dlpack(np.asarray(image)) keeps the values" in str(told.value)


async def test_a_file_of_16_bits_is_taken_as_the_message_says():
    values = (np.arange(24).reshape(4, 6) * 2849).astype("u2")
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    image = Image.open(file)
    with pytest.raises(BufferError, match="scale or convert it first, 16 bits as"):
        await pixels_of(image)
    scaled = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    found = await pixels_of(scaled)
    assert (found[..., 0] == values // 257).all()
    assert found[-1, -1].tolist() == [254, 254, 254, 255]


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
async def test_a_picture_is_turned_as_its_file_says(format, mode, orientation):
    image = Image.fromarray(np.repeat(np.repeat(bands(2, 3, 3), 8, 0), 8, 1)).convert(
        mode
    )
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    image.save(
        file, format, exif=exif, **({} if format == "TIFF" else {"quality": 100})
    )
    found = await pixels_of(Image.open(file))
    turned = ImageOps.exif_transpose(Image.open(file))
    assert turned.size == (24, 16) if orientation < 5 or orientation > 8 else (16, 24)
    assert (found == np.asarray(turned.convert("RGBA"))).all()
    assert (await pixels_of(turned) == found).all()  # and not twice


async def test_orientations_are_those_of_exif():
    """Where the first row and the first column of the file are shown, by EXIF 2.32."""
    image = np.zeros((16, 24, 3), "u1")
    image[0, :, 0] = image[:, 0, 1] = 255
    sides = {"top": np.s_[0], "bottom": np.s_[-1], "left": np.s_[:, 0]}
    sides["right"] = np.s_[:, -1]
    rows = ["top", "top", "bottom", "bottom", "left", "right", "right", "left"]
    columns = ["left", "right", "right", "left", "top", "top", "bottom", "bottom"]
    for orientation, (row, column) in enumerate(zip(rows, columns, strict=True), 1):
        exif, file = Image.Exif(), io.BytesIO()
        exif[0x0112] = orientation
        Image.fromarray(image).save(file, "PNG", exif=exif)
        found = await pixels_of(Image.open(file))
        assert (found[sides[row]][:, 0] == 255).all(), orientation
        assert (found[sides[column]][:, 1] == 255).all(), orientation


@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_damaged_exif_turns_nothing():
    colours = bands(4, 6, 3)
    for head, rest in itertools.product(
        [b"", b"Exif\0\0", b"Exif\0\0II*\0", b"Exif\0\0MM\0*\0\0\0\x08\0\x01"],
        [b"", b"\xff" * 40, b"\x01\x12\0\x02\0\0\0\x01AB\0\0"],
    ):
        image = Image.fromarray(colours)
        image.info["exif"] = head + rest
        assert (await pixels_of(image, channels=3) == colours).all()


async def test_masked_pixels_are_refused():
    array = np.ma.masked_array(bands(4, 6, 3), mask=False)
    assert (await pixels_of(array, channels=3) == array.data).all()
    array[1, 2] = np.ma.masked
    with pytest.raises(BufferError, match=r"masked.*\.filled\(value\), or x\.data"):
        await pixels_of(array)
