#include <stdlib.h>
#include <string.h>

/* The file itself, so that each input begins with an empty table. */
#include "handles.c"
#include "parts.h"

#define MOST 1024 /* handles that one input is given */

/* What the table must do. */
static struct {
  uint32_t handle;
  dlw_tensor *tensor; /* NULL: taken again */
} given[MOST];
static uint32_t count, in_use;
static uint32_t queue[16 * MOST], head, tail; /* free slots in the order of their use */
static dlw_tensor tensors[8];

static void reset(void) {
  free(slots);
  slots = NULL;
  capacity = first = last = free_slots = 0;
  count = in_use = head = tail = 0;
  memset(tensors, 0, sizeof tensors);
}

static void add(input *in) {
  dlw_tensor *tensor = &tensors[take_below(in, 8)];
  uint32_t old_capacity = capacity;
  int spare = free_slots > 0;
  if (take_below(in, 16) == 0) fail_allocation(1);
  int result = dlw_handle_add(tensor);
  if (result != 0) {
    MUST(result == -1 && allocation_failed() && !spare);
    fail_allocation(0);
    return;
  }
  fail_allocation(0);
  for (uint32_t i = old_capacity > 0 ? old_capacity : 1; i < capacity; i++) {
    queue[tail++] = i;
  }
  uint32_t slot = tensor->handle & SLOT_MASK;
  MUST(tensor->handle != 0 && slot == queue[head++]);
  for (uint32_t i = 0; i < count; i++) {
    MUST(given[i].handle != tensor->handle); /* less than 2^20 were given out */
  }
  given[count].handle = tensor->handle;
  given[count++].tensor = tensor;
  in_use++;
}

static void take(uint32_t which) {
  uint32_t handle = given[which].handle;
  dlw_tensor *tensor = given[which].tensor;
  MUST(dlw_handle_get(handle) == tensor);
  MUST(dlw_handle_take(handle) == tensor);
  MUST(dlw_handle_get(handle) == NULL && dlw_handle_take(handle) == NULL);
  if (tensor == NULL) return;
  MUST(tensor->handle == 0);
  queue[tail++] = handle & SLOT_MASK;
  given[which].tensor = NULL;
  in_use--;
}

/* A handle that anybody may have made up. */
static void probe(uint32_t handle) {
  dlw_tensor *expected = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (given[i].handle == handle) expected = given[i].tensor;
  }
  MUST(dlw_handle_get(handle) == expected);
  if (expected == NULL) MUST(dlw_handle_take(handle) == NULL);
}

void fuzz_handles(input *in) {
  reset();
  for (int step = 0; step < 64 && in->at < in->end; step++) {
    uint32_t how = take_below(in, 8), many = 1u << take_below(in, 10);
    for (; how < 3 && many > 0 && count < MOST; many--) add(in);
    for (; how >= 3 && how < 6 && many > 0 && count > 0; many--) {
      uint32_t which = (uint32_t)take_bytes(in, 2);
      take((in->at < in->end ? which : which + many) % count);
    }
    if (how >= 6 && count > 0) {
      uint32_t handle = given[(uint32_t)take_bytes(in, 2) % count].handle;
      probe(handle ^ 1u << take_below(in, 32));
      probe((uint32_t)take_bytes(in, 4));
    }
    MUST(free_slots == tail - head);
    MUST(capacity == 0 || free_slots + in_use == capacity - 1);
  }
  reset();
}
