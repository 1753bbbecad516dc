"""Where there is speech: chunks of sound, with a state that goes from run to run."""

import sys

import numpy as np
import onnxruntime
from checks import check


class Detector:
    def __init__(self, path, providers):
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = 1
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            path, providers=providers, sess_options=options
        )
        self.reset()

    def reset(self, batch=1):
        self.state = np.zeros((2, batch, 8), dtype=np.float32)

    def __call__(self, chunk, rate):
        if chunk.ndim == 1:
            chunk = chunk[None]
        feeds = {
            "input": chunk,
            "state": self.state,
            "sr": np.array(rate, dtype="int64"),
        }
        probability, self.state = self.session.run(None, feeds)
        return probability


detector = Detector("voice.onnx", sys.argv[1:])
check("inputs", [(i.name, i.type, i.shape) for i in detector.session.get_inputs()])
check("outputs", [(o.name, o.type, o.shape) for o in detector.session.get_outputs()])
t = np.arange(16000) / 16000
sound = (np.sin(2 * np.pi * 220 * t) * np.clip(np.sin(2 * np.pi * 2 * t), 0, 1)).astype(
    np.float32
)


def probabilities(rate, size=512):
    detector.reset()
    return [
        float(detector(sound[i : i + size], rate)[0, 0]) for i in range(0, 8192, size)
    ]


check("16 kHz", lambda: probabilities(16000))
check("8 kHz", lambda: probabilities(8000, 256))
check("once more", lambda: probabilities(16000))
check("the state", lambda: detector.state)


def segments(threshold):
    found, begun = [], None
    for i, p in enumerate([*probabilities(16000), 0.0]):
        if p >= threshold and begun is None:
            begun = i
        elif p < threshold and begun is not None:
            found.append((begun, i))
            begun = None
    return found


for threshold in (0.4, 0.49, 0.6):
    check(f"segments above {threshold}", lambda: segments(threshold))


def batch():
    detector.reset(3)
    chunks = np.stack([sound[:512], sound[512:1024], sound[1024:1536]])
    return detector(chunks, 16000), detector.state


check("a batch", batch)


def rate_of(value):
    detector.reset()
    feeds = {"input": sound[None, :512], "state": detector.state, "sr": value}
    return detector.session.run(None, feeds)[0]


check("rate as np.array(16000)", lambda: rate_of(np.array(16000)))
check("rate as np.int64", lambda: rate_of(np.int64(16000)))
check("rate in a list", lambda: rate_of([16000]))
check("rate as a number", lambda: rate_of(16000))
check("rate of one element", lambda: rate_of(np.array([16000], dtype=np.int64)))
check("rate as float", lambda: rate_of(np.array(16000.0)))
check("rate as float32", lambda: rate_of(np.array(16000, dtype=np.float32)))
check("rate beyond 32 bits", lambda: rate_of(np.array(2**40, dtype=np.int64)))
check(
    "doubles",
    lambda: Detector("voice.onnx", sys.argv[1:])(sound[:512].astype(np.float64), 16000),
)
check("a chunk of another size", lambda: probabilities(16000, 96))
check("a chunk that does not fit", lambda: detector(sound[:100], 16000))
check("it goes on", lambda: probabilities(16000))
