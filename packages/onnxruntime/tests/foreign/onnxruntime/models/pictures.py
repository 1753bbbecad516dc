"""Pictures made ready with Pillow and NumPy, classified one by one and in batches."""

import io
import sys

import numpy as np
import onnxruntime as ort
from checks import check
from PIL import Image, ImageOps

session = ort.InferenceSession("classifier.onnx", providers=sys.argv[1:])
name = session.get_inputs()[0].name
mean = np.array([0.485, 0.456, 0.406], dtype=np.float32)
std = np.array([0.229, 0.224, 0.225], dtype=np.float32)
images = [Image.fromarray(each) for each in np.load("pictures.npz")["pictures"]]
check("size and mode", [(i.size, i.mode) for i in images])


def prepared(image, size=32, resample=Image.Resampling.BILINEAR):
    image = image.convert("RGB").resize((size, size), resample)
    array = np.asarray(image, dtype=np.float32) / 255.0
    return ((array - mean) / std).transpose(2, 0, 1)[np.newaxis]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def run(batch, outputs=None):
    return session.run(outputs, {name: batch})


def logits_of(batch):
    return run(batch, ["logits"])[0]


for i, image in enumerate(images):
    check(f"picture {i}: logits", lambda: logits_of(prepared(image)))
    check(f"picture {i}: best", lambda: int(run(prepared(image))[0].argmax()))

    def top3():
        logits = logits_of(prepared(image))[0]
        order = np.argsort(logits)[::-1][:3]
        return [(int(k), float(softmax(logits)[k])) for k in order]

    check(f"picture {i}: three best", top3)
    check(
        f"picture {i}: softmax in NumPy",
        lambda: np.allclose(
            *(lambda o: (softmax(o[0]), o[1]))(run(prepared(image))), atol=1e-5
        ),
    )
first = images[0]
for kind in ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS", "BOX"):
    by = Image.Resampling[kind]
    check(f"resized by {kind}", lambda: run(prepared(first, 32, by))[0], close=1e-3)
for change, changed in {
    "mirrored": ImageOps.mirror(first),
    "rotated": first.rotate(90, expand=True),
    "grey": first.convert("L"),
    "with alpha": first.convert("RGBA"),
    "center crop": ImageOps.fit(first, (40, 40)),
}.items():
    check(change, lambda: run(prepared(changed))[0])


def through_png():
    file = io.BytesIO()
    images[1].save(file, "PNG")
    file.seek(0)
    return logits_of(prepared(Image.open(file)))


check("through a PNG file", through_png)
batch = np.concatenate([prepared(i) for i in images])
check("a batch", lambda: run(batch, ["probabilities"])[0])
check(
    "a batch is its pictures",
    lambda: np.allclose(
        logits_of(batch), np.concatenate([logits_of(b[None]) for b in batch]), atol=1e-5
    ),
)
for n in (0, 1, 3, 8):
    check(f"a batch of {n}", lambda: run(np.resize(batch, (n, 3, 32, 32)))[1])
check("doubles", lambda: run(batch / np.float64(1)))
check("uint8", lambda: run((batch > 0).astype(np.uint8)))
check("a picture", lambda: run(images[0]))
check("channels last", lambda: run(batch.transpose(0, 2, 3, 1)))
last = np.ascontiguousarray(batch.transpose(0, 2, 3, 1))
check("not contiguous", lambda: logits_of(last.transpose(0, 3, 1, 2)))
names = eval(session.get_modelmeta().custom_metadata_map["names"])
check("names of kinds", names)
check(
    "name of the best",
    lambda: [names[int(k)] for k in logits_of(batch).argmax(axis=1)],
)
check("stride", int(session.get_modelmeta().custom_metadata_map["stride"]))
