"""Dtypes, shapes and strides of elements in memory. Needs no GPU."""
