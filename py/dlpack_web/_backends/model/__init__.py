"""What a driver has of WebGPU: devices, buffers, errors and kernels, each in the folder, and
mostly the file, that has its name in js/src/webgpu, which does the same in a page. Each folder's
first lines say what it has. kernels > device > buffers > errors: imports go down."""
