/* Tensors of the core, each with what it must be; and the memory that they stand on. */
#ifndef MODELS_H_
#define MODELS_H_

#include "parts.h"
#include "tensor.h"

#define MOST 8             /* tensors at a time */
#define MOST_ELEMENTS 2048 /* that are compared */
#define MOST_BYTES (1 << 14)

/* Memory that tensors stand on: what was put there, and how many hold it. */
typedef struct {
  uint8_t *bytes;  /* NULL: none that could be read */
  uint8_t *shadow; /* a copy of what is there */
  size_t size;
  int holders, drops, ours; /* ours: made by the core, which frees it */
} memory;

/* A tensor, and what it must be. */
typedef struct {
  dlw_tensor *tensor; /* NULL: none */
  memory *on;
  geometry lies;
  wide first; /* bit of `on` where element 0 begins */
  DLDataType dtype;
  uint64_t flags;
  DLDevice device;
  uint64_t gpu, byte_offset; /* of a handle, which is no memory */
} model;

extern model models[MOST];

/* --- memory ----------------------------------------------------------------------- */

/* With one holder less than it will have; what is readable is zeros. */
memory *new_memory(size_t size, int readable);
void fill(memory *on, uint32_t seed);
/* By one of its holders. */
void forget(memory *on);

/* --- all of them ------------------------------------------------------------------ */

model *free_place(void); /* NULL: there is none */
model *some(input *in);  /* NULL: there are none */
int living(void);
/* Once a tensor is there. */
void enter(model *place, const model *made);
/* The geometry that the core must have made of one that was given. */
void settle(model *m);
void let_go(model *m);
/* The one that is called where the core gives up a GPU handle. */
void drop_gpu(uint32_t gpu);
/* The one of somebody's memory. */
void drop(dlw_tensor *root);

/* --- what must be true ------------------------------------------------------------ */

int size_of(const model *m);
int can_read(const model *m);
/* Where the bits of element 0 are, by what the core says. */
const uint8_t *first_byte(const model *m);
void check_all(int elements);

/* --- making tensors (make_tensors.c) ---------------------------------------------- */

void take_geometry(input *in, geometry *lies);
/* What the core made, in fresh memory. */
void adopt_fresh(model *place, model *m);
/* Of somebody's memory; with fresh memory; of a GPU's handle. */
void describe(input *in, model *place);
void make_empty(input *in, model *place);
void wrap_gpu(input *in, model *place);

#endif
