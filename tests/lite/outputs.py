"""What the notebooks of web/lite say: the same in a page (tests/lite) and on the desktop
(tests/desktop/test_notebooks.py).

outputs.json has the text and HTML of every cell, after RULES; pictures/ what their pictures look
like. Both backends are compared with these files, not with each other: so neither is ever compared
with what the other said some time ago. tests/desktop/notebook.py writes them anew.
"""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from notebooks import failed, text_of
from PIL import Image

HERE = Path(__file__).parent
FILE = HERE / "outputs.json"
PICTURES = HERE / "pictures"
BUILD = HERE.parents[1] / "build"
EXPECTED: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text())

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
        r"(memory of</th><td align='left'>)(?:the creator of the GPUBuffer|dlpack_web, in its pool)",
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


def check(name: str, cells: list[dict[str, Any]]) -> None:
    """Raise unless the code cells of a notebook say what they should."""
    assert failed(cells) == []
    for number, (cell, expected) in enumerate(zip(cells, EXPECTED[name], strict=True)):
        assert told(cell) == expected, f"{name}.py, code cell {number}"
        for file, picture in zip(
            files(name, number, expected.get("pictures", 0)),
            pictures(cell),
            strict=True,
        ):
            apart = difference(np.asarray(Image.open(file)), picture)
            if apart > TOLERANCE:
                picture.save(BUILD / file.name)
                raise AssertionError(
                    f"build/{file.name} is not {file.relative_to(HERE)}: the pixels "
                    f"differ by {apart:.1f} of 255 in the mean"
                )


def write(name: str, cells: list[dict[str, Any]]) -> None:
    """Keep what these cells say as what is expected."""
    assert failed(cells) == []
    for old in PICTURES.glob(f"{name}-*.png"):
        old.unlink()
    PICTURES.mkdir(exist_ok=True)
    EXPECTED[name] = [told(cell) for cell in cells]
    for number, cell in enumerate(cells):
        shown = pictures(cell)
        for file, picture in zip(files(name, number, len(shown)), shown, strict=True):
            size = [-(-side * SIDE // max(picture.size)) for side in picture.size]
            smaller(picture, (size[0], size[1])).save(file, optimize=True)
    FILE.write_text(json.dumps(EXPECTED, indent=1) + "\n")


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


def files(name: str, cell: int, count: int) -> list[Path]:
    return [PICTURES / f"{name}-{cell}-{i}.png" for i in range(count)]


def smaller(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """In colour, on white."""
    picture = picture.convert("RGBA")
    page = Image.new("RGBA", picture.size, "white")
    return (
        Image.alpha_composite(page, picture)
        .convert("RGB")
        .resize(size, Image.Resampling.BOX)
    )


def difference(expected: np.ndarray, picture: Image.Image) -> float:
    """The mean difference of the pixels, at the size that is expected."""
    height, width = expected.shape[:2]
    assert abs(picture.width / picture.height / (width / height) - 1) < 0.03
    pixels = np.asarray(smaller(picture, (width, height))).astype(int)
    return float(np.abs(pixels - expected).mean())
