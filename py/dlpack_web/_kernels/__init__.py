"""Kernels: what runs on a GPU device, over either backend."""
