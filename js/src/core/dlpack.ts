/** Numbers of DLPack 1.3 that JavaScript needs, as wasm/dlpack.h has them. */

/** `DLDeviceType`. */
export const CPU = 1;
export const WEBGPU = 15;

/** `flags`. */
export const READ_ONLY = 1;
export const IS_COPIED = 2;
export const SUBBYTE_PADDED = 4;

/** Maximum number of axes, as in NumPy. */
export const MAX_NDIM = 64;
