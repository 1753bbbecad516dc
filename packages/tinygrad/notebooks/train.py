# %% [markdown]
# # Train a network with tinygrad
# tinygrad runs on the WebGPU device of our tensors. A small convolutional network learns
# to read handwritten digits; then it reads one of yours, and its weights are saved.

# %%
# %pip install dlpack-web dlpack-web-tinygrad tinygrad
import numpy as np

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

device = dlwt.install(await dlw.webgpu.request_device())
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

Tensor.manual_seed(0)

# %% [markdown]
# ## Handwriting, as scikit-learn ships it

# %%
file = {name: t.numpy() for name, t in (await dlw.open("handwriting.npz")).items()}
digits, unseen = (np.float32(file[x][:, None] / 16) for x in ("pixels", "test_pixels"))
labels, answers = file["labels"].astype(np.int32), file["test_labels"]
digits.shape, unseen.shape


# %% [markdown]
# ## A network, and one step of its training
# A step reads its batch from two tensors of ours, without a copy.


# %%
class Network:
    def __init__(self):
        self.filters = nn.Conv2d(1, 16, 3)
        self.last = nn.Linear(16 * 3 * 3, 10)

    def __call__(self, x):
        return self.last(self.filters(x).relu().max_pool2d().flatten(1))


network = Network()
optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.01)
pixels = dlw.empty((32, 1, 8, 8), "float32", device=device)
truth = dlw.empty((32,), "int32", device=device)
x, y = dlwt.from_dlpack(pixels), dlwt.from_dlpack(truth)


@TinyJit
def step():
    optimizer.zero_grad()
    loss = network(x).sparse_categorical_crossentropy(y).backward()
    optimizer.step()
    return loss.realize()


# %% [markdown]
# ## Training
# The first two steps take seconds: tinygrad generates the kernels in Python.

# %%
rng = np.random.default_rng(0)
losses = []
for _ in range(80):
    rows = rng.choice(len(digits), 32, replace=False)
    pixels.write(digits[rows])
    truth.write(labels[rows])
    with Context(TRAINING=1):
        loss = step()
    losses.append(float(await dlwt.to_host(loss)))
print(f"The loss is {losses[0]:.2f} at first.")
f"After {len(losses)} steps it is below a quarter: {losses[-1] < losses[0] / 4}"

# %% [markdown]
# ## Digits that it has not seen

# %%
read = (await dlwt.to_host(network(Tensor(unseen)).realize())).argmax(1)
f"9 of 10 are right: {(read == answers).mean() > 0.9}"

# %%
drawn = """
..####..
.#....#.
......#.
...###..
......#.
......#.
.#....#.
..####..
"""
ink = np.array([list(row) for row in drawn.split()]) == "#"
scores = network(Tensor(np.float32(ink[None, None])))
f"Reads as {(await dlwt.to_host(scores)).argmax()}"

# %% [markdown]
# ## The weights as a file, and back

# %%
data = await dlw.save(None, nn.state.get_state_dict(network))
weights = await dlw.open(data, device=device)
other = Network()
tensors = {name: dlwt.from_dlpack(t) for name, t in weights.items()}
nn.state.load_state_dict(other, tensors, verbose=False)
again = (await dlwt.to_host(other(Tensor(unseen)).realize())).argmax(1)
list(weights), bool((again == read).all())
