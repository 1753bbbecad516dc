"""tinygrad's llm package over a tiny model of the llama architecture: the same tokens on
all devices.

The model is made here: random weights, as Q8_0, float16 and float32, in a file in GGUF's
format (version 3, as ggml documents it).
"""

import struct
import sys
from types import ModuleType

import numpy as np
import pytest
from tinygrad import nn
from tinygrad.helpers import Context
from tinygrad_world import Tensor, held, installed  # noqa: F401

import dlpack_web_tinygrad as dlwt

# The distributions of tinygrad 0.14 lack this package, without which llm cannot be imported.
# Its kernels are for GPUs of AMD, and its Linear is nn's there too.
amd = ModuleType("tinygrad.llm.kernels.amd")
amd.Linear = nn.Linear
amd.amd_custom_kernels_supported = lambda device: False
amd.flash_attention = amd.gated_delta_prefill = None
sys.modules.setdefault("tinygrad.llm.kernels", ModuleType("tinygrad.llm.kernels"))
sys.modules.setdefault("tinygrad.llm.kernels.amd", amd)

from tinygrad.llm.cli import SimpleTokenizer
from tinygrad.llm.model import Transformer, precompute_freqs_cis

pytestmark = pytest.mark.usefixtures("installed")

WORDS = [chr(code) for code in range(ord("a"), ord("z") + 1)] + ["Ġ"]
SPECIAL = ["<|begin|>", "<|end|>"]
DIM, HIDDEN, HEADS, KV_HEADS, BLOCKS, CONTEXT = 32, 64, 4, 2, 2, 32
FACTS = {
    "general.architecture": "llama",
    "llama.block_count": BLOCKS,
    "llama.context_length": CONTEXT,
    "llama.embedding_length": DIM,
    "llama.feed_forward_length": HIDDEN,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.pre": "llama3",
    "tokenizer.ggml.tokens": WORDS + SPECIAL,
    "tokenizer.ggml.token_type": [1] * len(WORDS) + [3] * len(SPECIAL),
    "tokenizer.ggml.bos_token_id": len(WORDS),
    "tokenizer.ggml.eos_token_id": len(WORDS) + 1,
}
FLOAT32, FLOAT16, Q8_0 = 0, 1, 8


def weights():
    """(kind, values) by name, the names as llama.cpp gives them."""
    random = np.random.default_rng(7)
    words, kv = len(WORDS + SPECIAL), DIM // HEADS * KV_HEADS
    shapes = {"token_embd.weight": (FLOAT16, (words, DIM))}
    for i in range(BLOCKS):
        for name, kind, shape in (
            ("attn_q", Q8_0, (DIM, DIM)),
            ("attn_k", Q8_0, (kv, DIM)),
            ("attn_v", FLOAT16, (kv, DIM)),
            ("attn_output", FLOAT32, (DIM, DIM)),
            ("ffn_gate", Q8_0, (HIDDEN, DIM)),
            ("ffn_up", Q8_0, (HIDDEN, DIM)),
            ("ffn_down", Q8_0, (DIM, HIDDEN)),
            ("attn_norm", FLOAT32, (DIM,)),
            ("ffn_norm", FLOAT32, (DIM,)),
        ):
            shapes[f"blk.{i}.{name}.weight"] = kind, shape
    shapes["output_norm.weight"] = FLOAT32, (DIM,)
    shapes["output.weight"] = Q8_0, (words, DIM)
    return {
        name: (kind, random.normal(scale=0.4, size=shape).astype(np.float32))
        for name, (kind, shape) in shapes.items()
    }


def packed(kind, values):
    if kind == FLOAT32:
        return values.tobytes()
    if kind == FLOAT16:
        return values.astype(np.float16).tobytes()
    blocks = values.reshape(-1, 32)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / 127
    numbers = np.round(blocks / scales).astype(np.int8)
    return b"".join(
        scale.astype(np.float16).tobytes() + row.tobytes()
        for scale, row in zip(scales, numbers, strict=True)
    )


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value):
    """A value with its type: uint32, float32, string or an array."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    items = [value_of(each) for each in value]
    head = struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(items))
    return head + b"".join(item[4:] for item in items)


def gguf():
    """The file."""
    tensors, data = b"", b""
    made = weights()
    for name, (kind, values) in made.items():
        sizes = values.shape[::-1]
        tensors += text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        tensors += struct.pack("<IQ", kind, len(data))
        data += packed(kind, values)
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(made), len(FACTS))
    for key, value in FACTS.items():
        head += text(key) + value_of(value)
    head += tensors
    return head + bytes(-len(head) % 32) + data


#: What tinygrad's CPU device says as well: test_tinygrad_llm.py of the desktop.
PROMPT, TOKENS = "hello page", [27, 21, 12, 28, 2, 23, 3, 27, 3, 27, 3, 12]


def generated(device):
    """What the model adds to the prompt. float16 is emulated: wgpu refuses what tinygrad
    generates for it, an element of a bitcast."""
    with Context(EMULATED_DTYPES="half", DEV=device):
        file = dlwt.from_dlpack(np.frombuffer(bytearray(gguf()), np.uint8)).to(device)
        model, facts = Transformer.from_gguf(file)
        tokenizer = SimpleTokenizer.from_gguf_kv(facts)
        tokens = [tokenizer.bos_id, *tokenizer.encode(PROMPT)]
        prompt = len(tokens)
        for _ in zip(range(len(TOKENS)), model.generate(tokens), strict=False):
            pass
    return tokens[prompt:]


def test_a_model_in_gguf_generates_the_same_tokens_everywhere():
    Tensor.rand(1).realize()  # the seed stays on the device
    before = held()
    assert generated("WEBGPU") == TOKENS
    # tinygrad keeps the last inputs of a TinyJit, and the angles of positions.
    precompute_freqs_cis.cache_clear()
    assert held() == before
