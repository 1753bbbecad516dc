"""GPUBuffers. table.py has them by handle, pool.py has the idle ones. buffers.py
makes, adopts and copies them, transfer.py moves elements up and down. Others ask views.py
about a tensor."""
