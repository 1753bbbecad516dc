/* What there is to fuzz in the files of the C core that know no Python, one function
 * each; and what they have in common. */
#ifndef PARTS_H_
#define PARTS_H_

#include "input.h"
#include "reference.h"

/* Verdicts about tensors that anybody may describe: nothing is dereferenced. */
void fuzz_check(input *in);
/* Tensors over memory that is there, made of each other, released in any order, while
 * memory is out now and then. */
void fuzz_tensors(input *in);
/* The table of handles. */
void fuzz_handles(input *in);
/* Names, buffer formats and sizes of dtypes. */
void fuzz_dtypes(input *in);
/* Elements moved by the kernels for runs and tiles, and by the packing that chooses
 * among them: any width, stride and address. */
void fuzz_runs(input *in);
/* Numbers from one dtype to another. */
void fuzz_numbers(input *in);

/* A dtype, known ones more often than others. */
DLDataType take_dtype(input *in);

/* Lets the n-th allocation of the core from now on fail; 0: none. */
void fail_allocation(uint32_t n);
/* Whether one has failed since then. */
int allocation_failed(void);

#endif
