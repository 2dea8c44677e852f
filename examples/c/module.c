#include "module.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wasmtime.h>

struct import {
  struct module *module;
  enum question question;
};

/* A function of the module, and the one that frees its result. */
struct export {
  wasmtime_func_t call, post;
};

struct module {
  wasm_engine_t *engine;
  wasmtime_module_t *code;
  wasmtime_linker_t *linker;
  struct import imports[3];

  /* The instance. There is none before the first call, and after one that
   * trapped, since nothing is known of what that has left behind. */
  wasmtime_store_t *instance;
  wasmtime_memory_t memory;
  wasmtime_func_t realloc;
  struct export decide, decide_id, settle, forget;

  /* Of the call under way. */
  bool answer;
  enum question asked;
  unsigned questions;
};

/* True if neither is there; otherwise what wasmtime says goes into `error`. */
static bool succeeded(const char *doing, wasmtime_error_t *failure, wasm_trap_t *trap,
                      struct guard_error *error) {
  if (!failure && !trap)
    return true;
  wasm_byte_vec_t message;
  if (failure) {
    wasmtime_error_message(failure, &message);
    wasmtime_error_delete(failure);
  } else {
    wasm_trap_message(trap, &message);
    wasm_trap_delete(trap);
  }
  /* The cause stands last, behind the frames. */
  size_t end = message.size;
  while (end > 0 && (message.data[end - 1] == '\n' || message.data[end - 1] == '\0'))
    end--;
  size_t last = end;
  while (last > 0 && message.data[last - 1] != '\n')
    last--;
  fail(error, GUARD_BROKEN, "%s: %.*s", doing, (int)(end - last), message.data + last);
  wasm_byte_vec_delete(&message);
  return false;
}

/* What lies in the module's memory, as the canonical ABI lays out the types of
 * wit/types.wit. Whatever cannot be there makes the whole result invalid. */

struct reader {
  const uint8_t *memory;
  size_t size;
  uint32_t at;
  bool valid;
};

static uint8_t read_byte(struct reader *reader, uint32_t offset) {
  uint64_t place = (uint64_t)reader->at + offset;
  if (place < reader->size)
    return reader->memory[place];
  reader->valid = false;
  return 0;
}

/* The case of a variant or an enumeration that has this many. */
static uint8_t read_case(struct reader *reader, uint32_t offset, uint8_t cases) {
  uint8_t value = read_byte(reader, offset);
  reader->valid = reader->valid && value < cases;
  return value;
}

static uint32_t read_u32(struct reader *reader, uint32_t offset) {
  uint32_t value = 0;
  for (uint32_t at = 0; at < 4; at++)
    value |= (uint32_t)read_byte(reader, offset + at) << (8 * at);
  return value;
}

static struct guard_id read_string(struct reader *reader, uint32_t offset) {
  uint32_t at = read_u32(reader, offset), length = read_u32(reader, offset + 4);
  if (reader->valid && (uint64_t)at + length <= reader->size)
    return (struct guard_id){(const char *)reader->memory + at, length};
  reader->valid = false;
  return (struct guard_id){"", 0};
}

/* True unless the result is an error, whose payload begins at the offset. No
 * import answers with one, so that it is the module's own. */
static bool read_ok(struct reader *reader, uint32_t payload, struct guard_error *error) {
  if (!read_case(reader, 0, 2))
    return true;
  struct guard_id text = read_string(reader, payload + 4);
  return fail(error, GUARD_REJECTED, "%.*s", (int)text.length, text.bytes);
}

static void read_id(struct reader *reader, uint32_t offset, struct guard_result *result) {
  struct guard_id id = read_string(reader, offset);
  if (id.length > GUARD_MAX_ID) {
    reader->valid = false;
    return;
  }
  memcpy(result->id, id.bytes, id.length);
  result->id_length = id.length;
}

/* result<decision, store-error> */
static void read_decision(struct reader *reader, struct guard_result *result) {
  enum { RUN, SKIP } kind;
  enum { OPEN, UNSEEN } ticket;
  if (!read_ok(reader, 8, &result->error))
    return;
  kind = read_case(reader, 8, 2);
  result->decision = kind == SKIP ? GUARD_SKIP : GUARD_RUN;
  if (kind == SKIP) {
    read_id(reader, 16, result);
    return;
  }
  ticket = read_case(reader, 16, 2);
  if (ticket == OPEN)
    result->fail_open = GUARD_MALFORMED + read_case(reader, 24, 3);
  else
    read_id(reader, 24, result);
}

/* The instance and its calls. */

/* Writes result<bool, store-error> or result<_, store-error>: no error, and the
 * bool four bytes behind. */
static wasm_trap_t *note(void *env, wasmtime_caller_t *caller, const wasmtime_val_t *arguments,
                         size_t count, wasmtime_val_t *results, size_t result_count) {
  const struct import *import = env;
  struct module *module = import->module;
  wasmtime_context_t *context = wasmtime_caller_context(caller);
  uint8_t *memory = wasmtime_memory_data(context, &module->memory);
  uint64_t place = (uint32_t)arguments[2].of.i32;
  (void)count, (void)results, (void)result_count;
  module->asked = import->question;
  module->questions++;
  if (place + 5 > wasmtime_memory_data_size(context, &module->memory)) {
    module->questions++; /* not answered: the call must not count */
    return NULL;
  }
  memory[place] = 0;
  if (import->question == SEEN)
    memory[place + 4] = module->answer;
  return NULL;
}

static wasmtime_error_t *define_imports(struct module *module) {
  static const char interface[] = "babelqueue:guard/store@0.1.0";
  static const char *const names[] = {"seen", "remember", "forget"};
  wasmtime_error_t *failure = NULL;
  for (size_t at = 0; at < 3 && !failure; at++) {
    module->imports[at] = (struct import){module, SEEN + at};
    wasm_functype_t *type = wasm_functype_new_3_0(wasm_valtype_new_i32(), wasm_valtype_new_i32(),
                                                  wasm_valtype_new_i32());
    failure =
        wasmtime_linker_define_func(module->linker, interface, sizeof interface - 1, names[at],
                                    strlen(names[at]), type, note, &module->imports[at], NULL);
    wasm_functype_delete(type);
  }
  return failure;
}

static void discard(struct module *module) {
  if (module->instance)
    wasmtime_store_delete(module->instance);
  module->instance = NULL;
}

static bool find(struct module *module, wasmtime_instance_t *instance, const char *name,
                 wasmtime_extern_kind_t kind, wasmtime_extern_t *found) {
  wasmtime_context_t *context = wasmtime_store_context(module->instance);
  return wasmtime_instance_export_get(context, instance, name, strlen(name), found) &&
         found->kind == kind;
}

static bool find_function(struct module *module, wasmtime_instance_t *instance, const char *prefix,
                          const char *name, wasmtime_func_t *function) {
  char full[96];
  wasmtime_extern_t found;
  snprintf(full, sizeof full, "%s%s", prefix, name);
  if (!find(module, instance, full, WASMTIME_EXTERN_FUNC, &found))
    return false;
  *function = found.of.func;
  return true;
}

static bool find_export(struct module *module, wasmtime_instance_t *instance, const char *name,
                        struct export *export) {
#define GUARD_INTERFACE "babelqueue:guard/guard@0.1.0#"
  return find_function(module, instance, GUARD_INTERFACE, name, &export->call) &&
         find_function(module, instance, "cabi_post_" GUARD_INTERFACE, name, &export->post);
}

/* Sees to it that there is an instance. */
static bool instantiate(struct module *module, struct guard_error *error) {
  wasmtime_instance_t instance;
  wasmtime_extern_t memory;
  wasm_trap_t *trap = NULL;
  if (module->instance)
    return true;
  module->instance = wasmtime_store_new(module->engine, NULL, NULL);
  /* The body, a bit for each of its levels of nesting, stack, data and results. */
  wasmtime_store_limiter(module->instance, GUARD_MAX_BODY / 4 * 5 + (1 << 20), -1, -1, -1, -1);
  wasmtime_error_t *failure = wasmtime_linker_instantiate(
      module->linker, wasmtime_store_context(module->instance), module->code, &instance, &trap);
  if (!succeeded("the module cannot be instantiated", failure, trap, error)) {
    discard(module);
    return false;
  }
  if (!find(module, &instance, "memory", WASMTIME_EXTERN_MEMORY, &memory) ||
      !find_function(module, &instance, "", "cabi_realloc", &module->realloc) ||
      !find_export(module, &instance, "decide", &module->decide) ||
      !find_export(module, &instance, "decide-id", &module->decide_id) ||
      !find_export(module, &instance, "settle", &module->settle) ||
      !find_export(module, &instance, "forget", &module->forget)) {
    discard(module);
    return fail(error, GUARD_BROKEN, "the module is not the guard's plain.core.wasm");
  }
  module->memory = memory.of.memory;
  return true;
}

static wasmtime_val_t i32(uint32_t value) {
  return (wasmtime_val_t){.kind = WASMTIME_I32, .of.i32 = (int32_t)value};
}

static bool call(struct module *module, const wasmtime_func_t *function,
                 const wasmtime_val_t *arguments, size_t count, uint32_t *returned,
                 struct guard_error *error) {
  wasmtime_val_t result = i32(0);
  wasm_trap_t *trap = NULL;
  wasmtime_error_t *failure =
      wasmtime_func_call(wasmtime_store_context(module->instance), function, arguments, count,
                         &result, returned != NULL, &trap);
  if (!succeeded("the module trapped", failure, trap, error)) {
    discard(module);
    return false;
  }
  if (returned)
    *returned = (uint32_t)result.of.i32;
  return true;
}

/* Copies bytes into memory of the module, which frees them; `arguments` gets
 * their place and their length. */
static bool place(struct module *module, const void *bytes, size_t length,
                  wasmtime_val_t *arguments, struct guard_error *error) {
  uint32_t at;
  if (length > GUARD_MAX_BODY)
    return fail(error, GUARD_BROKEN, "a body or id of %zu bytes is over the limit of %d", length,
                GUARD_MAX_BODY);
  wasmtime_val_t wanted[] = {i32(0), i32(0), i32(1), i32((uint32_t)length)};
  if (!instantiate(module, error) || !call(module, &module->realloc, wanted, 4, &at, error))
    return false;
  wasmtime_context_t *context = wasmtime_store_context(module->instance);
  if (at + (uint64_t)length > wasmtime_memory_data_size(context, &module->memory)) {
    discard(module);
    return fail(error, GUARD_BROKEN, "the module broke its contract: no memory of its own");
  }
  if (length)
    memcpy(wasmtime_memory_data(context, &module->memory) + at, bytes, length);
  arguments[0] = i32(at);
  arguments[1] = i32((uint32_t)length);
  return true;
}

/* Calls an export. Its result is to be read before `end` frees it. */
static bool begin(struct module *module, const struct export *export,
                  const wasmtime_val_t *arguments, size_t count, bool answer, struct reader *reader,
                  struct guard_error *error) {
  module->answer = answer;
  module->asked = NOTHING;
  module->questions = 0;
  if (!call(module, &export->call, arguments, count, &reader->at, error))
    return false;
  wasmtime_context_t *context = wasmtime_store_context(module->instance);
  reader->memory = wasmtime_memory_data(context, &module->memory);
  reader->size = wasmtime_memory_data_size(context, &module->memory);
  reader->valid = true;
  return true;
}

/* Returns false also if the result that was read is an error. */
static bool end(struct module *module, const struct export *export, const struct reader *reader,
                struct guard_error *error) {
  wasmtime_val_t at = i32(reader->at);
  if (!call(module, &export->post, &at, 1, NULL, error))
    return false;
  if (reader->valid && module->questions <= 1)
    return error->kind == GUARD_NO_ERROR;
  discard(module);
  return fail(error, GUARD_BROKEN, "the module broke its contract: result %s, %u questions",
              reader->valid ? "valid" : "invalid", module->questions);
}

/* The functions of the guard. */

bool module_decide(struct module *module, struct guard_delivery delivery, bool seen,
                   struct guard_result *result, enum question *asked) {
  const struct export *export = delivery.kind == GUARD_ID ? &module->decide_id : &module->decide;
  wasmtime_val_t arguments[2];
  struct reader reader;
  if (!place(module, delivery.bytes, delivery.length, arguments, &result->error) ||
      !begin(module, export, arguments, 2, seen, &reader, &result->error))
    return false;
  read_decision(&reader, result);
  *asked = module->asked;
  return end(module, export, &reader, &result->error);
}

bool module_settle(struct module *module, const struct guard_result *result, bool *marked,
                   enum question *asked, struct guard_error *error) {
  enum { OPEN, UNSEEN };
  enum { SUCCEEDED, FAILED };
  enum { MARKED = 1, SETTLED_CASES = 5 };
  wasmtime_val_t arguments[7] = {i32(UNSEEN), i32(0), i32(0), i32(0), i32(0)};
  struct reader reader;
  arguments[5] = (wasmtime_val_t){.kind = WASMTIME_I64, .of.i64 = 0};
  arguments[6] = i32(result->succeeded ? SUCCEEDED : FAILED);
  if (result->fail_open != GUARD_HAS_ID) {
    arguments[0] = i32(OPEN);
    arguments[1] = i32(result->fail_open - GUARD_MALFORMED);
    if (!instantiate(module, error))
      return false;
  } else if (!place(module, result->id, result->id_length, arguments + 1, error)) {
    return false;
  }
  if (!begin(module, &module->settle, arguments, 7, true, &reader, error))
    return false;
  if (read_ok(&reader, 4, error))
    *marked = read_case(&reader, 4, SETTLED_CASES) == MARKED;
  *asked = module->asked;
  return end(module, &module->settle, &reader, error);
}

bool module_forget(struct module *module, struct guard_id id, enum question *asked,
                   struct guard_error *error) {
  wasmtime_val_t arguments[2];
  struct reader reader;
  if (!place(module, id.bytes, id.length, arguments, error) ||
      !begin(module, &module->forget, arguments, 2, true, &reader, error))
    return false;
  read_ok(&reader, 4, error);
  *asked = module->asked;
  return end(module, &module->forget, &reader, error);
}

static bool compile(struct module *module, const char *path, struct guard_error *error) {
  enum { ROOM = 1 << 20 };
  uint8_t *code = malloc(ROOM);
  FILE *file = code ? fopen(path, "rb") : NULL;
  size_t length = file ? fread(code, 1, ROOM, file) : 0;
  bool compiled =
      length > 0 ? succeeded(path, wasmtime_module_new(module->engine, code, length, &module->code),
                             NULL, error)
                 : fail(error, GUARD_BROKEN, "%s cannot be read", path);
  if (file)
    fclose(file);
  free(code);
  return compiled;
}

struct module *module_open(const char *path, struct guard_error *error) {
  struct module *module = calloc(1, sizeof *module);
  if (!module) {
    fail(error, GUARD_BROKEN, "no memory for the module");
    return NULL;
  }
  module->engine = wasm_engine_new();
  module->linker = wasmtime_linker_new(module->engine);
  if (compile(module, path, error) &&
      succeeded("the imports cannot be defined", define_imports(module), NULL, error) &&
      instantiate(module, error))
    return module;
  module_close(module);
  return NULL;
}

void module_close(struct module *module) {
  discard(module);
  wasmtime_linker_delete(module->linker);
  if (module->code)
    wasmtime_module_delete(module->code);
  wasm_engine_delete(module->engine);
  free(module);
}
