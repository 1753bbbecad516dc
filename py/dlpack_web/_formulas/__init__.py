"""Kernels that are made of formulas. formulas.py writes WGSL around those, signature.py finds out
what each parameter is given, elementwise.py and reduction.py are the two kernels."""
