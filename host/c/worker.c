/* The worker of tests/README.md: drives the guard of examples/c, a JSON object a
 * line in, one a line out. It has the store `memory:` and the plain guard; what
 * needs more is unsupported. Its argument is the path of plain.core.wasm. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guard.h"
#include "memory_store.h"

#define DEFAULT_RETENTION_MS (UINT64_C(14) * 24 * 60 * 60 * 1000)

struct worker {
  const char *module_path;
  struct memory_store *store;
  struct guard *guard;
  /* For verdicts, which ask for the id alone: in its store nothing is seen. */
  struct guard *unseen;
};

static json_t *unsupported(const char *detail) {
  return json_pack("{s:s, s:s}", "error", "unsupported", "detail", detail);
}

static json_t *class_of(const struct guard_error *error) {
  static const char *const classes[] = {NULL, "unavailable", "rejected", "guard"};
  const char *name = classes[error->kind];
  return name ? json_string(name) : json_null();
}

static json_t *failed(const struct guard_error *error) {
  return json_pack("{s:o, s:s}", "error", class_of(error), "detail", error->message);
}

static json_t *ok(void) { return json_pack("{s:b}", "ok", 1); }

static json_t *id_or_null(const struct guard_result *result) {
  return result->id_length ? json_stringn(result->id, result->id_length) : json_null();
}

static json_t *reason_or_null(const struct guard_result *result) {
  static const char *const reasons[] = {NULL, "malformed", "absent", "unusable"};
  const char *reason = reasons[result->fail_open];
  return reason ? json_string(reason) : json_null();
}

/* The bytes of a file, to be freed; NULL if it cannot be read. */
static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  char *bytes = NULL;
  *length = 0;
  if (!file)
    return NULL;
  for (size_t room = 1 << 16, count = 1; count > 0; room *= 2) {
    char *more = realloc(bytes, room);
    if (!more)
      break;
    bytes = more;
    count = fread(bytes + *length, 1, room - *length, file);
    *length += count;
  }
  if (ferror(file) || !feof(file)) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  return bytes;
}

/* Opening */

/* A guard over a new store takes the place of the one there is. */
static json_t *open_memory(struct worker *worker, uint64_t retention_ms) {
  struct guard_error error;
  struct memory_store *store = memory_store_new(retention_ms);
  if (!store)
    return unsupported("retention_ms must be a positive number of milliseconds");
  struct guard *guard = guard_open(worker->module_path, memory_store_functions(store), &error);
  if (!guard) {
    memory_store_delete(store);
    return failed(&error);
  }
  guard_close(worker->guard);
  memory_store_delete(worker->store);
  worker->guard = guard;
  worker->store = store;
  return ok();
}

static json_t *open_store(struct worker *worker, const json_t *request) {
  const char *url = json_string_value(json_object_get(request, "store"));
  json_t *retention = json_object_get(request, "retention_ms");
  uint64_t retention_ms = DEFAULT_RETENTION_MS;
  if (!url || strcmp(url, "memory:") != 0)
    return unsupported("the only store is memory:");
  if (json_is_true(json_object_get(request, "claim")))
    return unsupported("there are no claims");
  if (retention && (!json_is_integer(retention) || json_integer_value(retention) <= 0))
    return unsupported("retention_ms must be a positive number of milliseconds");
  if (retention)
    retention_ms = (uint64_t)json_integer_value(retention);
  return open_memory(worker, retention_ms);
}

static bool nothing_seen(void *data, struct guard_id id, bool *seen, struct guard_error *error) {
  (void)data, (void)id, (void)error;
  *seen = false;
  return true;
}

static bool nothing_stays(void *data, struct guard_id id, struct guard_error *error) {
  (void)data, (void)id, (void)error;
  return true;
}

/* Deliveries */

struct handling {
  bool called, succeeds;
  long long hold_ms;
};

static bool handle(void *data, const struct guard_result *delivery) {
  struct handling *handling = data;
  (void)delivery;
  handling->called = true;
  struct timespec hold = {handling->hold_ms / 1000, handling->hold_ms % 1000 * 1000000L};
  nanosleep(&hold, NULL);
  return handling->succeeds;
}

static json_t *answer_of(const struct guard_result *result, const struct handling *handling) {
  static const char *const decisions[] = {"error", "run", "skip"};
  bool ran = result->decision == GUARD_RUN;
  json_t *answer = json_pack(
      "{s:s, s:o, s:o, s:o, s:b, s:o, s:n, s:o, s:n}", "decision", decisions[result->decision],
      "id", id_or_null(result), "reason", reason_or_null(result), "outcome",
      !ran                ? json_null()
      : result->succeeded ? json_string("succeeded")
                          : json_string("failed"),
      "marked", (int)result->marked, "error", class_of(&result->error), "left_ms", "replay",
      handling->called ? json_false() : json_null(), "step");
  if (result->error.kind != GUARD_NO_ERROR)
    json_object_set_new(answer, "detail", json_string(result->error.message));
  return answer;
}

static json_t *process(struct worker *worker, const json_t *request) {
  json_t *body = json_object_get(request, "body"), *id = json_object_get(request, "id");
  const char *file = json_string_value(json_object_get(request, "file"));
  const char *outcome = json_string_value(json_object_get(request, "outcome"));
  struct handling handling = {.succeeds = !outcome || strcmp(outcome, "throw") != 0};
  struct guard_delivery delivery = {.kind = GUARD_BODY};
  struct guard_result result;
  char *read = NULL;

  if (json_object_size(json_object_get(request, "headers")) > 0)
    return unsupported("there are no headers");
  if (json_is_string(json_object_get(request, "step")))
    return unsupported("there are no steps");
  handling.hold_ms = json_integer_value(json_object_get(request, "hold_ms"));
  if (json_is_string(body)) {
    delivery.bytes = json_string_value(body);
    delivery.length = json_string_length(body);
  } else if (file) {
    delivery.bytes = read = read_file(file, &delivery.length);
    if (!read)
      return unsupported("the file cannot be read");
  } else if (json_is_string(id)) {
    delivery = (struct guard_delivery){GUARD_ID, json_string_value(id), json_string_length(id)};
  } else {
    return unsupported("process needs a body, a file or an id");
  }
  guard_process(worker->guard, delivery, handle, &handling, &result);
  free(read);
  return answer_of(&result, &handling);
}

static json_t *verdict(struct worker *worker, const json_t *request) {
  const char *file = json_string_value(json_object_get(request, "file"));
  struct handling handling = {.succeeds = false};
  struct guard_delivery delivery = {.kind = GUARD_BODY};
  struct guard_result result;
  char *read = file ? read_file(file, &delivery.length) : NULL;
  if (!read)
    return unsupported("the file cannot be read");
  delivery.bytes = read;
  guard_process(worker->unseen, delivery, handle, &handling, &result);
  free(read);
  return result.error.kind == GUARD_NO_ERROR
             ? json_pack("{s:o, s:o}", "id", id_or_null(&result), "reason", reason_or_null(&result))
             : failed(&result.error);
}

/* The store's own questions */

static json_t *ask_store(struct worker *worker, const char *op, const json_t *request) {
  struct guard_store store = memory_store_functions(worker->store);
  json_t *value = json_object_get(request, "id");
  struct guard_id id = {json_string_value(value), json_string_length(value)};
  struct guard_error error = {0};
  bool seen = false;
  if (!id.bytes)
    return unsupported("there is no id, or no such op");
  if (strcmp(op, "seen") == 0)
    return store.seen(store.data, id, &seen, &error) ? json_pack("{s:b}", "seen", (int)seen)
                                                     : failed(&error);
  if (strcmp(op, "remember") == 0)
    return store.remember(store.data, id, &error) ? ok() : failed(&error);
  if (strcmp(op, "forget") == 0)
    return guard_forget(worker->guard, id, &error) ? ok() : failed(&error);
  return unsupported("there is no such op");
}

static json_t *answer(struct worker *worker, const char *line, size_t length) {
  json_error_t wrong;
  json_t *request = json_loadb(line, length, JSON_ALLOW_NUL, &wrong), *answer;
  const char *op = json_string_value(json_object_get(request, "op"));
  if (!request)
    answer = unsupported(wrong.text);
  else if (!op)
    answer = unsupported("there is no op");
  else if (strcmp(op, "open") == 0)
    answer = open_store(worker, request);
  else if (strcmp(op, "verdict") == 0)
    answer = verdict(worker, request);
  else if (strcmp(op, "process") == 0)
    answer = process(worker, request);
  else
    answer = ask_store(worker, op, request);
  json_decref(request);
  return answer;
}

int main(int count, char **arguments) {
  struct worker worker = {.module_path = count == 2 ? arguments[1] : ""};
  struct guard_store unseen = {NULL, nothing_seen, nothing_stays, nothing_stays};
  struct guard_error error;
  char *line = NULL;
  size_t room = 0;
  worker.unseen = guard_open(worker.module_path, unseen, &error);
  if (!worker.unseen) {
    fprintf(stderr, "worker: %s\n", error.message);
    return EXIT_FAILURE;
  }
  json_t *opened = open_memory(&worker, DEFAULT_RETENTION_MS);
  json_decref(opened);
  if (!worker.guard) {
    fprintf(stderr, "worker: its first store cannot be opened\n");
    return EXIT_FAILURE;
  }
  for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
    json_t *answered = answer(&worker, line, (size_t)length);
    json_dumpf(answered, stdout, JSON_COMPACT);
    json_decref(answered);
    putchar('\n');
    fflush(stdout);
  }
  free(line);
  guard_close(worker.guard);
  guard_close(worker.unseen);
  memory_store_delete(worker.store);
  return EXIT_SUCCESS;
}
