"""A package: its conftest.py is not that of the folder above."""
