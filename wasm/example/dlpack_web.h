/* The exports of a WebAssembly module whose tensors are dlpack-web's in JavaScript. It
 * needs no Python: example.c is such a module, example.mjs its JavaScript.
 *
 * "dlpack.h" is DLPack's own header or wasm/dlpack.h. JavaScript reads and writes its
 * structs where wasm32 has them. From the start of a DLManagedTensorVersioned, of 64
 * bytes:
 *
 *    0  version      major and minor, uint32
 *    8  manager_ctx  whose the tensor is; nobody else reads it
 *   12  deleter      called by C alone, see below
 *   16  flags        uint64: 1 read-only, 2 copied, 4 sub-byte elements padded
 *   24  data         address
 *   28  device       type 1, id 0, int32
 *   36  ndim         int32, at most 64
 *   40  dtype        code and bits, uint8; lanes, uint16
 *   44  shape        address of int64
 *   48  strides      the same, in elements; 0 is row-major
 *   56  byte_offset  uint64, from data to element 0
 *
 * A module also exports its `memory`, which may grow during each of these calls, and
 * the functions of its own that make, take or return such tensors.
 */
#ifndef DLPACK_WEB_H_
#define DLPACK_WEB_H_

#include "dlpack.h"

#define DLPACK_WEB_EXPORT(name) __attribute__((export_name(#name)))

/* A tensor for JavaScript to fill in: dtype and flags are 0, and shape and strides have
 * room for `ndim` numbers each. The caller has the one hold on it.
 *
 * bytes: how much fresh memory is at `data`, a multiple of 16. It is 0 at first. Where
 * the elements are elsewhere in the memory, `bytes` is 0 and JavaScript sets `data`.
 *
 * Returns NULL if there is no memory. */
DLPACK_WEB_EXPORT(dlpack_web_new)
DLManagedTensorVersioned *dlpack_web_new(int32_t ndim, uint32_t bytes);

/* Ends the caller's hold: calls the tensor's deleter, if it has one. Once for each
 * tensor that C returned and did not get back. */
DLPACK_WEB_EXPORT(dlpack_web_delete)
void dlpack_web_delete(DLManagedTensorVersioned *tensor);

#endif
