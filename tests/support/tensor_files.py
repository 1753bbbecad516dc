"""Files of tensors in memory, and how tests open and save them."""

import io
import zipfile

import numpy as np
from in_python import run

import dlpack_web as dlw


def opened(source, **options):
    return run(dlw.open(source, **options))


def saved(tensors, **options):
    """The bytes that are written."""
    return run(dlw.save(None, tensors, **options))


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive_of(members, method=zipfile.ZIP_STORED):
    """A .npz file of arrays, or of the bytes of .npy files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, given in members.items():
            data = given if isinstance(given, bytes) else npy_of(given)
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()
