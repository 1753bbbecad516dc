#include "handles.h"

#include <stdlib.h>

#define MAX_SLOTS (1u << DLW_SLOT_BITS)
#define MOST (MAX_SLOTS - 1 - DLW_FREE_SLOTS) /* in use at once */

typedef struct {
  dlw_tensor *tensor; /* NULL: free */
  uint32_t generation;
  uint32_t next; /* of a free slot: the next one to use */
} slot;

static slot *slots;
/* Slots that there is memory for, and that were used, with 0. */
static uint32_t capacity, used = 1;
/* The free slots: a queue from `first` to `last`. */
static uint32_t first, last, free_slots;

/* A slot that has never been used; 0: out of memory. */
static uint32_t new_slot(void) {
  if (used >= capacity) {
    uint32_t wanted = capacity != 0 ? 2 * capacity : 512;
    slot *larger = realloc(slots, wanted * sizeof(slot));
    if (larger == NULL) return 0;
    slots = larger;
    capacity = wanted;
  }
  slots[used].generation = 0;
  return used++;
}

static uint32_t reused_slot(void) {
  uint32_t index = first;
  first = slots[index].next;
  free_slots--;
  return index;
}

int dlw_handle_add(dlw_tensor *tensor) {
  if (used - 1 - free_slots == MOST) return -1;
  uint32_t index = free_slots > DLW_FREE_SLOTS ? reused_slot() : new_slot();
  if (index == 0) return -1;
  slots[index].tensor = tensor;
  tensor->handle = index | slots[index].generation << DLW_SLOT_BITS;
  return 0;
}

static slot *find(uint32_t handle) {
  uint32_t index = handle & (MAX_SLOTS - 1);
  if (index == 0 || index >= used) return NULL;
  slot *entry = &slots[index];
  int current = entry->generation == handle >> DLW_SLOT_BITS;
  return entry->tensor != NULL && current ? entry : NULL;
}

dlw_tensor *dlw_handle_get(uint32_t handle) {
  slot *entry = find(handle);
  return entry != NULL ? entry->tensor : NULL;
}

dlw_tensor *dlw_handle_take(uint32_t handle) {
  slot *entry = find(handle);
  if (entry == NULL) return NULL;
  dlw_tensor *tensor = entry->tensor;
  entry->tensor = NULL;
  entry->generation = (entry->generation + 1) & ((1u << DLW_GENERATION_BITS) - 1);
  tensor->handle = 0;
  uint32_t index = (uint32_t)(entry - slots);
  if (free_slots == 0) {
    first = index;
  } else {
    slots[last].next = index;
  }
  last = index;
  free_slots++;
  return tensor;
}
