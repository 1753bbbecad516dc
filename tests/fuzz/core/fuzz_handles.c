#include <stdlib.h>
#include <string.h>

/* The file itself, so that each input begins with an empty table. */
#include "handles.c"
#include "parts.h"

#define MAX_GIVEN 1024 /* handles that one input is given */

/* What the table must do. */
static struct {
  uint32_t handle;
  dlw_tensor *tensor; /* NULL: taken again */
} given[MAX_GIVEN];
static uint32_t count, in_use;
static uint32_t queue[MAX_GIVEN], head,
    tail; /* freed slots in the order of their use */
static dlw_tensor tensors[8];

static void reset(void) {
  free(slots);
  slots = NULL;
  capacity = first = last = free_slots = 0;
  used = 1;
  count = in_use = head = tail = 0;
  memset(tensors, 0, sizeof tensors);
}

static void add(input *in) {
  dlw_tensor *tensor = &tensors[take_below(in, 8)];
  uint32_t expected = tail - head > DLW_FREE_SLOTS ? queue[head] : count - head + 1;
  if (take_below(in, 16) == 0) fail_allocation(1);
  int result = dlw_handle_add(tensor);
  if (result != 0) {
    MUST(result == -1 && allocation_failed());
    fail_allocation(0);
    return;
  }
  fail_allocation(0);
  uint32_t slot = tensor->handle & (MAX_SLOTS - 1);
  MUST(tensor->handle != 0 && slot == expected);
  if (tail - head > DLW_FREE_SLOTS) head++;
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
  queue[tail++] = handle & (MAX_SLOTS - 1);
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
    for (; how < 3 && many > 0 && count < MAX_GIVEN; many--) add(in);
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
    MUST(free_slots + in_use == used - 1);
  }
  reset();
}
