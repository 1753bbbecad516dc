"""Tensors in pieces over any channel: js/WIRE.md. js/src/wire has the same files."""
