/* The module plain.core.wasm in wasmtime, and its calls through the canonical
 * ABI. */
#ifndef MODULE_H
#define MODULE_H

#include "guard.h"

/* The module asks its store by an import. The import here asks nobody: it notes
 * the question, and gives an answer that was known, or supposed, before the
 * call. What C does for a store or a handler thus never has a frame of the
 * module below it, and may do anything, even longjmp. */
enum question { NOTHING, SEEN, REMEMBER, FORGET };

struct module;
struct module *module_open(const char *path, struct guard_error *error);
void module_close(struct module *module);

/* Each returns true if the call has ended well; otherwise `error` is set, and
 * the next call has a new instance. */

/* Decides, with `seen` as the store's answer. */
bool module_decide(struct module *module, struct guard_delivery delivery, bool seen,
                   struct guard_result *result, enum question *asked);

/* Settles how the handler ended, and supposes that the store does as it is
 * asked. */
bool module_settle(struct module *module, const struct guard_result *result, bool *marked,
                   enum question *asked, struct guard_error *error);

/* Forgets, with the same supposition. */
bool module_forget(struct module *module, struct guard_id id, enum question *asked,
                   struct guard_error *error);

/* Sets an error; always false. */
#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
bool fail(struct guard_error *error, enum guard_error_class kind, const char *format, ...);

#endif
