"""A detector as YOLO's: letterbox, run, boxes of columns, and those left that overlap least."""

import sys

import numpy as np
import onnxruntime
from checks import check

session = onnxruntime.InferenceSession("detector.onnx", providers=sys.argv[1:])
image_input = session.get_inputs()[0]
_, _, height, width = image_input.shape
check("size", [height, width])
picture = np.load("pictures.npz")["pictures"][0]


def resized(image, h, w):
    rows = (np.arange(h) * image.shape[0] / h).astype(int)
    columns = (np.arange(w) * image.shape[1] / w).astype(int)
    return image[rows][:, columns]


def letterbox(image):
    scale = min(height / image.shape[0], width / image.shape[1])
    h, w = round(image.shape[0] * scale), round(image.shape[1] * scale)
    canvas = np.full((height, width, 3), 114, np.uint8)
    top, left = (height - h) // 2, (width - w) // 2
    canvas[top : top + h, left : left + w] = resized(image, h, w)
    return canvas, scale, top, left


def prepared(canvas):
    chw = canvas[:, :, ::-1].transpose(2, 0, 1)
    return np.expand_dims(chw / 255.0, 0).astype(np.float32)


canvas, scale, top, left = letterbox(picture)
blob = prepared(canvas)
check("blob", blob)


def run(images):
    return session.run(None, {image_input.name: images})


(output,) = run(blob)
check("output", output)
check(
    "transposed view as an input",
    lambda: run((canvas[None] / np.float32(255)).transpose(0, 3, 1, 2))[0],
)
check("reversed channels", lambda: run(blob[:, ::-1])[0])


def iou(box, others):
    x1 = np.maximum(box[0], others[:, 0])
    y1 = np.maximum(box[1], others[:, 1])
    x2 = np.minimum(box[2], others[:, 2])
    y2 = np.minimum(box[3], others[:, 3])
    common = np.maximum(0, x2 - x1) * np.maximum(0, y2 - y1)
    area = (box[2] - box[0]) * (box[3] - box[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    return common / (area + areas - common)


def nms(boxes, scores, threshold):
    order, keep = np.argsort(-scores, kind="stable"), []
    while len(order):
        first = order[0]
        keep.append(int(first))
        order = order[1:][iou(boxes[first], boxes[order[1:]]) < threshold]
    return keep


def found(output, confidence, overlap):
    rows = np.squeeze(output).T
    scores = rows[:, 4:].max(axis=1)
    rows, scores = rows[scores > confidence], scores[scores > confidence]
    kinds = rows[:, 4:].argmax(axis=1)
    x, y, w, h = rows[:, :4].T
    boxes = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1)
    keep = nms(boxes, scores, overlap)
    boxes = (boxes[keep] - [left, top, left, top]) / scale
    return boxes, scores[keep], kinds[keep].tolist()


for confidence in (0.3, 0.5, 0.55, 0.9):
    check(
        f"boxes above {confidence}", lambda: found(output, confidence, 0.45), close=1e-3
    )
for overlap in (0.1, 0.7):
    check(f"boxes with overlap {overlap}", lambda: len(found(output, 0.4, overlap)[0]))
check("best of each kind", np.squeeze(output)[4:].argmax(axis=1).tolist())
second = np.load("pictures.npz")["pictures"][1]
check("another picture", lambda: run(prepared(letterbox(second)[0]))[0])
check("uint8", lambda: run(canvas[None].transpose(0, 3, 1, 2)))
check("doubles", lambda: run(blob.astype(np.float64)))
check("a batch of two", lambda: run(np.concatenate([blob, blob])))
check("without a batch", lambda: run(blob[0]))
check("channels last", lambda: run(blob.transpose(0, 2, 3, 1)))
check("another size", lambda: run(blob[:, :, :32, :32]))
