// What the cases make on a GPU. It is released when its case ends: hosts/harness.mjs calls releaseKept().

/** Tensors and batches of the case that runs. */
const kept = [];

/** Returns a tensor or a batch, which is released when the case ends. */
export function keep(holder) {
  kept.push(holder);
  return holder;
}

/** Releases what the case left, the last first. */
export function releaseKept() {
  for (const holder of kept.splice(0).reverse()) holder.release();
}

/** A device for all cases that do not spoil theirs, made at first use. */
let devicePromise;
export function deviceOf({ library }) {
  devicePromise ??= library.webgpu.requestDevice();
  return devicePromise;
}

/** A tensor of an array's elements on a device; `options` as for `fromTypedArray`. */
export function upload({ library }, array, device, options) {
  const host = library.Tensor.fromTypedArray(array, options);
  try {
    return keep(host.to(device));
  } finally {
    host.release();
  }
}

/** What `library.webgpu` has, itself, the Tensor, a device, and what makes tensors on it: of an array's elements, or of zeros. */
export async function gpu(context, device) {
  const { bridge, library } = context;
  const chosen = device ?? (await deviceOf(context));
  return {
    ...library.webgpu,
    webgpu: library.webgpu,
    Tensor: library.Tensor,
    device: chosen,
    upload: (array, options) => upload(context, array, chosen, options),
    empty: (shape, dtype = "float32") => keep(bridge.empty(shape, dtype, { device: chosen })),
  };
}
