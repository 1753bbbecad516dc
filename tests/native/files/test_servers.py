"""What servers do to files at URLs: rows of tests/files/servers.json, which tests/js/open/servers.test.mjs reads too.

A row: what a server answers, one after the other, the last one for ever: `ranges` (false: it has none), `status`,
`headers` in place of its own (null: left out; {start}, {end}, {size} and {more} of its range and its file), `cut` (it
breaks off after so many bytes), `most` (it sends no more), `keep` (so much of the file is there), `other` (the byte
there, true: the last one, is another), `closes` (unanswered), `body` (the whole file, a byte more than it was asked for,
or gzip). {last} is the last byte that it sends, {before} the one before, {next} the second element. `file`: of which
kind, .npy if it says none; `part`: of these elements. Then what is read is right, or fails with `error`; `asked`: the
ranges, or how many; `paced`: no more often than by the tries. only: in one language."""

import gzip
import json
import re
import sys
import urllib.parse
from pathlib import Path

import numpy as np
import pytest
from conftest import run, settle
from tensor_files import archive_of, npy_of, opened, saved

import dlpack_web as dlw

if sys.platform == "emscripten":
    pytest.skip("JavaScript reads URLs", allow_module_level=True)

from url_site import STRONG, Site

from dlpack_web._files import remote

NUMBERS = np.arange(300_000, dtype="u4")
HALVES = {"a": NUMBERS[:150_000], "b": NUMBERS[150_000:]}
FILES = {
    "npy": npy_of(NUMBERS),
    "safetensors": saved(HALVES),
    "npz": archive_of(HALVES),
    "raw": NUMBERS.tobytes(),
}
ROWS = json.loads((Path(__file__).parents[2] / "files/servers.json").read_text("utf-8"))


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(remote, "_LONGEST", 0.0001)
    live = dlw.live_tensors()
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()
    settle(live)


def answer(handler, data, says):
    if says.get("closes"):
        handler.connection.close()
        return
    data = bytearray(data[: says.get("keep")])
    if (at := says.get("other")) is not None:
        data[-1 if at is True else at] ^= 1
    start, end = handler.wanted(data) if says.get("ranges", True) else (0, len(data))
    end = min(end, start + says.get("most", end))
    facts = {"start": start, "end": len(data) - 1, "size": len(data)}
    facts |= {
        "more": len(data) + 1,
        "last": end - 1,
        "before": end - 2,
        "next": start + 4,
    }
    headers = {
        name.title(): text and text.format(**facts)
        for name, text in says.get("headers", {}).items()
    }
    options = {
        key: says[key] for key in says.keys() & {"ranges", "status", "cut", "most"}
    }
    if kind := says.get("body"):
        part = bytes(data[start:end])
        bodies = {"whole": bytes(data), "longer": bytes(data[start : end + 1])}
        options["body"] = body = (bodies | {"gzip": gzip.compress(part)})[kind]
        headers = {"Content-Length": str(len(body))} | headers
        if kind == "gzip":
            headers["Content-Encoding"] = "gzip"
    handler.give(bytes(data), {"Etag": STRONG["ETag"]} | headers, **options)


def read(url, kind, part):
    raw = {"dtype": "uint32"} if kind == "raw" else {}
    with opened(url, format=kind, **raw) as found:
        if part:
            with run(found.get_slice("a")[slice(*part)].load()) as tensor:
                assert (tensor.numpy() == HALVES["a"][slice(*part)]).all()
        elif kind in ("npy", "raw"):
            assert (found.numpy() == NUMBERS).all()
        else:
            for name in ("b", "a", "b"):
                assert (found[name].numpy() == HALVES[name]).all()


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_server(site, row):
    if row.get("only") == "js":
        return
    kind, answers = row.get("file", "npy"), row["answers"]
    data, name, part = FILES[kind], urllib.parse.quote(row["name"]), row.get("part")
    url = site(name, lambda h: answer(h, data, answers[min(h.time, len(answers)) - 1]))
    if "error" in row:
        error = row["error"].replace("{origin}", re.escape(site.origin))
        with pytest.raises(BufferError, match=error):
            read(url, kind, part)
    else:
        read(url, kind, part)
    asked = site.asked[name]
    if "paced" in row:
        assert 5 <= len(asked) <= 65
    elif isinstance(count := row.get("asked", asked), int):
        assert len(asked) == count
    else:
        assert asked == [each.replace("{last}", str(len(data) - 1)) for each in count]
