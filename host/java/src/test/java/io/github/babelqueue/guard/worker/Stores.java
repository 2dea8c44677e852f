package io.github.babelqueue.guard.worker;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.babelqueue.guard.Store;
import io.github.babelqueue.guard.store.MemoryStore;
import java.time.Duration;

/** Makes the store that a request names. */
final class Stores {
  private Stores() {}

  static Store open(JsonNode request) {
    String url = request.get("store").asText();
    Duration retention = millis(request, "retention_ms", Duration.ofDays(14));
    Duration lease = millis(request, "lease_ms", Duration.ofSeconds(60));
    if (url.equals("memory:")) {
      return new MemoryStore(retention, lease, MemoryStore.DEFAULT_MAX_MARKS);
    }
    throw new IllegalArgumentException("no such store: " + url);
  }

  private static Duration millis(JsonNode request, String name, Duration otherwise) {
    return request.hasNonNull(name) ? Duration.ofMillis(request.get(name).asLong()) : otherwise;
  }
}
