/* What the guard of examples/c does where a store, a handler or the module
 * misbehaves, and over many calls. Prints "ok NAME" or "not ok NAME" for each
 * test. Arguments: the path of plain.core.wasm, and a folder for files. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <wasmtime.h>

#include "guard.h"
#include "memory_store.h"

static const char *module_path, *folder;
static bool passing;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("# line %d: %s\n", __LINE__, #condition);                                             \
      passing = false;                                                                             \
    }                                                                                              \
  } while (0)

static struct guard_delivery body(const char *text) {
  return (struct guard_delivery){GUARD_BODY, text, strlen(text)};
}

static struct guard_id id(const char *text) { return (struct guard_id){text, strlen(text)}; }

static const char envelope[] = "{\"job\":\"urn:babel:tests:run\",\"meta\":{\"id\":\"A\"}}";

static bool count(void *data, const struct guard_result *delivery) {
  (void)delivery;
  ++*(int *)data;
  return true;
}

static bool fails(void *data, const struct guard_result *delivery) {
  (void)data, (void)delivery;
  return false;
}

static struct guard *open_guard(struct guard_store store) {
  struct guard_error error;
  struct guard *guard = guard_open(module_path, store, &error);
  if (!guard) {
    fprintf(stderr, "guard_test: %s\n", error.message);
    exit(EXIT_FAILURE);
  }
  return guard;
}

/* A store that does as it is told, over one in memory. */
struct told {
  struct guard_store memory;
  enum { ANSWER, REFUSE, SAY_NOTHING, CALL_THE_GUARD, JUMP } seen, remember, forget;
  enum guard_error_class kind;
  struct guard *guard;
  int reentered;
  jmp_buf out;
};

static bool told_to(struct told *told, int what, struct guard_error *error) {
  struct guard_result result;
  if (what == REFUSE) {
    error->kind = told->kind;
    snprintf(error->message, sizeof error->message, "the disk of the store is full");
  } else if (what == CALL_THE_GUARD) {
    told->seen = told->remember = ANSWER;
    guard_process(told->guard, body("{\"meta\":{\"id\":\"within\"}}"), count, &told->reentered,
                  &result);
    return true;
  } else if (what == JUMP) {
    longjmp(told->out, 1);
  }
  return what == ANSWER;
}

static bool told_seen(void *data, struct guard_id id, bool *seen, struct guard_error *error) {
  struct told *told = data;
  return told_to(told, told->seen, error) && told->memory.seen(told->memory.data, id, seen, error);
}

static bool told_remember(void *data, struct guard_id id, struct guard_error *error) {
  struct told *told = data;
  return told_to(told, told->remember, error) &&
         told->memory.remember(told->memory.data, id, error);
}

static bool told_forget(void *data, struct guard_id id, struct guard_error *error) {
  struct told *told = data;
  return told_to(told, told->forget, error) && told->memory.forget(told->memory.data, id, error);
}

static struct told *tell(struct told *told) {
  told->memory = memory_store_functions(memory_store_new(UINT64_MAX));
  told->guard = open_guard((struct guard_store){told, told_seen, told_remember, told_forget});
  return told;
}

static void untell(struct told *told) {
  guard_close(told->guard);
  memory_store_delete(told->memory.data);
}

static void test_a_store_that_cannot_say_stops_the_handler(void) {
  static const enum guard_error_class kinds[] = {GUARD_UNAVAILABLE, GUARD_REJECTED};
  for (int at = 0; at < 2; at++) {
    struct told *told = tell(&(struct told){.seen = REFUSE, .kind = kinds[at]});
    struct guard_result result;
    int ran = 0;
    CHECK(!guard_process(told->guard, body(envelope), count, &ran, &result));
    CHECK(ran == 0 && result.decision == GUARD_UNDECIDED && result.error.kind == kinds[at]);
    CHECK(strcmp(result.error.message, "the disk of the store is full") == 0);
    told->seen = SAY_NOTHING;
    CHECK(!guard_process(told->guard, body(envelope), count, &ran, &result));
    CHECK(ran == 0 && result.error.kind == GUARD_UNAVAILABLE && result.error.message[0]);
    told->seen = ANSWER;
    CHECK(guard_process(told->guard, body(envelope), count, &ran, &result));
    CHECK(ran == 1 && result.marked && result.error.kind == GUARD_NO_ERROR);
    untell(told);
  }
}

static void test_a_mark_that_is_missing_is_acknowledged_and_said(void) {
  struct told *told = tell(&(struct told){.remember = REFUSE, .kind = GUARD_UNAVAILABLE});
  struct guard_result result;
  int ran = 0;
  CHECK(guard_process(told->guard, body(envelope), count, &ran, &result));
  CHECK(result.decision == GUARD_RUN && result.succeeded && !result.marked);
  CHECK(result.error.kind == GUARD_UNAVAILABLE);
  CHECK(result.id_length == 1 && result.id[0] == 'A');
  told->remember = ANSWER;
  CHECK(guard_process(told->guard, body(envelope), count, &ran, &result) && result.marked);
  CHECK(ran == 2);
  untell(told);
}

static void test_forgetting_says_what_the_store_says(void) {
  struct told *told = tell(&(struct told){.forget = REFUSE, .kind = GUARD_REJECTED});
  struct guard_error error;
  CHECK(!guard_forget(told->guard, id("A"), &error) && error.kind == GUARD_REJECTED);
  told->forget = ANSWER;
  CHECK(guard_forget(told->guard, id("A"), &error) && error.kind == GUARD_NO_ERROR);
  CHECK(!guard_forget(told->guard, id(""), &error) && error.kind == GUARD_REJECTED);
  untell(told);
}

static void test_a_store_may_use_the_guard_that_asks_it(void) {
  struct told *told = tell(&(struct told){.seen = CALL_THE_GUARD});
  struct guard_result result;
  int ran = 0;
  CHECK(guard_process(told->guard, body(envelope), count, &ran, &result));
  CHECK(told->reentered == 1 && ran == 1 && result.id_length == 1 && result.id[0] == 'A');
  told->remember = CALL_THE_GUARD;
  CHECK(guard_process(told->guard, body("{\"meta\":{\"id\":\"B\"}}"), count, &ran, &result));
  CHECK(told->reentered == 1 && ran == 2 && result.marked && result.id[0] == 'B');
  CHECK(guard_process(told->guard, body(envelope), count, &ran, &result));
  CHECK(ran == 2 && result.decision == GUARD_SKIP);
  untell(told);
}

static void test_a_jump_out_of_a_store_leaves_the_guard_usable(void) {
  struct told *told = tell(&(struct told){.seen = JUMP});
  struct guard_result result;
  int ran = 0;
  if (setjmp(told->out) == 0)
    guard_process(told->guard, body(envelope), count, &ran, &result);
  told->seen = ANSWER;
  CHECK(guard_process(told->guard, body(envelope), count, &ran, &result));
  CHECK(result.decision == GUARD_RUN && result.marked);
  untell(told);
}

static void test_the_memory_store_keeps_ids_apart_and_forgets_in_time(void) {
  struct memory_store *memory = memory_store_new(20);
  struct guard_store store = memory_store_functions(memory);
  struct guard_error error = {0};
  const struct guard_id ids[] = {{"a", 1}, {"A", 1}, {"a ", 2}, {"a\0b", 3}, {"a\0c", 3}};
  const int count = sizeof ids / sizeof *ids;
  for (int marked = 0; marked < count; marked++) {
    bool seen = true;
    CHECK(store.seen(store.data, ids[marked], &seen, &error) && !seen);
    CHECK(store.remember(store.data, ids[marked], &error));
    CHECK(store.seen(store.data, ids[marked], &seen, &error) && seen);
    CHECK(store.forget(store.data, ids[marked], &error));
    CHECK(store.seen(store.data, ids[marked], &seen, &error) && !seen);
  }
  bool seen = true;
  CHECK(store.remember(store.data, ids[0], &error));
  nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
  CHECK(store.seen(store.data, ids[0], &seen, &error) && !seen);
  CHECK(!memory_store_new(0));
  memory_store_delete(memory);
}

static void test_a_body_over_the_limit_is_not_decided(void) {
  struct told *told = tell(&(struct told){0});
  struct guard_result result;
  int ran = 0;
  static char large[GUARD_MAX_BODY + 1];
  struct guard_delivery delivery = {GUARD_BODY, large, GUARD_MAX_BODY + 1};
  memset(large, '[', GUARD_MAX_BODY);
  CHECK(!guard_process(told->guard, delivery, count, &ran, &result));
  CHECK(ran == 0 && result.error.kind == GUARD_BROKEN && strstr(result.error.message, "limit"));
  delivery.kind = GUARD_ID;
  CHECK(!guard_process(told->guard, delivery, count, &ran, &result) && ran == 0);
  delivery = (struct guard_delivery){GUARD_BODY, large, GUARD_MAX_BODY};
  CHECK(guard_process(told->guard, delivery, count, &ran, &result));
  CHECK(ran == 1 && result.fail_open == GUARD_MALFORMED);
  CHECK(guard_process(told->guard, body(envelope), count, &ran, &result) && result.marked);
  untell(told);
}

/* A module with the exports of plain.core.wasm, whose `decide` misbehaves as the
 * first byte of the body says. Otherwise it runs what it takes for malformed. */
static const char hostile[] =
    "(module"
    " (type $call (func (param i32 i32) (result i32)))"
    " (import \"babelqueue:guard/store@0.1.0\" \"seen\" (func $seen (param i32 i32 i32)))"
    " (memory (export \"memory\") 1)"
    " (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))"
    " (func $decide (export \"babelqueue:guard/guard@0.1.0#decide\") (type $call)"
    "  (local $first i32) (local.set $first (i32.load8_u (local.get 0)))"
    "  (i32.store8 (i32.const 72) (i32.const 0))"
    "  (if (i32.eq (local.get $first) (i32.const 0x74)) (then (unreachable)))"
    "  (if (i32.eq (local.get $first) (i32.const 0x6f))"
    "   (then (drop (call $decide (local.get 0) (local.get 1)))))"
    "  (if (i32.eq (local.get $first) (i32.const 0x72)) (then (return (i32.const -8))))"
    "  (if (i32.eq (local.get $first) (i32.const 0x63))"
    "   (then (i32.store8 (i32.const 72) (i32.const 9))))"
    "  (if (i32.eq (local.get $first) (i32.const 0x71))"
    "   (then (call $seen (i32.const 0) (i32.const 0) (i32.const 512))"
    "         (call $seen (i32.const 0) (i32.const 0) (i32.const 512))))"
    "  (if (i32.eq (local.get $first) (i32.const 0x61))"
    "   (then (call $seen (i32.const 0) (i32.const 0) (i32.const -4))))"
    "  (i32.const 64))"
    " (func (export \"babelqueue:guard/guard@0.1.0#decide-id\") (type $call) (i32.const 64))"
    " (func (export \"babelqueue:guard/guard@0.1.0#forget\") (type $call) (i32.const 64))"
    " (func (export \"babelqueue:guard/guard@0.1.0#settle\")"
    "  (param i32 i32 i32 i32 i32 i64 i32) (result i32) (i32.const 64))"
    " (func $post (param i32))"
    " (export \"cabi_post_babelqueue:guard/guard@0.1.0#decide\" (func $post))"
    " (export \"cabi_post_babelqueue:guard/guard@0.1.0#decide-id\" (func $post))"
    " (export \"cabi_post_babelqueue:guard/guard@0.1.0#forget\" (func $post))"
    " (export \"cabi_post_babelqueue:guard/guard@0.1.0#settle\" (func $post)))";

static const char *write_file(const char *name, const void *bytes, size_t length) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, length, file) == length);
  if (file)
    fclose(file);
  return path;
}

static void test_a_module_that_misbehaves_gives_an_error_and_is_replaced(void) {
  static const char *const expected[][2] = {
      {"trap", "unreachable"}, {"overflow", "stack"},      {"result outside", "invalid"},
      {"case", "invalid"},     {"question twice", "2 qu"}, {"answer into nowhere", "2 qu"},
  };
  const char *real = module_path;
  wasm_byte_vec_t code;
  wasmtime_error_t *failure = wasmtime_wat2wasm(hostile, sizeof hostile - 1, &code);
  CHECK(!failure);
  module_path = write_file("hostile.wasm", code.data, code.size);
  wasm_byte_vec_delete(&code);
  struct told *told = tell(&(struct told){0});
  module_path = real;
  for (size_t at = 0; at < sizeof expected / sizeof *expected; at++) {
    struct guard_result result;
    int ran = 0;
    CHECK(!guard_process(told->guard, body(expected[at][0]), count, &ran, &result));
    CHECK(ran == 0 && result.decision == GUARD_UNDECIDED && result.error.kind == GUARD_BROKEN);
    if (!strstr(result.error.message, expected[at][1])) {
      printf("# %s: %s\n", expected[at][0], result.error.message);
      passing = false;
    }
    CHECK(guard_process(told->guard, body("well"), count, &ran, &result));
    CHECK(ran == 1 && result.fail_open == GUARD_MALFORMED);
  }
  untell(told);
}

static void test_another_file_is_not_taken_for_the_module(void) {
  struct guard_store store = {0};
  struct guard_error error;
  CHECK(!guard_open("no such file", store, &error));
  CHECK(error.kind == GUARD_BROKEN && strstr(error.message, "no such file"));
  CHECK(!guard_open(write_file("text.wasm", "text", 4), store, &error));
  CHECK(error.kind == GUARD_BROKEN && strstr(error.message, "text.wasm"));
  CHECK(!guard_open(write_file("empty.wasm", "\0asm\1\0\0", 8), store, &error));
  CHECK(error.kind == GUARD_BROKEN && strstr(error.message, "plain.core.wasm"));
}

static long resident_bytes(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*d %ld", &pages) != 1)
    pages = 0;
  if (file)
    fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* One of each: no id, run, skip, failed, forget. */
static void five_calls(struct guard *guard, int *ran) {
  struct guard_result result;
  struct guard_error error;
  CHECK(guard_process(guard, body("{}"), count, ran, &result));
  CHECK(guard_process(guard, body(envelope), count, ran, &result) && result.marked);
  CHECK(guard_process(guard, body(envelope), count, ran, &result));
  CHECK(!guard_process(guard, body("{\"meta\":{\"id\":\"B\"}}"), fails, NULL, &result));
  CHECK(guard_forget(guard, id("A"), &error));
}

static void test_100000_calls_take_no_more_memory_than_a_few(void) {
  struct told *told = tell(&(struct told){0});
  int ran = 0;
  for (int at = 0; at < 1000; at++)
    five_calls(told->guard, &ran);
  long before = resident_bytes();
  for (int at = 0; at < 20000; at++)
    five_calls(told->guard, &ran);
  CHECK(ran == 2 * 21000);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed for a while, and finds leaks itself */
  /* Ten bytes a call would be a megabyte. */
  CHECK(resident_bytes() - before < 1000000);
#endif
  (void)before;
  untell(told);
}

int main(int argument_count, char **arguments) {
#define TEST(name)                                                                                 \
  {                                                                                                \
    #name, test_##name                                                                             \
  }
  static const struct {
    const char *name;
    void (*test)(void);
  } tests[] = {
      TEST(a_store_that_cannot_say_stops_the_handler),
      TEST(a_mark_that_is_missing_is_acknowledged_and_said),
      TEST(forgetting_says_what_the_store_says),
      TEST(a_store_may_use_the_guard_that_asks_it),
      TEST(a_jump_out_of_a_store_leaves_the_guard_usable),
      TEST(the_memory_store_keeps_ids_apart_and_forgets_in_time),
      TEST(a_body_over_the_limit_is_not_decided),
      TEST(a_module_that_misbehaves_gives_an_error_and_is_replaced),
      TEST(another_file_is_not_taken_for_the_module),
      TEST(100000_calls_take_no_more_memory_than_a_few),
  };
  if (argument_count != 3)
    return EXIT_FAILURE;
  module_path = arguments[1];
  folder = arguments[2];
  for (size_t at = 0; at < sizeof tests / sizeof *tests; at++) {
    passing = true;
    tests[at].test();
    printf("%s %s\n", passing ? "ok" : "not ok", tests[at].name);
    fflush(stdout);
  }
  return EXIT_SUCCESS;
}
