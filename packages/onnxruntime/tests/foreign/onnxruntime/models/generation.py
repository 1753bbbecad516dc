"""Tokens one after the other, with keys and values of those before: as exported decoders are run."""

import sys

import numpy as np
import onnxruntime as ort
from checks import check

session = ort.InferenceSession("cache.onnx", providers=sys.argv[1:])
inputs = {i.name: i for i in session.get_inputs()}
outputs = [o.name for o in session.get_outputs()]
check("inputs", list(inputs))
check("outputs", outputs)
check(
    "shapes of the cache",
    [inputs[n].shape for n in inputs if n.startswith("past_key_values")],
)
check("types", [i.type for i in inputs.values()])
heads, depth = (
    inputs["past_key_values.0.key"].shape[1],
    inputs["past_key_values.0.key"].shape[3],
)
check("heads and depth", [heads, depth])


def empty(batch):
    return {
        name: np.zeros((batch, heads, 0, depth), dtype=np.float32)
        for name in inputs
        if name.startswith("past_key_values")
    }


def step(ids, past):
    found = dict(zip(outputs, session.run(None, {"input_ids": ids, **past})))
    present = {
        name.replace("present", "past_key_values"): found[name] for name in outputs[1:]
    }
    return found["logits"], present


def greedy(prompt, count):
    ids, past, tokens = np.array([prompt]), empty(1), list(prompt)
    for _ in range(count):
        logits, past = step(ids, past)
        following = int(np.argmax(logits[0, -1]))
        tokens.append(following)
        ids = np.array([[following]])
    return tokens


def without_cache(prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        logits, _ = step(np.array([tokens]), empty(1))
        tokens.append(int(logits[0, -1].argmax()))
    return tokens


check("greedy", lambda: greedy([1, 5, 7], 12))
check("from one token", lambda: greedy([3], 8))


def first(ids, batch=1):
    return step(ids, empty(batch))


three = np.array([[1, 2, 3]])
check("the first step", lambda: first(three)[0])
check(
    "the cache after it",
    lambda: sorted((k, v.shape) for k, v in first(three)[1].items()),
)


def two_steps():
    _, past = first(three)
    logits, past = step(np.array([[4]]), past)
    return logits, past["past_key_values.0.key"]


check("the second step", two_steps)
check("a batch", lambda: first(np.array([[1, 2], [3, 4], [5, 6]]), 3)[0])
check("int64 said", lambda: first(np.array([[1, 2]], dtype=np.int64))[0])
check("argmax as ids", lambda: first(first(three[:, :2])[0].argmax(axis=-1))[0])
check("np.full", lambda: first(np.full((1, 3), 9))[0])
check("np.concatenate", lambda: first(np.concatenate([three[:, :1], [[2]]], axis=1))[0])
check("a list of lists", lambda: first([[1, 2, 3]])[0])
check("astype int64", lambda: first(np.arange(4).reshape(1, -1).astype("int64"))[0])


def sampled(temperature, seed):
    random = np.random.RandomState(seed)
    ids, past, tokens = np.array([[2]]), empty(1), []
    for _ in range(10):
        logits, past = step(ids, past)
        scaled = logits[0, -1].astype(np.float64) / temperature
        p = np.exp(scaled - scaled.max())
        p /= p.sum()
        tokens.append(int(np.searchsorted(p.cumsum(), random.random_sample())))
        ids = np.array([[tokens[-1]]])
    return tokens


for temperature in (0.5, 1.0, 2.0):
    check(f"sampled at {temperature}", lambda: sampled(temperature, 7))


def beams(width, count):
    logits, past = step(np.array([[1]]), empty(1))
    scores = np.log(np.exp(logits[0, -1]) / np.exp(logits[0, -1]).sum())
    best = np.argsort(-scores, kind="stable")[:width]
    paths, totals = [[int(i)] for i in best], scores[best]
    past = {k: np.repeat(v, width, axis=0) for k, v in past.items()}
    for _ in range(count):
        logits, past = step(np.array([[p[-1]] for p in paths]), past)
        last = logits[:, -1]
        scores = (
            totals[:, None] + last - np.log(np.exp(last).sum(axis=1, keepdims=True))
        )
        flat = np.argsort(-scores.ravel(), kind="stable")[:width]
        rows, columns = np.divmod(flat, last.shape[1])
        paths = [paths[r] + [int(c)] for r, c in zip(rows, columns)]
        totals = scores.ravel()[flat]
        past = {k: v[rows] for k, v in past.items()}
    return paths


check("beams", lambda: beams(3, 5))


def bound(count):
    binding = session.io_binding()
    past = {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in empty(1).items()}
    ids, tokens = np.array([[4, 5]], dtype=np.int64), []
    for _ in range(count):
        binding.bind_cpu_input("input_ids", ids)
        for name, value in past.items():
            binding.bind_ortvalue_input(name, value)
        binding.clear_binding_outputs()
        for name in outputs:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        logits, *present = binding.get_outputs()
        past = dict(zip(past, present))
        tokens.append(int(logits.numpy()[0, -1].argmax()))
        ids = np.array([[tokens[-1]]], dtype=np.int64)
    return tokens, past["past_key_values.0.key"].shape()


check("with a binding", lambda: bound(8))
check(
    "the same as without a cache", lambda: greedy([1, 5], 1) == without_cache([1, 5], 1)
)
check("a cache of another batch", lambda: step(np.array([[1], [2]]), empty(1)))
check(
    "a cache of other heads",
    lambda: step(np.array([[1]]), {k: v[:, :1] for k, v in empty(1).items()}),
)
check(
    "a cache of doubles",
    lambda: step(np.array([[1]]), {k: v.astype(float) for k, v in empty(1).items()}),
)
check("no cache", lambda: session.run(None, {"input_ids": np.array([[1]])}))
