#include "guard.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

struct guard {
  struct guard_store store;
  struct module *module;
};

bool fail(struct guard_error *error, enum guard_error_class kind, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->kind = kind;
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return false;
}

/* Passes on whether a store has answered, and sees to it that there is an error
 * if not. */
static bool answered(bool answer, struct guard_error *error) {
  if (!answer && error->kind == GUARD_NO_ERROR)
    fail(error, GUARD_UNAVAILABLE, "the store has not answered, and does not say why");
  return answer;
}

static struct guard_id id_of(const struct guard_result *result) {
  return (struct guard_id){result->id, result->id_length};
}

/* Supposes that the id was not seen. Where the store says that it was, the
 * module decides once more, now knowing it. */
static bool decide(struct guard *guard, struct guard_delivery delivery,
                   struct guard_result *result) {
  const struct guard_store *store = &guard->store;
  enum question asked;
  bool seen = false;
  if (!module_decide(guard->module, delivery, false, result, &asked))
    return false;
  if (asked != SEEN)
    return true;
  if (!answered(store->seen(store->data, id_of(result), &seen, &result->error), &result->error))
    return false;
  if (!seen)
    return true;
  struct guard_delivery known = {GUARD_ID, result->id, result->id_length};
  return module_decide(guard->module, known, true, result, &asked);
}

/* Supposes that the store does as it is asked, and then asks it. */
static bool settle(struct guard *guard, const struct guard_result *result, bool *marked,
                   struct guard_error *error) {
  const struct guard_store *store = &guard->store;
  enum question asked;
  if (!module_settle(guard->module, result, marked, &asked, error))
    return false;
  return asked != REMEMBER || answered(store->remember(store->data, id_of(result), error), error);
}

bool guard_process(struct guard *guard, struct guard_delivery delivery, guard_handler *handler,
                   void *data, struct guard_result *result) {
  /* Of the id counts only what its length says. */
  memset(result, 0, offsetof(struct guard_result, id));
  if (!decide(guard, delivery, result)) {
    result->decision = GUARD_UNDECIDED;
    result->id_length = 0;
    return false;
  }
  if (result->decision == GUARD_SKIP)
    return true;
  result->succeeded = handler(data, result);
  bool marked = false;
  result->marked = settle(guard, result, &marked, &result->error) && marked;
  return result->succeeded;
}

bool guard_forget(struct guard *guard, struct guard_id id, struct guard_error *error) {
  const struct guard_store *store = &guard->store;
  enum question asked;
  memset(error, 0, sizeof *error);
  if (!module_forget(guard->module, id, &asked, error))
    return false;
  return asked != FORGET || answered(store->forget(store->data, id, error), error);
}

struct guard *guard_open(const char *module_path, struct guard_store store,
                         struct guard_error *error) {
  struct guard *guard = malloc(sizeof *guard);
  memset(error, 0, sizeof *error);
  if (!guard) {
    fail(error, GUARD_BROKEN, "no memory for a guard");
    return NULL;
  }
  guard->store = store;
  guard->module = module_open(module_path, error);
  if (!guard->module) {
    free(guard);
    return NULL;
  }
  return guard;
}

void guard_close(struct guard *guard) {
  if (!guard)
    return;
  module_close(guard->module);
  free(guard);
}
