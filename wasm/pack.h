/* Packs strided memory into contiguous memory. Independent of Python; neither memory
 * need be aligned. */
#ifndef DLW_PACK_H_
#define DLW_PACK_H_

#include "dlpack.h"

/* Copies the elements of a checked CPU tensor to `target` in row-major order, each of
 * `element_bits` (dlw_element_bits). `target` has room for all of them and does not
 * overlap the source. Bits after the last element become 0. */
void dlw_pack(void *target, const DLTensor *source, uint32_t element_bits);

/* Packs some elements, from the one at position `first` in row-major order on, and
 * returns how many: at most `limit` and, but for the last, a multiple of `unit`, which
 * divides `limit` unless that is at least all elements. `*packed` is where they are: in
 * `target`, which has room for `limit`, or in the source where they have no gaps. The
 * source has elements, of whole bytes, and `first` is one of them. */
int64_t dlw_pack_some(void *target, const DLTensor *source, int64_t first,
                      int64_t limit, int64_t unit, const void **packed);

#endif
