#include "memory_store.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The marks are a tree of the C library's, ordered by their ids. */
struct mark {
  struct guard_id id;
  uint64_t expires_ms;
  char bytes[]; /* those of the id */
};

struct memory_store {
  void *root;
  uint64_t retention_ms;
};

static int compare(const void *left, const void *right) {
  const struct guard_id *a = &((const struct mark *)left)->id;
  const struct guard_id *b = &((const struct mark *)right)->id;
  if (a->length != b->length)
    return a->length < b->length ? -1 : 1;
  return memcmp(a->bytes, b->bytes, a->length);
}

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct mark *find(struct memory_store *store, struct guard_id id) {
  struct mark wanted = {.id = id};
  struct mark **found = tfind(&wanted, &store->root, compare);
  return found ? *found : NULL;
}

static void drop(struct memory_store *store, struct mark *mark) {
  tdelete(mark, &store->root, compare);
  free(mark);
}

static bool seen(void *data, struct guard_id id, bool *seen, struct guard_error *error) {
  struct memory_store *store = data;
  struct mark *mark = find(store, id);
  (void)error;
  if (mark && mark->expires_ms <= now_ms()) {
    drop(store, mark);
    mark = NULL;
  }
  *seen = mark != NULL;
  return true;
}

static bool remember(void *data, struct guard_id id, struct guard_error *error) {
  struct memory_store *store = data;
  struct mark *mark = find(store, id);
  uint64_t now = now_ms();
  if (!mark) {
    mark = malloc(sizeof *mark + id.length);
    if (!mark)
      goto no_memory;
    memcpy(mark->bytes, id.bytes, id.length);
    mark->id = (struct guard_id){mark->bytes, id.length};
    if (!tsearch(mark, &store->root, compare)) {
      free(mark);
      goto no_memory;
    }
  }
  mark->expires_ms =
      store->retention_ms > UINT64_MAX - now ? UINT64_MAX : now + store->retention_ms;
  return true;

no_memory:
  error->kind = GUARD_UNAVAILABLE;
  snprintf(error->message, sizeof error->message, "memory store: no memory for a mark");
  return false;
}

static bool forget(void *data, struct guard_id id, struct guard_error *error) {
  struct memory_store *store = data;
  struct mark *mark = find(store, id);
  (void)error;
  if (mark)
    drop(store, mark);
  return true;
}

struct guard_store memory_store_functions(struct memory_store *store) {
  return (struct guard_store){store, seen, remember, forget};
}

struct memory_store *memory_store_new(uint64_t retention_ms) {
  struct memory_store *store = retention_ms ? malloc(sizeof *store) : NULL;
  if (store)
    *store = (struct memory_store){NULL, retention_ms};
  return store;
}

void memory_store_delete(struct memory_store *store) {
  while (store && store->root)
    drop(store, *(struct mark **)store->root);
  free(store);
}
