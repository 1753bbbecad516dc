"""What a library in Cython does with the arrays that it is given."""

cimport cython
cimport numpy as np


def total(const double[:] x):
    cdef double found = 0
    for i in range(x.shape[0]):
        found += x[i]
    return found


def total2(const double[:, :] x):
    return [total(row) for row in x]


def total_floating(cython.floating[:] x):
    cdef double found = 0
    for i in range(x.shape[0]):
        found += x[i]
    return found, sizeof(x[0])


def total_buffer(object[double] x):
    cdef double found = 0
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        found += x[i]
    return found


def total_ndarray(np.ndarray[double] x):
    return total(x)


def double_it(double[:] x):
    for i in range(x.shape[0]):
        x[i] *= 2


def double_contiguous(double[::1] x):
    double_it(x)


def double_buffer(object[double] x):
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        x[i] *= 2


def view(const double[:] x):
    """The memoryview, which keeps what it is of."""
    return x


def flags(const unsigned char[:] x):
    return [x[i] for i in range(x.shape[0])]


def conjugate(double complex[:] x):
    return [x[i].real - 1j * x[i].imag for i in range(x.shape[0])]


def scaled(const double[:] x, double factor, int times):
    return total(x) * factor * times
