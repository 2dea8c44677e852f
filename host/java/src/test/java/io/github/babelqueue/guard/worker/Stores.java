package io.github.babelqueue.guard.worker;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.babelqueue.guard.Store;
import io.github.babelqueue.guard.store.MemoryStore;
import io.github.babelqueue.guard.store.RedisStore;
import java.net.URI;
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
    if (url.startsWith("redis")) {
      RedisStore.Builder store = RedisStore.builder(URI.create(url)).retention(retention);
      if (request.hasNonNull("prefix")) {
        store.prefix(request.get("prefix").asText());
      }
      if (request.hasNonNull("name")) {
        store.consumer(request.get("name").asText());
      }
      return store.lease(lease).build();
    }
    throw new IllegalArgumentException("no such store: " + url);
  }

  private static Duration millis(JsonNode request, String name, Duration otherwise) {
    return request.hasNonNull(name) ? Duration.ofMillis(request.get(name).asLong()) : otherwise;
  }
}
