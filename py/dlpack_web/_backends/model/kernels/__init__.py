"""Compute shaders. wgsl.py reads the declarations of a source, arguments.py checks a call
against them, kernels.py runs one call, batch.py recorded ones."""
