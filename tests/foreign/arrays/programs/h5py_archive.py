"""An archive of measurements: h5py with tensors in and out."""

import h5py
import kernels
import numpy as np

rng = np.random.default_rng(13)
signal = (rng.integers(0, 128, (6, 50)) / 128).astype("float32")  # a Tensor
stamps = np.arange(50, dtype="int64") * 20  # a Tensor
flags = rng.random(50) > 0.5  # a Tensor
gain = np.array(2.5)  # a Tensor

with h5py.File("archive.h5", "w") as file:
    group = file.create_group("run")
    group.create_dataset("signal", data=signal, chunks=(1, 50), compression="gzip")
    group["stamps"] = stamps
    group["flags"] = flags
    group.attrs["gain"] = gain
    group.attrs["first"] = stamps[:3]

file = h5py.File("archive.h5", "r+")
kept = file["run/signal"]
kept.shape == signal.shape, kept.dtype == signal.dtype
row = kept[2]  # a Tensor
smooth = kernels.smoothed(row)
kept[2] = smooth
kept[3:5, 10:20] = signal[:2, :10]
kept[0, :] = kernels.scaled(signal[0], 0.5)
grown = file.create_dataset("grown", shape=(0, 50), maxshape=(None, 50), dtype="f4")
grown.resize((2, 50))
grown[1] = signal[5]
matching = file.require_dataset("like", signal.shape, signal.dtype)
matching[...] = signal
picked = kept[:, np.flatnonzero(flags)[:4]]
masked = file["run/stamps"][flags]
compound = np.zeros(4, [("t", "i8"), ("v", "f4")])
compound["t"] = stamps[:4]
compound["v"] = row[:4]
file["compound"] = compound
out = np.zeros(50, "float32")  # a Tensor
kept.read_direct(out, np.s_[1])
file.attrs.create("stamps", stamps[:5])
file.attrs["stamps"], file["run"].attrs["gain"] * 2
same = np.array_equal(file["like"][...], signal)
file.close()
