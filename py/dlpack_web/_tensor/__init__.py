"""Tensor, and the functions that make, describe and exchange Tensors."""
