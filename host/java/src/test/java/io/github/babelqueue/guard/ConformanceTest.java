package io.github.babelqueue.guard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.babelqueue.guard.store.MemoryStore;
import io.github.babelqueue.guard.store.RedisServer;
import io.github.babelqueue.guard.store.RedisStore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The sequences of the shared table, over every store and in both modes. */
class ConformanceTest {
  private static final JsonNode MANIFEST =
      SharedCases.read("conformance/manifest.json").get("idempotency");

  private static final class Thrown extends Exception {
    private static final long serialVersionUID = 1L;
  }

  @TestFactory
  Stream<DynamicTest> memory() {
    return Stream.concat(
        sequences("plain", () -> Guard.plain(new MemoryStore())),
        sequences("claiming", () -> Guard.claiming(new MemoryStore())));
  }

  @TestFactory
  Stream<DynamicTest> redis() {
    var server = RedisServer.shared();
    var consumers = new AtomicInteger();
    Supplier<RedisStore> empty =
        () -> RedisStore.builder(server.uri()).consumer("c" + consumers.incrementAndGet()).build();
    return Stream.concat(
        sequences("plain", () -> Guard.plain(empty.get())),
        sequences("claiming", () -> Guard.claiming(empty.get())));
  }

  private static Stream<DynamicTest> sequences(String mode, Supplier<Guard> guards) {
    return MANIFEST
        .get("sequences")
        .get("cases")
        .valueStream()
        .map(
            sequence ->
                dynamicTest(
                    mode + ": " + sequence.get("name").asText(),
                    () -> {
                      try (Guard guard = guards.get()) {
                        run(sequence, guard);
                      }
                    }));
  }

  private static void run(JsonNode sequence, Guard guard) {
    var effects = new AtomicInteger();
    for (JsonNode delivery : sequence.get("deliveries")) {
      String id = delivery.path("meta_id").asText();
      if (delivery.path("forget_before").asBoolean()) {
        guard.forget(id);
      }
      String decision;
      try {
        Result result =
            guard.process(
                SharedCases.envelope(id),
                context -> {
                  effects.incrementAndGet();
                  if (delivery.path("outcome").asText().equals("throw")) {
                    throw new Thrown();
                  }
                });
        decision = result instanceof Result.Ran ? "run" : "skip";
        assertTrue(result.acknowledge());
      } catch (Thrown thrown) {
        decision = "run";
      }
      assertEquals(delivery.get("expect_effect").asText(), decision, delivery::toString);
    }
    assertEquals(sequence.get("expected_effects").asInt(), effects.get());
  }

  @Test
  void theKeyIsTheIdOfTheEnvelope() {
    JsonNode key = MANIFEST.get("dedup_key");
    byte[] envelope = SharedCases.bytes("conformance/" + key.get("envelope_file").asText());
    try (Guard guard = Guard.plain(new MemoryStore())) {
      var ran = (Result.Ran) guard.process(envelope, context -> {});
      assertEquals(key.get("expected_key").asText(), ran.id().orElseThrow());
    }
  }
}
