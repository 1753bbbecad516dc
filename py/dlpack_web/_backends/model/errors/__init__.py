"""Errors that the GPU reports. errors.py keeps them with the bytes that they spoilt,
operations.py runs a driver's calls and records their failure."""
