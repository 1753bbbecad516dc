"""Tensors as notebooks show them."""

import base64
import io
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web._tensor import show


def shown(array, **options):
    with dlw.from_dlpack(array, **options) as tensor:
        text = tensor._repr_html_()
    Checker().feed(text)
    return text


class Checker(HTMLParser):
    """Fails for tags that are not closed, scripts and styles."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "style")
        assert not {name for name, _ in attrs} & {"style", "onload", "onclick"}
        if tag not in ("img", "br", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag


def heights(text):
    return [float(height) for height in re.findall(r"width='2' height='(.*?)'", text)]


def test_facts_are_told():
    array = np.arange(6, dtype=np.int16).reshape(2, 3).T
    array.flags.writeable = False
    text = shown(array)
    for fact in ("int16", "(3, 2)", "(1, 3), in elements", "cpu", "12 B", "read-only"):
        assert f">{fact}<" in text


def test_owner_is_told():
    class Producer:
        def __dlpack__(self, **_):
            return dlw.from_dlpack(np.zeros(3)).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    ours = dlw.empty(3)
    ours.write(np.zeros(3, np.float32))
    for made, owner in (
        (dlw.from_buffer(bytearray(3)), "builtins.bytearray"),
        (dlw.from_buffer(np.zeros(3)), "numpy.ndarray"),
        (dlw.from_dlpack(np.zeros(3)), "numpy.ndarray"),
        (dlw.from_dlpack(Producer()), "another DLPack producer"),
        (ours, "dlpack_web"),
    ):
        with made:
            assert (
                f"memory of</div></th><td><div align='left'>{owner}<"
                in made._repr_html_()
            )


def test_reports_are_one_block():
    """marimo, and cells with several outputs, lay out what is one element."""
    with dlw.from_dlpack(np.zeros(3)) as tensor:
        text = dlw.inspect({"x": tensor})._repr_html_()
    Checker().feed(text)
    outside = re.sub("<div align='left'>(?:(?!</?div>).)*</div>", "", text)
    assert re.fullmatch("<div>(?:(?!</?div>).)*</div>", outside)


def test_cells_are_left_aligned_whatever_the_styles_of_the_page():
    """JupyterLab's styles say `td, th, tr { text-align: right }`."""
    with dlw.from_dlpack(np.zeros(3)) as tensor:
        for text in (tensor._repr_html_(), dlw.inspect({"x": tensor})._repr_html_()):
            cells = re.findall(r"<t[hd][^>]*>(.{0,18})", text)
            assert len(cells) > 5
            assert set(cells) == {"<div align='left'>"}


def test_plain_text_stays_as_it_is():
    with dlw.from_dlpack(np.zeros(3)) as tensor:
        bundle = tensor._repr_mimebundle_(include=None, exclude=None)
        assert bundle == {"text/plain": str(tensor), "text/html": tensor._repr_html_()}
    assert tensor._repr_html_() == "<code>Tensor(released)</code>"


def test_histogram_counts_the_elements():
    text = shown(np.array([0.0, 0.0, 0.0, 31.0]))
    assert heights(text) == [40.0, pytest.approx(13.3)]
    bars = re.findall(
        r"<rect x='(\d+)' y='([\d.]+)' width='2' height='([\d.]+)'/>", text
    )
    assert bars == [("0", "0.0", "40.0"), ("93", "26.7", "13.3")]
    assert "0 to 31" in text
    assert len(heights(shown(np.linspace(0, 1, 3200)))) == 32


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.array([np.nan, np.inf, 1.0]), "2 not finite"),
        (np.array([np.nan]), "no finite elements"),
        (np.zeros((0, 3)), "no elements"),
        (np.array(7), "7 to 7"),
        (np.array([3 + 4j]), "absolute values"),
        (np.array([True, False]), "0 to 1"),
        (np.array([2**63], np.uint64), "9.223e+18"),
        (np.zeros((8, 2)), "0 to 0"),
        (np.array([-1.7e308, 1.7e308]), "-1.7e+308 to 1.7e+308"),
        (np.array([1, 1 + 2**-52]), "1 to 1"),
    ],
)
def test_odd_arrays(array, told):
    assert told in shown(array)


def test_large_arrays_are_sampled():
    text = shown(np.broadcast_to(np.float32(2), (300, 4000, 400)))
    sampled = int(re.search(r"(\d+) of 480000000 elements", text)[1])
    assert 1000 < sampled <= 65536


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_elements_that_numpy_lacks(name):
    with dlw.empty(5, name) as tensor:
        bytes_of = memoryview(dlw._core._raw(tensor)[0])
        bytes_of[:] = bytes(len(bytes_of))
        text = tensor._repr_html_()
    assert "0 to 0" in text or "without a numeric dtype" in text


@pytest.mark.parametrize(
    ("channels", "kind"),
    [(None, "uint8")]  # a matrix of floats is numbers, and not an image
    + [(channels, kind) for channels in (1, 3, 4) for kind in ("uint8", "float32")],
)
def test_thumbnail_has_the_pixels(channels, kind):
    image = pytest.importorskip("PIL.Image")
    shape = (20, 12) if channels is None else (20, 12, channels)
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    array = pixels if kind == "uint8" else pixels.astype(np.float32) / 255
    text = shown(array)
    png = base64.b64decode(re.search(r"base64,(.*?)'", text)[1])
    got = np.asarray(image.open(io.BytesIO(png)))
    expected = pixels[..., 0] if channels == 1 else pixels
    zoom = 96 // 20
    assert f" width='{12 * zoom}' height='{20 * zoom}' src=" in text
    assert np.abs(got.astype(int) - expected).max() <= (kind == "float32")


def test_thumbnails_are_small():
    text = shown(np.zeros((4000, 3000, 3), np.uint8))
    assert "every 42 pixels" in text
    assert len(text) < 4000


@pytest.mark.parametrize(
    ("nbytes", "told"),
    [
        (12, "on the GPU: await t.to_host()"),
        (
            1 << 40,
            "on the GPU, and too large to read back only for display: await t.to_host()",
        ),
    ],
)
def test_elements_on_a_gpu_are_not_waited_for(nbytes, told, monkeypatch):
    unable = SimpleNamespace(can_block=lambda: False)
    monkeypatch.setattr(show, "owner_of", lambda _: unable)
    device = SimpleNamespace(is_host=False)
    assert show.picture(SimpleNamespace(size=3, device=device, nbytes=nbytes)) == told
