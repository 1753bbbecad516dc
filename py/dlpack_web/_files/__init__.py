"""Files of tensors: opened and saved, in Python's memory and disk or by JavaScript."""
