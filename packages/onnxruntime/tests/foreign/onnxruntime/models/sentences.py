"""Embeddings of sentences: a WordPiece tokenizer, an encoder, and the mean of the states that count."""

import sys
import unicodedata

import numpy as np
import onnxruntime as ort
from checks import check


class Tokenizer:
    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            self.ids = {line.rstrip("\n"): i for i, line in enumerate(lines)}
        self.tokens = {i: token for token, i in self.ids.items()}

    def words(self, text):
        text = unicodedata.normalize("NFD", text.lower())
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        spaced = "".join(
            f" {c} " if unicodedata.category(c).startswith("P") else c for c in text
        )
        return spaced.split()

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    found.append(piece)
                    start = end
                    break
            else:
                return ["[UNK]"]
        return found

    def encode(self, text, pair=None, max_length=16):
        tokens = [
            "[CLS]",
            *[p for w in self.words(text) for p in self.pieces(w)],
            "[SEP]",
        ]
        kinds = [0] * len(tokens)
        if pair is not None:
            second = [*[p for w in self.words(pair) for p in self.pieces(w)], "[SEP]"]
            tokens, kinds = tokens + second, kinds + [1] * len(second)
        return [self.ids[t] for t in tokens][:max_length], kinds[:max_length]

    def batch(self, texts, pairs=None):
        encoded = [
            self.encode(t, p) for t, p in zip(texts, pairs or [None] * len(texts))
        ]
        longest = max(len(ids) for ids, _ in encoded)
        ids = np.array(
            [i + [0] * (longest - len(i)) for i, _ in encoded], dtype=np.int64
        )
        kinds = np.array(
            [k + [0] * (longest - len(k)) for _, k in encoded], dtype=np.int64
        )
        mask = np.array([[1] * len(i) + [0] * (longest - len(i)) for i, _ in encoded])
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}


def mean_pooling(states, mask):
    weights = np.expand_dims(mask, -1).astype(np.float32)
    return (states * weights).sum(axis=1) / np.clip(weights.sum(axis=1), 1e-9, None)


def normalize(v):
    return v / np.linalg.norm(v, axis=1, keepdims=True)


tokenizer = Tokenizer("vocabulary.txt")
session = ort.InferenceSession("encoder.onnx", providers=sys.argv[1:])
wanted = [i.name for i in session.get_inputs()]
sentences = [
    "The cat sat on the mat.",
    "A dog was running in the park!",
    "Is it a bird?",
    "Zebra",
    "Café cats, not dogs",
    "",
]
batch = tokenizer.batch(sentences)
check("inputs of the model", wanted)
check("tokens", batch["input_ids"].tolist())
check("mask", batch["attention_mask"].tolist())
(states,) = session.run(None, {name: batch[name] for name in wanted})
check("states", states)
pooled = normalize(mean_pooling(states, batch["attention_mask"]))
check("embeddings", pooled)
check("similarities", pooled @ pooled.T)
check("nearest", (pooled @ pooled.T - 2 * np.eye(len(pooled))).argmax(axis=1).tolist())
check("first token", states[:, 0])
for i, sentence in enumerate(sentences):
    alone = tokenizer.batch([sentence])
    check(f"sentence {i} alone", lambda: session.run(["last_hidden_state"], alone)[0])

    def as_in_the_batch():
        states = session.run(None, alone)[0]
        one = normalize(mean_pooling(states, alone["attention_mask"]))
        return bool(np.allclose(one, pooled[i : i + 1], atol=1e-4))

    check(f"sentence {i} as in the batch", as_in_the_batch)

pairs = tokenizer.batch(["is it a cat?", "we fly"], ["it is a dog.", "they run slow"])


def run(feeds):
    return session.run(None, feeds)


def each(change):
    return {k: change(v) for k, v in batch.items()}


check("pairs", lambda: run(pairs)[0])
check("int32 ids", lambda: run(each(lambda v: v.astype(np.int32).astype(np.int64)))[0])
check("lists", lambda: run(each(np.ndarray.tolist))[0])
ids, mask = batch["input_ids"], batch["attention_mask"]
check("an extra input", lambda: run({**batch, "position_ids": ids}))
check("one input missing", lambda: run({k: batch[k] for k in wanted[:2]}))
check("floats as ids", lambda: run(each(lambda v: v.astype(np.float32))))
check("a mask of bools", lambda: run({**batch, "attention_mask": mask > 0}))
check("one sentence without a batch", lambda: run(each(lambda v: v[0])))
check("a token that is not there", lambda: run({**batch, "input_ids": ids + 1000}))
