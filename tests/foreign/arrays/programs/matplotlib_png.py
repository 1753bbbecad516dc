"""Figures of measurements, as pixels: matplotlib with Agg."""

import io

import kernels
import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib import cm, colors

rng = np.random.default_rng(4)
x = np.linspace(0, 4, 50)  # a Tensor
y = np.sin(np.linspace(0, 4, 50)) + rng.normal(0, 0.1, 50)  # a Tensor
error = np.full(50, 0.1)  # a Tensor
field = (rng.integers(0, 256, (12, 16)) / 256).astype("float32")  # a Tensor
photo = rng.integers(0, 256, (10, 10, 3)).astype("uint8")  # a Tensor
kinds = rng.integers(0, 3, 50)  # a Tensor

fig, axes = plt.subplots(2, 3, figsize=(6, 4), dpi=50)
line = axes[0, 0].plot(x, y, "o-", label="measured")
axes[0, 0].errorbar(x, y, yerr=error, fmt="none", ecolor="gray")
axes[0, 0].fill_between(x, y, alpha=0.3)
axes[0, 0].legend()
shown = axes[0, 1].imshow(field, cmap="magma", vmin=0, vmax=1)
fig.colorbar(shown, ax=axes[0, 1])
axes[0, 2].imshow(photo, interpolation="nearest")
axes[1, 0].scatter(x, y, c=kinds, s=error, cmap="viridis")
axes[1, 1].hist([y, x], bins=8, stacked=True)
axes[1, 2].contourf(field, levels=5)
axes[1, 2].contour(kernels.smoothed(field), levels=[0.5], colors="white")
file = io.BytesIO()
fig.savefig(file, format="png", metadata={"Software": None})
fig.canvas.draw()
pixels = np.asarray(fig.canvas.buffer_rgba())[::40, ::40]
plt.imsave("field.png", field, cmap="gray")
read = plt.imread("field.png")
mesh = plt.figure(figsize=(2, 2)).add_subplot().pcolormesh(kernels.scaled(field, 0.5))
mesh.get_array()
norm = colors.Normalize().autoscale_None(field)
rgba = cm.ScalarMappable(colors.Normalize(0, 1), "plasma").to_rgba(field)
edges = plt.hist2d(x, y, bins=4)[0]
bars = plt.figure().add_subplot().bar(x[:5], y[:5], yerr=error[:5])
[bar.get_height() for bar in bars]
limits = plt.gca().set_xlim(x[0], x[-1])
plt.gca().axhline(y[3])
plt.gca().set_xticks(x[::10])
