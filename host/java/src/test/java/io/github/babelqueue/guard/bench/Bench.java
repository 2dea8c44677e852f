package io.github.babelqueue.guard.bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.SharedCases;
import io.github.babelqueue.guard.Store;
import io.github.babelqueue.guard.store.RedisStore;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.params.SetParams;

/**
 * What a delivery costs, next to the extraction by Jackson, and to the same commands sent bare.
 *
 * <p>Everything is measured in one run, in short slices that take turns; the least of a line's
 * slices counts. What else the machine does then weighs on all lines alike.
 */
public final class Bench {
  /** What is measured: one call of it is one delivery. */
  private interface Subject {
    void deliver() throws IOException;
  }

  /** A store that marks nothing more, so that one line always runs and another always skips. */
  private static final class MapStore implements Store {
    private final Map<String, Boolean> marks = new ConcurrentHashMap<>();

    @Override
    public boolean seen(String id) {
      return marks.containsKey(id);
    }

    @Override
    public void remember(String id) {}

    @Override
    public void forget(String id) {}
  }

  private static final String ID = "5f0c1d2e-3a4b-4c5d-8e6f-708192a3b4c5";
  private static final JsonFactory JACKSON = new JsonFactory();
  private static final int ROUNDS = Integer.getInteger("bench.rounds", 40);

  private Bench() {}

  /**
   * Prints a table.
   *
   * @param arguments the URI of a Redis; without it, what needs one is left out
   * @throws IOException never
   */
  public static void main(String[] arguments) throws IOException {
    System.out.printf("Java %s%n", Runtime.version());
    byte[] small = envelope(250);
    byte[] large = envelope(10_240);
    var fresh = new MapStore();
    var marked = new MapStore();
    marked.marks.put(ID, true);
    try (Guard guard = Guard.plain(fresh);
        Guard skipping = Guard.plain(marked)) {
      Map<String, Subject> subjects = new LinkedHashMap<>();
      subjects.put("250 B, Jackson and a look-up", () -> fresh.seen(jackson(small)));
      subjects.put("250 B, guard, skipped", () -> skipping.process(small, context -> {}));
      subjects.put("250 B, guard, run and marked", () -> guard.process(small, context -> {}));
      subjects.put("10 KB, Jackson and a look-up", () -> fresh.seen(jackson(large)));
      subjects.put("10 KB, guard, skipped", () -> skipping.process(large, context -> {}));
      subjects.put("10 KB, guard, run and marked", () -> guard.process(large, context -> {}));
      measure(subjects, 2_000);
    }
    if (arguments.length > 0) {
      redis(URI.create(arguments[0]), small);
    }
  }

  private static void redis(URI uri, byte[] body) throws IOException {
    byte[] mark = "bq:bench".getBytes(StandardCharsets.UTF_8);
    byte[] lease = "bq:bench-lease".getBytes(StandardCharsets.UTF_8);
    byte[] one = {'1'};
    SetParams retention = new SetParams().px(1_209_600_000);
    SetParams claim = new SetParams().nx().px(60_000);
    try (RedisClient client = RedisClient.create(uri);
        RedisStore store = RedisStore.builder(client).consumer("bench").build();
        Guard plain = Guard.plain(store);
        Guard claiming = Guard.claiming(store)) {
      Map<String, Subject> subjects = new LinkedHashMap<>();
      subjects.put(
          "Redis, a mark's three commands bare",
          () -> {
            client.get(mark);
            client.setGet(mark, one, retention);
            client.getDel(mark);
          });
      subjects.put("Redis, guard, plain, run and forgotten", () -> cycle(plain, body));
      subjects.put(
          "Redis, a claim's commands bare",
          () -> {
            try (AbstractPipeline pipeline = client.pipelined()) {
              pipeline.set(lease, one, claim);
              pipeline.get(lease);
              pipeline.pttl(lease);
              pipeline.get(mark);
            }
            try (AbstractPipeline pipeline = client.pipelined()) {
              pipeline.setGet(mark, one, retention);
              pipeline.eval("return redis.call('DEL', KEYS[1])", 1, "bq:bench-lease");
            }
            client.getDel(mark);
          });
      subjects.put("Redis, guard, claiming, run and forgotten", () -> cycle(claiming, body));
      measure(subjects, 100);
    }
  }

  private static void cycle(Guard guard, byte[] body) {
    guard.process(body, context -> {});
    guard.forget(ID);
  }

  private static void measure(Map<String, Subject> subjects, int slice) throws IOException {
    Map<String, Double> least = new LinkedHashMap<>();
    for (int round = 0; round < ROUNDS; round++) {
      for (var subject : subjects.entrySet()) {
        long start = System.nanoTime();
        for (int i = 0; i < slice; i++) {
          subject.getValue().deliver();
        }
        least.merge(subject.getKey(), (System.nanoTime() - start) / (double) slice, Math::min);
      }
    }
    double base = 0;
    for (var line : least.entrySet()) {
      // A line that does without the guard is what those after it are compared with.
      base = line.getKey().contains("guard") ? base : line.getValue();
      System.out.printf(
          "%-52s %8.2f µs  %5.2f%n", line.getKey(), line.getValue() / 1000, line.getValue() / base);
    }
  }

  private static byte[] envelope(int length) {
    String text = new String(SharedCases.envelope(ID), StandardCharsets.UTF_8);
    StringBuilder lines = new StringBuilder();
    for (int i = 0; text.length() + lines.length() + 60 < length; i++) {
      lines.append(",{\"line\":").append(i).append(",\"sku\":\"ACME-").append(i).append("\"}");
    }
    String padding =
        "\"lines\":[" + (lines.isEmpty() ? "" : lines.substring(1)) + "],\"pad\":\"\",";
    text = text.replace("\"data\":{", "\"data\":{" + padding);
    text =
        text.replace("\"pad\":\"", "\"pad\":\"" + "x".repeat(Math.max(0, length - text.length())));
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** The quickest that Java has: a streaming parser that stops at the id. */
  private static String jackson(byte[] body) throws IOException {
    try (JsonParser parser = JACKSON.createParser(body)) {
      parser.nextToken();
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        boolean meta = parser.currentName().equals("meta");
        parser.nextToken();
        if (!meta) {
          parser.skipChildren();
          continue;
        }
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          boolean id = parser.currentName().equals("id");
          parser.nextToken();
          if (id) {
            return parser.getText();
          }
          parser.skipChildren();
        }
      }
      throw new IOException("no id");
    }
  }
}
