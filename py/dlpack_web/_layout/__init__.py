"""What describes elements in memory: dtypes, shapes and strides. Needs no GPU."""
