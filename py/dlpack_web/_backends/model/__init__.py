"""What all backends have in common whose tensors Python describes: what a tensor is on a
GPU, and what may be done with it. Nothing here knows a GPU's API, or imports one."""
