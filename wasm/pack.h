/* Strided memory to contiguous memory. Nothing here knows Python. */
#ifndef DLW_PACK_H_
#define DLW_PACK_H_

#include "dlpack.h"

/* Copies the elements of a checked CPU tensor to `target` in row-major order, each of
 * `element_bits` (dlw_element_bits). `target` has room for all of them and does not
 * overlap the source. Bits behind the last element become 0. */
void dlw_pack(void *target, const DLTensor *source, uint32_t element_bits);

#endif
