#include "handles.h"

#include <stdlib.h>

#define SLOT_BITS 20
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define GENERATION_MASK ((1u << (32 - SLOT_BITS)) - 1)

typedef struct {
  dlw_tensor *tensor; /* NULL: free */
  uint32_t generation;
  uint32_t next_free;
} slot;

static slot *slots; /* slot 0 is never given out, so that 0 is no handle */
static uint32_t capacity, next_free;

static int grow(void) {
  uint32_t wanted = capacity ? capacity * 2 : 64;
  if (wanted > SLOT_MASK + 1) return -1;
  slot *larger = realloc(slots, wanted * sizeof(slot));
  if (larger == NULL) return -1;
  slots = larger;
  for (uint32_t i = capacity; i < wanted; i++) {
    slots[i] = (slot){.next_free = i + 1 < wanted ? i + 1 : 0};
  }
  next_free = capacity ? capacity : 1;
  capacity = wanted;
  return 0;
}

static slot *find(uint32_t handle) {
  uint32_t index = handle & SLOT_MASK;
  if (index == 0 || index >= capacity) return NULL;
  slot *entry = &slots[index];
  int current = entry->generation == handle >> SLOT_BITS;
  return entry->tensor != NULL && current ? entry : NULL;
}

int dlw_handle_add(dlw_tensor *tensor) {
  if (next_free == 0 && grow() < 0) return -1;
  uint32_t index = next_free;
  next_free = slots[index].next_free;
  slots[index].tensor = tensor;
  tensor->handle = index | slots[index].generation << SLOT_BITS;
  return 0;
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
  entry->next_free = next_free;
  next_free = handle & SLOT_MASK;
  tensor->handle = 0;
  return tensor;
}
