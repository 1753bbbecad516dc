"""The same kind of figures as drawings: matplotlib's SVG, vectors and boxes."""

import io

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection

plt.rcParams["svg.hashsalt"] = "the same every time"
angles = np.linspace(0, 6, 25)  # a Tensor
radius = np.linspace(1, 2, 25)  # a Tensor
u = np.cos(np.linspace(0, 6, 16)).reshape(4, 4)  # a Tensor
v = np.sin(np.linspace(0, 6, 16)).reshape(4, 4)  # a Tensor
groups = np.random.default_rng(8).normal(size=(20, 3))  # a Tensor
shares = np.array([3.0, 5.0, 2.0])  # a Tensor

fig = plt.figure(figsize=(6, 4))
polar = fig.add_subplot(231, projection="polar")
polar.plot(angles, radius)
arrows = fig.add_subplot(232).quiver(u, v)
boxes = fig.add_subplot(233).boxplot(groups)
[median.get_ydata() for median in boxes["medians"]]
fig.add_subplot(234).violinplot(groups, showmedians=True)
fig.add_subplot(235).pie(shares, labels=["a", "b", "c"])
steps = fig.add_subplot(236)
steps.step(angles, radius, where="mid")
steps.stem(angles[:5], radius[:5])
steps.semilogy(radius, angles)
points = np.stack([angles, radius], axis=-1)[None]  # a Tensor
steps.add_collection(LineCollection(points, array=radius[:1]))
steps.annotate("here", xy=(angles[3], radius[3]))
steps.set(xlim=(0, 6), ylim=(0.1, 10))
file = io.BytesIO()
fig.savefig(file, format="svg", metadata={"Date": None})
len(file.getvalue()) > 10_000
deep = plt.figure().add_subplot(projection="3d")
deep.plot(angles, radius, angles)
surface = deep.plot_surface(u, v, np.hypot(u, v))
deep.scatter(angles, radius, radius, c=angles)
second = io.BytesIO()
deep.figure.savefig(second, format="svg", metadata={"Date": None})
streams = plt.figure().add_subplot().streamplot(np.arange(4.0), np.arange(4.0), u, v)
streams.lines.get_segments()[:2]
