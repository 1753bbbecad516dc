"""Generated from tools/tables by `make generate`: do not edit."""

lost = (
    "{0} is lost ({1}), with its tensors: request a new device and upload again".format
)
no_larger_buffer = "no device of that has more: use several tensors".format
larger_buffer = "use a device from request_device(maxBufferSize={0})".format
buffer_too_large = (
    "{0} bytes are needed, {1} allows {2} (maxBufferSize) in one buffer{3}: {4}".format
)
lacks_usage = "{0} needs a GPUBuffer with GPUBufferUsage.{1}; that of {2} has {3}: create it with {1} too".format
unaligned_copy = "{0} {1} needs a byte offset that is a multiple of 4 (it is {2}) and {3} bytes in its GPUBuffer (it has {4}): pad the buffer to a multiple of 16".format
unaligned_read = "reading {0} needs whole words of 4 bytes, {1} bytes in its GPUBuffer (it has {2}): pad the buffer to a multiple of 16".format
not_run = (
    "the batch that computes these elements has not run: call its run() first".format
)
misread = "{0} is {1}, the shader's {2} is of {3}: {4}".format
other_type = "give a tensor of {0}, or declare the shader otherwise (narrower types come as words of u32); check=False binds the bytes as they are".format
too_large_to_bind = "{0} needs {1} bytes, of which {2} can be bound: use a device from request_device({3}={1})".format
wrong_workgroups = "workgroups must be 1 to 3 integers from 1 to {0} (maxComputeWorkgroupsPerDimension), not {1}: use a second axis, and num_workgroups".format
too_few_bytes = "{0} has {1} bytes, the shader's {2} needs {3}".format
no_whole_elements = "{0} has {1} bytes in its last axis, the elements of the shader's {2} are {3} bytes apart: pad that axis to {4}, or declare array<{5}>".format
no_number = "{0}: numbers are for var<uniform> of f32, i32 and u32".format
wrong_number = "binding {0}: {1} is not a valid {2}".format
wrong_count = (
    'kernel "{0}" takes an argument for each binding ({1}): {2}, not {3}'.format
)
read_only = "{0} is read-only, the shader's binding is read_write".format
shared_word = "{0} shares its last word of 4 bytes with a neighbour, which the shader may write to: give it a buffer of its own (a copy), or a multiple of 4 bytes".format
overlap = "arguments {0} and {1} of the kernel overlap, and both are read_write: give one of them a copy".format
needs_workgroups = 'kernel "{0}": {1}, so workgroups must be given'.format
unknown_bindings = "its bindings are not buffers numbered from @binding(0) on".format
unknown_workgroup = "its @workgroup_size is not of numbers".format
several_axes = "its @workgroup_size({0}) has several axes".format
writes_nothing = "it writes to no binding".format
unknown_elements = "the elements of its binding {0}, {1}, are unknown".format
own_workgroups = (
    'the workgroups of kernel "{0}" follow from its shapes: leave them out'.format
)
no_argument = 'kernel "{0}" has {1} arguments that can change, not number {2}: record another batch'.format
other_shape = (
    'kernel "{0}" was recorded for other shapes: record a batch for each'.format
)
wrong_channels = "channels must be 4 (with alpha) or 3 (without), not {0}".format
not_registered = "webgpu:{0} is not registered; there are {1}".format
any_option = "there are limits by WebGPU's names, such as maxBufferSize, and {0}".format
use_option = "use {0}".format
no_option = "a request of a device has no option {0}: {1}".format
no_limit = "{0}: {1} is not a number for a limit of WebGPU".format
negative_limit = "{0}: {1} is not a number from 0 on".format
above_adapter = (
    "{0}: {1} is more than this adapter has ({2}); float('inf') asks for that".format
)
