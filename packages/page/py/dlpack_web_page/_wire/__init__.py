"""Tensors in pieces over any channel: WIRE.md. js/src/wire has the same files."""
