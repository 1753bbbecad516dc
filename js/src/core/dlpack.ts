/** Generated from tools/tables by `make generate`: do not edit. */

/** `DLDeviceType`. */
export const CPU = 1;
export const WEBGPU = 15;
/** `flags`. */
export const READ_ONLY = 1;
export const IS_COPIED = 2;
export const IS_SUBBYTE_TYPE_PADDED = 4;
/** Maximum number of axes, as in NumPy. */
export const MAX_NDIM = 64;
