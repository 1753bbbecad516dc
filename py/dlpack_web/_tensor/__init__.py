"""The Tensor, and what makes one, describes one and exchanges one with others."""
