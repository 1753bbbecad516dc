"""examples/desktop/desktop_pygfx.py: every point is drawn where it should be, in its colour, from
memory that nobody copied."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/desktop/desktop_pygfx.py"
TELL = f"""
import asyncio, json, sys
from PIL import Image
sys.path.append({str(EXAMPLE.parent)!r})
import desktop_pygfx, dlpack_web as dlw
for amplitude in (30, 0):
    pixels = asyncio.run(desktop_pygfx.picture(amplitude))
    Image.fromarray(pixels).save(f"{{amplitude}}.png")
(row,) = dlw.webgpu.stats()
print(json.dumps([row, dlw.live_tensors()]))
"""


def run(folder, *command):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        check=False,
        env=os.environ | {"PYTHONPATH": str(EXAMPLE.parents[2] / "py")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def drawn(file, amplitude):
    """Whether each of the points has its colour in its middle, and nothing is around them."""
    pixels = np.asarray(Image.open(file)).astype(int)
    height, width, _ = pixels.shape
    assert (width, height) == (480, 380)
    row, column = np.mgrid[:16, :24]
    x, y = (
        20 * column - 230,
        20 * row - 150 + amplitude * np.sin((20 * column - 230) / 60),
    )
    right, down = (
        np.floor(width / 2 + x).astype(int),
        np.floor(height / 2 - y).astype(int),
    )
    colour = np.stack([column / 23, row / 15, 1 - column / 23], axis=-1) * 255
    found = pixels[down, right, :3]
    between = pixels[down, right - 10, :3][:, 1:]  # a quarter of the picture is points
    return np.abs(found - colour).max() <= 2 and (between == 255).all()


def test_arrays_are_drawn_without_a_copy(tmp_path):
    row, alive = json.loads(run(tmp_path, "-c", TELL).splitlines()[-1])
    assert drawn(tmp_path / "30.png", 30)
    assert drawn(tmp_path / "0.png", 0)
    assert not drawn(tmp_path / "0.png", 30)
    # Positions and colours of 384 points, twice: up once each, and never elsewhere.
    assert row["up"] == 2 * 384 * (3 + 4) * 4
    assert (row["copies"], row["copied"], row["down"], row["taken"]) == (4, 0, 0, 2)
    assert (alive, row["buffers"]) == (0, 0)


def test_the_example_is_a_program(tmp_path):
    run(tmp_path, str(EXAMPLE), "wave.png")
    assert drawn(tmp_path / "wave.png", 30)
