/* The exports of a WebAssembly module for which JavaScript exports and imports tensors
 * by the exchange protocol (EXCHANGE.md). It needs no Python, and nothing of
 * dlpack-web: example.c is such a module, dlpack_web.mjs is the JavaScript for any.
 *
 * "dlpack.h" is DLPack's own header or wasm/dlpack.h. JavaScript reads and writes its
 * structs where wasm32 has them, and writes nothing after it gave a tensor to C. From
 * the start of a DLManagedTensorVersioned, of 64 bytes:
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
#define DLPACK_WEB_IMPORT(name) \
  __attribute__((import_module("dlpack_web"), import_name(#name)))

/* A tensor for JavaScript to fill in: dtype and flags are 0, and shape and strides have
 * room for `ndim` numbers each. The caller has the one hold on it.
 *
 * bytes: how much fresh memory is at `data`, a multiple of 16. It is 0 at first.
 *
 * hold: 0, or what the deleter gives to `dlpack_web_let_go`: it stands for a JavaScript
 * object that ends with the tensor. If that has the elements, `bytes` is 0 and
 * JavaScript sets `data`, too.
 *
 * Returns NULL if there is no memory; then nothing is held. */
DLPACK_WEB_EXPORT(dlpack_web_new)
DLManagedTensorVersioned *dlpack_web_new(int32_t ndim, uint32_t bytes, uint32_t hold);

/* Ends the caller's hold: calls the tensor's deleter, if it has one. Once for each
 * tensor that C returned and did not get back. */
DLPACK_WEB_EXPORT(dlpack_web_delete)
void dlpack_web_delete(DLManagedTensorVersioned *tensor);

/* Imported from JavaScript: the tensor that was made with this hold is gone. Called
 * once, by its deleter, before the memory of the elements is freed. */
DLPACK_WEB_IMPORT(let_go) void dlpack_web_let_go(uint32_t hold);

#endif
