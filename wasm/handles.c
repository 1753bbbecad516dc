#include "handles.h"

#include <stdlib.h>

#define SLOT_BITS 20
#define SLOT_MASK (DLW_MAX_SLOTS - 1)
#define GENERATION_MASK ((1u << (32 - SLOT_BITS)) - 1)

typedef struct {
  dlw_tensor *tensor; /* NULL: free */
  uint32_t generation;
  uint32_t next; /* of a free slot: the next one to use */
} slot;

static slot *slots; /* slot 0 is never used, so 0 is not a handle */
static uint32_t capacity;
/* The free slots: a queue. `last` has no next. Both are 0 only while there is none. */
static uint32_t first, last, free_slots;

static void enqueue(uint32_t index) {
  slots[index].next = 0;
  if (last != 0) {
    slots[last].next = index;
  } else {
    first = index;
  }
  last = index;
  free_slots++;
}

/* Doubles the table. New slots go to the end of the queue like all that become free. */
static int grow(void) {
  uint32_t wanted = capacity != 0 ? capacity * 2 : 2 * DLW_FREE_SLOTS;
  if (wanted > DLW_MAX_SLOTS) return -1;
  slot *larger = realloc(slots, wanted * sizeof(slot));
  if (larger == NULL) return -1;
  slots = larger;
  uint32_t begin = capacity != 0 ? capacity : 1;
  capacity = wanted;
  for (uint32_t i = begin; i < wanted; i++) {
    slots[i].tensor = NULL;
    slots[i].generation = 0;
    enqueue(i);
  }
  return 0;
}

int dlw_handle_add(dlw_tensor *tensor) {
  if (free_slots <= DLW_FREE_SLOTS && grow() < 0) {
    /* Out of memory, the last free slots are used as well. In the largest table they
     * are not: stale handles would become valid sooner. */
    if (free_slots < (capacity < DLW_MAX_SLOTS ? 1 : DLW_FREE_SLOTS)) return -1;
  }
  uint32_t index = first;
  slot *entry = &slots[index];
  first = entry->next;
  if (first == 0) last = 0;
  free_slots--;
  entry->tensor = tensor;
  tensor->handle = index | entry->generation << SLOT_BITS;
  return 0;
}

static slot *find(uint32_t handle) {
  uint32_t index = handle & SLOT_MASK;
  if (index == 0 || index >= capacity) return NULL;
  slot *entry = &slots[index];
  int current = entry->generation == handle >> SLOT_BITS;
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
  entry->generation = (entry->generation + 1) & GENERATION_MASK;
  tensor->handle = 0;
  enqueue(handle & SLOT_MASK);
  return tensor;
}
