"""Opens and saves files of tensors, in Python's memory and on its disk, or through
JavaScript."""
