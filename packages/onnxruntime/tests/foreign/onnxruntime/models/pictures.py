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


for i, image in enumerate(images):
    check(
        f"picture {i}: logits",
        lambda: session.run(["logits"], {name: prepared(image)})[0],
    )
    check(
        f"picture {i}: best",
        lambda: int(session.run(None, {name: prepared(image)})[0].argmax()),
    )

    def top3():
        logits = session.run(["logits"], {name: prepared(image)})[0][0]
        order = np.argsort(logits)[::-1][:3]
        return [(int(k), float(softmax(logits)[k])) for k in order]

    check(f"picture {i}: three best", top3)
    check(
        f"picture {i}: softmax in NumPy",
        lambda: np.allclose(
            *(lambda o: (softmax(o[0]), o[1]))(
                session.run(None, {name: prepared(image)})
            ),
            atol=1e-5,
        ),
    )
for kind in ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS", "BOX"):
    check(
        f"resized by {kind}",
        lambda: session.run(
            None, {name: prepared(images[0], 32, Image.Resampling[kind])}
        )[0],
        close=1e-3,
    )
check(
    "mirrored",
    lambda: session.run(None, {name: prepared(ImageOps.mirror(images[0]))})[0],
)
check(
    "rotated",
    lambda: session.run(None, {name: prepared(images[0].rotate(90, expand=True))})[0],
)
check("grey", lambda: session.run(None, {name: prepared(images[0].convert("L"))})[0])
check(
    "with alpha",
    lambda: session.run(None, {name: prepared(images[0].convert("RGBA"))})[0],
)
check(
    "center crop",
    lambda: session.run(None, {name: prepared(ImageOps.fit(images[0], (40, 40)))})[0],
)


def through_png():
    file = io.BytesIO()
    images[1].save(file, "PNG")
    file.seek(0)
    return session.run(["logits"], {name: prepared(Image.open(file))})[0]


check("through a PNG file", through_png)
batch = np.concatenate([prepared(i) for i in images])
check("a batch", lambda: session.run(["probabilities"], {name: batch})[0])
check(
    "a batch is its pictures",
    lambda: np.allclose(
        session.run(["logits"], {name: batch})[0],
        np.concatenate([session.run(["logits"], {name: b[None]})[0] for b in batch]),
        atol=1e-5,
    ),
)
for n in (0, 1, 3, 8):
    check(
        f"a batch of {n}",
        lambda: session.run(None, {name: np.resize(batch, (n, 3, 32, 32))})[1],
    )
check("doubles", lambda: session.run(None, {name: batch / np.float64(1)}))
check("uint8", lambda: session.run(None, {name: (batch > 0).astype(np.uint8)}))
check("a picture", lambda: session.run(None, {name: images[0]}))
check("channels last", lambda: session.run(None, {name: batch.transpose(0, 2, 3, 1)}))
check(
    "not contiguous",
    lambda: session.run(
        ["logits"],
        {name: np.ascontiguousarray(batch.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)},
    )[0],
)
names = eval(session.get_modelmeta().custom_metadata_map["names"])
check("names of kinds", names)
check(
    "name of the best",
    lambda: [
        names[int(k)] for k in session.run(["logits"], {name: batch})[0].argmax(axis=1)
    ],
)
check("stride", int(session.get_modelmeta().custom_metadata_map["stride"]))
