/* A consumer of parcels: what becomes of deliveries under the guard. Its
 * argument is the path of plain.core.wasm. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "memory_store.h"

static const char *const fail_open[] = {"", "malformed", "absent", "unusable"};

/* The effect. `data` is whether the packing machine works. */
static bool pack(void *data, const struct guard_result *delivery) {
  const bool *machine_works = data;
  if (delivery->fail_open != GUARD_HAS_ID)
    printf("  no id (%s): packing whatever it is\n", fail_open[delivery->fail_open]);
  else
    printf("  packing %.*s\n", (int)delivery->id_length, delivery->id);
  return *machine_works;
}

static void deliver(struct guard *guard, const char *body, bool machine_works) {
  static const char *const decisions[] = {"not decided", "run", "skip"};
  struct guard_result result;
  struct guard_delivery delivery = {GUARD_BODY, body, strlen(body)};
  printf("%s\n", body);
  bool acknowledge = guard_process(guard, delivery, pack, &machine_works, &result);
  printf("  %s%s: %s\n", decisions[result.decision], result.marked ? ", marked" : "",
         acknowledge ? "acknowledge" : "deliver again");
  if (result.error.kind != GUARD_NO_ERROR)
    printf("  %s\n", result.error.message);
}

int main(int count, char **arguments) {
  const uint64_t fourteen_days_ms = UINT64_C(14) * 24 * 60 * 60 * 1000;
  static const char parcel_1[] =
      "{\"job\":\"urn:babel:parcels:packed\",\"meta\":{\"id\":\"parcel-1\"}}";
  static const char parcel_2[] =
      "{\"job\":\"urn:babel:parcels:packed\",\"meta\":{\"id\":\"parcel-2\"}}";
  struct guard_error error;
  struct memory_store *store = memory_store_new(fourteen_days_ms);
  if (count != 2 || !store) {
    fprintf(stderr, "consumer: its argument is the path of plain.core.wasm\n");
    return EXIT_FAILURE;
  }
  struct guard *guard = guard_open(arguments[1], memory_store_functions(store), &error);
  if (!guard) {
    fprintf(stderr, "consumer: %s\n", error.message);
    return EXIT_FAILURE;
  }

  deliver(guard, parcel_1, true);
  deliver(guard, parcel_1, true);
  deliver(guard, parcel_2, false);
  deliver(guard, parcel_2, true);
  deliver(guard, "{\"job\":\"urn:babel:parcels:packed\"}", true);

  printf("parcel-1 is to be packed once more\n");
  if (!guard_forget(guard, (struct guard_id){"parcel-1", 8}, &error))
    printf("  %s\n", error.message);
  deliver(guard, parcel_1, true);

  guard_close(guard);
  memory_store_delete(store);
  return EXIT_SUCCESS;
}
