/* The guard in C: a delivery's decision is asked of the core module
 * plain.core.wasm, which runs in wasmtime; the store and the handler are C. The
 * sections named here are those of docs/contract.md. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* The longest id in bytes (section 1), and the largest body (section 7). */
enum { GUARD_MAX_ID = 2048, GUARD_MAX_BODY = 16 << 20 };

/* The classes of section 7. After each of them nothing was acknowledged. */
enum guard_error_class {
  GUARD_NO_ERROR,
  GUARD_UNAVAILABLE, /* the store cannot answer: deliver again later */
  GUARD_REJECTED,    /* the store refuses: an operator has to act */
  GUARD_BROKEN,      /* the module could not decide; it can decide on the next one */
};

struct guard_error {
  enum guard_error_class kind;
  char message[256]; /* for a person; ends with a zero */
};

/* UTF-8 that does not end with a zero. */
struct guard_id {
  const char *bytes;
  size_t length;
};

/* A store, in three functions. Each returns true if the store has answered;
 * otherwise it says why not in `error`. They are called between two calls of
 * the module: they may take their time, and may use the guard themselves.
 *
 * `seen` sets *seen to whether the id has a mark that has not expired. `remember`
 * sets the mark, and restarts its retention. `forget` removes it; no mark is no
 * error. Ids differ if any byte does. */
struct guard_store {
  void *data;
  bool (*seen)(void *data, struct guard_id id, bool *seen, struct guard_error *error);
  bool (*remember)(void *data, struct guard_id id, struct guard_error *error);
  bool (*forget)(void *data, struct guard_id id, struct guard_error *error);
};

enum guard_decision {
  GUARD_UNDECIDED, /* `error` says why: the handler did not run */
  GUARD_RUN,
  GUARD_SKIP,
};

/* Why a delivery that runs has no usable id (section 1). */
enum guard_fail_open { GUARD_HAS_ID, GUARD_MALFORMED, GUARD_ABSENT, GUARD_UNUSABLE };

struct guard_result {
  enum guard_decision decision;
  enum guard_fail_open fail_open;
  bool succeeded; /* what the handler returned */
  bool marked;    /* the id is remembered */
  /* Beside GUARD_RUN: why the mark of a handler that succeeded is missing. */
  struct guard_error error;
  size_t id_length; /* 0 without a usable id */
  char id[GUARD_MAX_ID];
};

/* A message as it came: its body, any bytes; or only its id, where the
 * transport has told it. */
struct guard_delivery {
  enum { GUARD_BODY, GUARD_ID } kind;
  const void *bytes;
  size_t length;
};

/* The effect. Returns whether it has happened. `delivery` has the id and
 * `fail_open`. No call of the module is under way while it runs. */
typedef bool guard_handler(void *data, const struct guard_result *delivery);

/* A guard is for one thread at a time; make one for each. */
struct guard;

/* Compiles the module of this path, which takes some twenty milliseconds.
 * Without a guard, `error` says why. */
struct guard *guard_open(const char *module_path, struct guard_store store,
                         struct guard_error *error);
void guard_close(struct guard *guard);

/* Decides on a delivery, calls the handler if it is to run, and marks the id if
 * the handler has succeeded. Returns whether to acknowledge the delivery. */
bool guard_process(struct guard *guard, struct guard_delivery delivery, guard_handler *handler,
                   void *data, struct guard_result *result);

/* Removes the mark of an id, so that its next delivery runs (section 6). */
bool guard_forget(struct guard *guard, struct guard_id id, struct guard_error *error);

#endif
