/* A store in this process: it forgets everything when that ends. */
#ifndef MEMORY_STORE_H
#define MEMORY_STORE_H

#include <stdint.h>

#include "guard.h"

struct memory_store;

/* A mark is kept for `retention_ms` milliseconds; UINT64_MAX is for ever. NULL
 * if that is 0, or without memory. */
struct memory_store *memory_store_new(uint64_t retention_ms);
void memory_store_delete(struct memory_store *store);

/* The three functions of the store. */
struct guard_store memory_store_functions(struct memory_store *store);

#endif
