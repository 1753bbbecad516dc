"""Where models come from: paths, bytes, files beside them; and sessions that are pickled by their source."""

import copy
import io
import os
import pickle
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime as ort
from checks import check

P = sys.argv[1:]
x = np.arange(4, dtype=np.float32).reshape(2, 2)


def summed(session):
    return session.run(["sum"], {"a": x, "b": x})[0]


def ran(source, **options):
    return summed(ort.InferenceSession(source, providers=P, **options))


data = Path("named.onnx").read_bytes()
check("a str", lambda: ran("named.onnx"))
check("a Path", lambda: ran(Path("named.onnx")))
check("an absolute path", lambda: ran(os.path.abspath("named.onnx")))
check("a path with dots", lambda: ran("./../" + Path.cwd().name + "/named.onnx"))
check("bytes", lambda: ran(data))
check("bytes of a file", lambda: ran(open("named.onnx", "rb").read()))
check("a bytearray", lambda: ran(bytearray(data)))
check("a memoryview", lambda: ran(memoryview(data)))
check("a BytesIO's value", lambda: ran(io.BytesIO(data).getvalue()))
check("a BytesIO", lambda: ran(io.BytesIO(data)))
named = ort.InferenceSession(path_or_bytes="named.onnx", providers=P)
check("by name", lambda: summed(named))


class Named(os.PathLike):
    def __fspath__(self):
        return "named.onnx"


check("a PathLike", lambda: ran(Named()))
folder = Path(tempfile.mkdtemp())
for name in (
    "mödel.onnx",
    "with space.onnx",
    "no_ending",
    "a.b.c.onnx",
    "100%.onnx",
    "q?.onnx",
):
    shutil.copy("named.onnx", folder / name)
    check(f"file {name}", lambda: ran(str(folder / name)))
os.symlink(os.path.abspath("named.onnx"), folder / "link.onnx")
check("a link", lambda: ran(folder / "link.onnx"))


def removed():
    path = folder / "removed.onnx"
    shutil.copy("named.onnx", path)
    session = ort.InferenceSession(path, providers=P)
    path.unlink()
    return summed(session)


check("a file that is removed", removed)


def replaced():
    path = folder / "replaced.onnx"
    shutil.copy("named.onnx", path)
    session = ort.InferenceSession(path, providers=P)
    shutil.copy("scalar.onnx", path)
    return [i.name for i in session.get_inputs()]


check("a file that is replaced", replaced)


# Weights in a second file.
pixels = np.load("digits.npz")["pixels"]


def digits(source, **options):
    session = ort.InferenceSession(source, providers=P, **options)
    return session.run(None, {"pixels": pixels})[0].argmax(axis=1).tolist()


check("external: a path", lambda: digits("external.onnx"))
check("external: an absolute path", lambda: digits(os.path.abspath("external.onnx")))


def elsewhere(*names):
    there = Path(tempfile.mkdtemp())
    for name in names:
        shutil.copy(name, there / name)
    return str(there / "external.onnx")


both = "external.onnx", "external.bin"
check("external: another folder", lambda: digits(elsewhere(*both)))
check("external: without its file", lambda: digits(elsewhere("external.onnx")))


def from_memory():
    options = ort.SessionOptions()
    weights = Path("external.bin").read_bytes()
    options.add_external_initializers_from_files_in_memory(
        ["external.bin"], [weights], [len(weights)]
    )
    return digits(Path("external.onnx").read_bytes(), sess_options=options)


check("external: from memory", from_memory)


def short():
    there = elsewhere("external.onnx", "external.bin")
    beside = Path(there).with_suffix(".bin")
    beside.write_bytes(beside.read_bytes()[:100])
    return digits(there)


check("external: a file that is cut", short)


# The way that people pickle sessions.
class Pickled:
    def __init__(self, source):
        self.source = source
        self.session = ort.InferenceSession(source, providers=P)

    def __getstate__(self):
        return {"source": self.source}

    def __setstate__(self, state):
        self.__init__(state["source"])

    def run(self):
        return summed(self.session)


def again(thing):
    return pickle.loads(pickle.dumps(thing))


check("pickled by its path", lambda: again(Pickled("named.onnx")).run())
check("pickled by its bytes", lambda: again(Pickled(data)).run())
check("copied by its path", lambda: copy.copy(Pickled("named.onnx")).run())
session = ort.InferenceSession("named.onnx", providers=P)
check("a session pickled", lambda: pickle.dumps(session))
check("a session copied deeply", lambda: copy.deepcopy(session))
check("a run's results pickled", lambda: again([summed(session)])[0])
check("an input pickled", lambda: pickle.dumps(session.get_inputs()[0]))
check("an OrtValue pickled", lambda: pickle.dumps(ort.OrtValue.ortvalue_from_numpy(x)))
