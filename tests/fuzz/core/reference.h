/* What the C core must do, written to be obviously right and not to be fast: element by
 * element and bit by bit, in integers that cannot overflow. Shares no code with the
 * core but the declarations of DLPack. */
#ifndef REFERENCE_H_
#define REFERENCE_H_

#include "dlpack.h"

/* Wide enough for the product of two int64. Also where pointers have 32 bits, where
 * there is no __int128. */
typedef _BitInt(128) wide;

/* The elements of a tensor: how they lie, in memory that begins somewhere. */
typedef struct {
  int32_t ndim;
  int64_t shape[64], strides[64]; /* strides in elements */
  uint32_t bits;                  /* from an element to the next */
} geometry;

/* --- dtypes ----------------------------------------------------------------------- */

int ref_dtype_known(DLDataType dtype);
int ref_dtype_name(DLDataType dtype, char *name, size_t room);
/* 0: there is none. */
int ref_dtype_format(DLDataType dtype, char format[3]);
/* Bits from an element to the next. */
uint32_t ref_element_bits(DLDataType dtype, uint64_t flags);
/* Whether the flags say that elements of less than a byte have a byte each. */
int ref_padded(DLDataType dtype, uint64_t flags);
int ref_is_host(DLDevice device);

/* --- geometry --------------------------------------------------------------------- */

/* Row-major strides; extents of 0 count as 1. */
void ref_row_major(geometry *tensor);
/* The number of elements; -1: no int64 holds their bits, or more bytes than `limit`.
 * Judged without extents of 0, which are applied last. */
wide ref_size(const geometry *tensor, wide limit);
/* Where the n-th element in row-major order begins, in bits from element 0. */
wide ref_place(const geometry *tensor, int64_t n);
/* The first byte of the lowest element and the end of the highest, from element 0. 0
 * where no int64 holds that in bits. The tensor has elements. */
int ref_span(const geometry *tensor, wide *below, wide *above);

/* Whether dlw_check must let the tensor pass; else `*why` is what is wrong, which is
 * one of possibly several things. */
int ref_accepts(const DLTensor *tensor, uint64_t flags);
/* Whether `status` names something that is wrong with it. */
int ref_is_wrong(const DLTensor *tensor, uint64_t flags, int status);

/* --- elements --------------------------------------------------------------------- */

/* `count` bits from bit `at` of memory on, the lowest of a byte first, to the bits from
 * `to` on of `target`. */
void ref_copy_bits(uint8_t *target, wide to, const uint8_t *memory, wide at,
                   uint32_t count);
/* Whether `count` bits are the same. */
int ref_same_bits(const uint8_t *a, wide at_a, const uint8_t *b, wide at_b,
                  uint32_t count);

/* How dlw_converter_for must convert a number; none: 0 is returned. */
typedef enum { NO_WAY, SAME, FLOATS, INTEGERS } ref_way;
ref_way ref_conversion(DLDataType from, DLDataType to);
/* One number of `from` at `source` as one of `to` at `target`; 0: it does not fit.
 * Lanes and parts of complex numbers are numbers of their own. */
int ref_convert(DLDataType from, DLDataType to, void *target, const void *source);
/* Whether what the core made is what it must be. For a NaN of 32 bits any will do: it
 * is the processor that makes it. */
int ref_same_number(DLDataType dtype, const void *expected, const void *found);
/* Bytes of one number. */
int ref_number_bytes(DLDataType dtype);
/* Numbers in one element. */
int64_t ref_numbers(DLDataType dtype);

#endif
