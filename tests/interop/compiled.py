"""Extensions of C++ and Cython that tests compile: what such libraries do with tensors."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def extension(name, folder, sources, includes=()):
    """The module of these C++ files, compiled in `folder`."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    output = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [compiler, "-std=c++17", "-shared", "-fPIC", "-fno-strict-aliasing"]
    command += ["-fvisibility=hidden"]
    includes = [sysconfig.get_path("include"), *includes]
    command += [f"-I{include}" for include in includes]
    subprocess.run([*command, *sources, "-o", output], check=True)
    spec = importlib.util.spec_from_file_location(name, output)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cython_extension(folder):
    """The module of arrays_cython.pyx."""
    name = "arrays_cython"
    source = folder / f"{name}.cpp"
    command = [sys.executable, "-m", "cython", "-3", "--cplus", "--output-file", source]
    subprocess.run([*command, HERE / f"{name}.pyx"], check=True)
    return extension(name, folder, [source], [np.get_include()])


def pybind11_extension(pybind11, folder):
    """The module of arrays_pybind11.cpp."""
    name = "arrays_pybind11"
    includes = [pybind11.get_include(), np.get_include()]
    return extension(name, folder, [HERE / f"{name}.cpp"], includes)
