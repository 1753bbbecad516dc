"""Generated from tools/tables by `make generate`: do not edit."""


def lost(device: object, why: object) -> str:
    return f"{device} is lost ({why}), with its tensors: request a new device and upload again"


def no_larger_buffer() -> str:
    return "no device of that has more: use several tensors"


def larger_buffer(size: object) -> str:
    return f"use a device from request_device(maxBufferSize={size})"


def buffer_too_large(
    size: object, device: object, limit: object, adapter: object, way: object
) -> str:
    return f"{size} bytes are needed, {device} allows {limit} (maxBufferSize) in one buffer{adapter}: {way}"


def lacks_usage(what: object, flag: object, view: object, flags: object) -> str:
    return f"{what} needs a GPUBuffer with GPUBufferUsage.{flag}; that of {view} has {flags}: create it with {flag} too"


def unaligned_copy(
    what: object, view: object, start: object, needed: object, size: object
) -> str:
    return f"{what} {view} needs a byte offset that is a multiple of 4 (it is {start}) and {needed} bytes in its GPUBuffer (it has {size}): pad the buffer to a multiple of 16"


def unaligned_read(view: object, needed: object, size: object) -> str:
    return f"reading {view} needs whole words of 4 bytes, {needed} bytes in its GPUBuffer (it has {size}): pad the buffer to a multiple of 16"


def not_run() -> str:
    return "the batch that computes these elements has not run: call its run() first"


def misread(
    what: object, dtype: object, value: object, scalar: object, way: object
) -> str:
    return f"{what} is {dtype}, the shader's {value} is of {scalar}: {way}"


def other_type(dtype: object) -> str:
    return f"give a tensor of {dtype}, or declare the shader otherwise (narrower types come as words of u32); check=False binds the bytes as they are"


def too_large_to_bind(what: object, size: object, most: object, limit: object) -> str:
    return f"{what} needs {size} bytes, of which {most} can be bound: use a device from request_device({limit}={size})"


def wrong_workgroups(limit: object, given: object) -> str:
    return f"workgroups must be 1 to 3 integers from 1 to {limit} (maxComputeWorkgroupsPerDimension), not {given}: use a second axis, and num_workgroups"


def too_few_bytes(what: object, nbytes: object, value: object, stride: object) -> str:
    return f"{what} has {nbytes} bytes, the shader's {value} needs {stride}"


def no_whole_elements(
    what: object,
    row: object,
    value: object,
    element: object,
    extent: object,
    scalar: object,
) -> str:
    return f"{what} has {row} bytes in its last axis, the elements of the shader's {value} are {element} bytes apart: pad that axis to {extent}, or declare array<{scalar}>"


def no_number(what: object) -> str:
    return f"{what}: numbers are for var<uniform> of f32, i32 and u32"


def wrong_number(index: object, value: object, scalar: object) -> str:
    return f"binding {index}: {value} is not a valid {scalar}"


def wrong_count(label: object, names: object, count: object, given: object) -> str:
    return f'kernel "{label}" takes an argument for each binding ({names}): {count}, not {given}'


def read_only(what: object) -> str:
    return f"{what} is read-only, the shader's binding is read_write"


def shared_word(what: object) -> str:
    return f"{what} shares its last word of 4 bytes with a neighbour, which the shader may write to: give it a buffer of its own (a copy), or a multiple of 4 bytes"


def overlap(first: object, second: object) -> str:
    return f"arguments {first} and {second} of the kernel overlap, and both are read_write: give one of them a copy"


def needs_workgroups(label: object, why: object) -> str:
    return f'kernel "{label}": {why}, so workgroups must be given'


def unknown_bindings() -> str:
    return "its bindings are not buffers numbered from @binding(0) on"


def unknown_workgroup() -> str:
    return "its @workgroup_size is not of numbers"


def several_axes(size: object) -> str:
    return f"its @workgroup_size({size}) has several axes"


def writes_nothing() -> str:
    return "it writes to no binding"


def unknown_elements(index: object, value: object) -> str:
    return f"the elements of its binding {index}, {value}, are unknown"


def own_workgroups(label: object) -> str:
    return f'the workgroups of kernel "{label}" follow from its shapes: leave them out'


def no_argument(label: object, count: object, index: object) -> str:
    return f'kernel "{label}" has {count} arguments that can change, not number {index}: record another batch'


def other_shape(label: object) -> str:
    return f'kernel "{label}" was recorded for other shapes: record a batch for each'


def wrong_channels(channels: object) -> str:
    return f"channels must be 4 (with alpha) or 3 (without), not {channels}"


def not_registered(id: object, devices: object) -> str:
    return f"webgpu:{id} is not registered; there are {devices}"


def any_option(options: object) -> str:
    return f"there are limits by WebGPU's names, such as maxBufferSize, and {options}"


def use_option(name: object) -> str:
    return f"use {name}"


def no_option(name: object, way: object) -> str:
    return f"a request of a device has no option {name}: {way}"


def no_limit(name: object, given: object) -> str:
    return f"{name}: {given} is not a number for a limit of WebGPU"


def negative_limit(name: object, given: object) -> str:
    return f"{name}: {given} is not a number from 0 on"


def above_adapter(name: object, given: object, limit: object) -> str:
    return f"{name}: {given} is more than this adapter has ({limit}); float('inf') asks for that"
