"""What the notebooks of web/lite say in a page and on the desktop: the text and HTML of every cell,
after RULES, and what its pictures look like."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
from notebooks import failed, text_of
from PIL import Image

# What may differ, and is written as one word. All else is the same, letter by letter.
RULES = {
    "the version of a library": (r"'\d+\.\d+\.\d+'", "'VERSION'"),
    "a picture, which is compared as such": (
        r"data:image/png;base64,[\w+/=]+",
        "PICTURE",
    ),
    "a histogram's bars, of what two onnxruntimes computed": (
        r"(?:<rect[^>]+>)+",
        "BARS",
    ),
    "the smallest and largest output of the model: each kind of CPU trains another one": (
        r"-9\.1\d* to 9\.0\d*",
        "-9.1 to 9.0",
    ),
    "whose memory it is: on the desktop onnxruntime's stays on the CPU": (
        r"(memory of</div></th><td><div align='left'>)(?:the creator of the GPUBuffer|dlpack_web, in its pool)",
        r"\1OWNER",
    ),
    "elements of photographs and models: JPEG decoders round differently, CPUs train others": (
        r"Tensor\(\[[-\d\s.,e\[\]]+\], (?=shape=\([\d, ]+\), dtype='(?:uint8'|float32', device='w))",
        "Tensor(ELEMENTS, ",
    ),
    "the same in HTML": (r"<pre>\[[-\d\s.,e\[\]]{200,}\]</pre>", "<pre>ELEMENTS</pre>"),
}
# Two versions of Matplotlib put their axes a pixel apart, so pictures are compared at so many
# pixels, at most: the difference in the mean, of 255. Another picture has ten times as much.
SIDE = 64
TOLERANCE = 6


def check(name: str, cells: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Raise unless the code cells of a notebook say the same in both places."""
    assert failed(cells) == failed(others) == []
    for number, (cell, other) in enumerate(zip(cells, others, strict=True)):
        assert told(cell) == told(other), f"{name}.py, code cell {number}"
        for pair in zip(pictures(cell), pictures(other), strict=True):
            apart = difference(*pair)
            assert apart <= TOLERANCE, (
                f"{name}.py, code cell {number}: the pixels of a picture differ by {apart:.1f} "
                "of 255 in the mean"
            )


def told(cell: dict[str, Any]) -> dict[str, Any]:
    """The text and HTML of a cell, after the rules, and how many pictures there are: what there is."""
    found = {
        "text": ruled(text_of(cell)),
        "html": ruled("".join(shown(cell, "text/html"))),
        "pictures": len(pictures(cell)),
    }
    return {kind: value for kind, value in found.items() if value}


def ruled(text: str) -> str:
    for pattern, instead in RULES.values():
        text = re.sub(pattern, instead, text)
    return text


def shown(cell: dict[str, Any], kind: str) -> list[str]:
    """All that a cell shows of a MIME type."""
    found = [
        output["data"][kind]
        for output in cell["outputs"]
        if kind in output.get("data", {})
    ]
    return [each if isinstance(each, str) else "".join(each) for each in found]


def pictures(cell: dict[str, Any]) -> list[Image.Image]:
    """The pictures that a cell shows, and those within its HTML."""
    within = "".join(shown(cell, "text/html"))
    encoded = shown(cell, "image/png")
    encoded += re.findall(r"data:image/png;base64,([\w+/=]+)", within)
    return [Image.open(io.BytesIO(base64.b64decode(each))) for each in encoded]


def smaller(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """In colour, on white."""
    picture = picture.convert("RGBA")
    page = Image.new("RGBA", picture.size, "white")
    return (
        Image.alpha_composite(page, picture)
        .convert("RGB")
        .resize(size, Image.Resampling.BOX)
    )


def difference(one: Image.Image, other: Image.Image) -> float:
    """The mean difference of the pixels, of pictures made small."""
    size = [-(-side * SIDE // max(other.size)) for side in other.size]
    assert abs(one.width / one.height / (other.width / other.height) - 1) < 0.03
    first, second = (
        np.asarray(smaller(each, (size[0], size[1]))).astype(int)
        for each in (one, other)
    )
    return float(np.abs(first - second).mean())
