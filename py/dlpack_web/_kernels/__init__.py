"""Kernels whose shader is the user's: kernel.py; batch.py records calls of those and of formulas."""
