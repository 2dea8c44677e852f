package io.github.babelqueue.guard;

import static io.github.babelqueue.guard.SharedCases.read;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.babelqueue.guard.store.MemoryStore;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Every body and id of the shared table, in both worlds. */
class BodiesTest {
  private record Verdict(String id, String reason) {}

  private static Verdict verdict(boolean claiming, Delivery delivery) {
    var store = new MemoryStore();
    List<Verdict> seen = new ArrayList<>();
    try (Guard guard = claiming ? Guard.claiming(store) : Guard.plain(store)) {
      Handler<RuntimeException> handler =
          context ->
              seen.add(
                  new Verdict(
                      context.id().orElse(null),
                      context
                          .failOpen()
                          .map(why -> why.name().toLowerCase(Locale.ROOT))
                          .orElse(null)));
      var first = (Result.Ran) guard.process(delivery, handler);
      assertEquals(first.id().isPresent(), first.marked());
      Result second = guard.process(delivery, handler);
      assertEquals(first.id().isPresent(), second instanceof Result.Skipped);
      if (second instanceof Result.Skipped skipped) {
        assertEquals(first.id().get(), skipped.id());
      }
    }
    return seen.get(0);
  }

  private static void check(Delivery delivery, Verdict expected) {
    assertEquals(expected, verdict(false, delivery), "plain");
    assertEquals(expected, verdict(true, delivery), "claiming");
  }

  @TestFactory
  Stream<DynamicTest> bodies() {
    JsonNode table = read("bodies/manifest.json");
    assertNotEquals(0, table.size());
    return table
        .valueStream()
        .map(
            row ->
                dynamicTest(
                    row.get("file").asText(),
                    () -> {
                      byte[] body = SharedCases.bytes("bodies/" + row.get("file").asText());
                      Verdict expected = expected(row);
                      check(Delivery.of(body), expected);
                      String text = new String(body, StandardCharsets.UTF_8);
                      if (Arrays.equals(body, text.getBytes(StandardCharsets.UTF_8))) {
                        check(Delivery.of(text), expected);
                      }
                    }));
  }

  private static Verdict expected(JsonNode row) {
    return new Verdict(row.get("id").textValue(), row.get("reason").textValue());
  }

  @TestFactory
  Stream<DynamicTest> ids() {
    return read("ids.json")
        .valueStream()
        .map(
            row ->
                dynamicTest(
                    row.get("why").asText(),
                    () -> {
                      String id = row.get("id").textValue();
                      boolean usable = row.get("usable").asBoolean();
                      check(
                          Delivery.ofId(id),
                          usable ? new Verdict(id, null) : new Verdict(null, "unusable"));
                    }));
  }

  @TestFactory
  Stream<DynamicTest> illFormedText() {
    return read("ids-ill-formed.json")
        .valueStream()
        .map(
            row ->
                dynamicTest(
                    row.get("why").asText(),
                    () -> {
                      String text = utf16(row.get("utf16"));
                      Verdict unusable = new Verdict(null, "unusable");
                      check(Delivery.ofId(text), unusable);
                      check(Delivery.of("{\"meta\":{\"id\":\"" + text + "\"}}"), unusable);
                      // Elsewhere than in the id it does not matter.
                      check(
                          Delivery.of("{\"data\":\"" + text + "\",\"meta\":{\"id\":\"A\"}}"),
                          new Verdict("A", null));
                    }));
  }

  private static String utf16(JsonNode units) {
    var text = new StringBuilder();
    units.forEach(unit -> text.append((char) HexFormat.fromHexDigits(unit.asText())));
    return text.toString();
  }
}
