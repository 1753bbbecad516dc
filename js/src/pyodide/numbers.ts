/** The meaning of numbers that cross between Python and JavaScript. */

/** The address of a `Tensor` of Python, which the caller keeps during the call. */
export type Address = number;
/** A new hold in the C core, which Python takes over. */
export type Handle = number;
/** The number of a registered device. */
export type DeviceId = number;
/** Python's number of a call, by which its errors are located; 0: none. */
export type Site = number;
/** Python's number of work that it awaits, and may give up. */
export type Work = number;
/** The number with which Python waits for a promise, at once. */
export type Wait = number;
/** The number of a kernel, by which C runs it. */
export type KernelNumber = number;
