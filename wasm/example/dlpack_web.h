/* What a WebAssembly module exports so that JavaScript hands its tensors out, and gives
 * it those of others, by the exchange protocol (js/EXCHANGE.md). No Python is needed,
 * and nothing of dlpack-web: example.c is such a module, example.mjs the JavaScript for
 * any.
 *
 * "dlpack.h" is DLPack's own header or wasm/dlpack.h. JavaScript reads and writes its
 * structs where wasm32 has them, and writes nothing after it gave a tensor to C:
 *
 *   DLManagedTensorVersioned (64 bytes)       .dl_tensor, from the same start
 *    0  version: major, minor (uint32)        24  data (address)
 *    8  manager_ctx: the producer's own       28  device: type 1, id 0 (int32)
 *   12  deleter: called by C alone            36  ndim (int32, at most 64)
 *   16  flags (uint64): 1 read-only,          40  dtype: code, bits (uint8), lanes
 * (uint16) 2 copied, 4 padded sub-byte           44  shape, 48 strides (addresses of
 * int64) 56  byte_offset (uint64)
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

/* A tensor for JavaScript to describe: dtype, shape and strides are 0 and room for
 * `ndim` of them is there. The caller has the one hold on it.
 *
 * bytes: size of fresh memory, at `data`, aligned for every dtype. What of it the
 * caller does not write is 0. hold: 0, or what the deleter gives to
 * `dlpack_web_let_go`: a hold of JavaScript's on memory, or on elements that it copied.
 * With `bytes` 0 it sets `data` as well.
 *
 * Returns NULL if there is no memory; then nothing is held, and `hold` is the caller's.
 */
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
