"""Loops that Numba compiles, over tensors."""

import kernels
import numba
import numpy as np

values = np.linspace(-2, 2, 41)  # a Tensor
image = (np.arange(120).reshape(10, 12) % 17 / 16).astype("float32")  # a Tensor
whole = np.arange(20, dtype="int64")  # a Tensor


@numba.njit
def clipped(x, low, high):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = min(max(x[i], low), high)
    return out


@numba.njit
def mirrored(picture):
    result = np.zeros_like(picture)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            result[row, column] = picture[row, picture.shape[1] - 1 - column]
    return result


@numba.njit
def doubled(x):
    for i in range(len(x)):
        x[i] *= 2


@numba.vectorize(["float64(float64, float64)"])
def further(a, b):
    return a if abs(a) > abs(b) else b


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)")
def running(x, out):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        out[i] = total


@numba.stencil
def around(a):
    return a[0, -1] + a[0, 1]


inside = clipped(values, -1.0, 1.0)
turned = mirrored(image)
again = mirrored(kernels.scaled(image, 2))
odd = clipped(values[::2], 0.0, 1.0)
far = further(values, 0.5)
both = further(values, values[::-1])
sums = running(values)
edges = around(image)
doubled(whole)
print(np.sum(whole))
calls = clipped.nopython_signatures
