package io.github.babelqueue.guard.store;

import io.github.babelqueue.guard.StoreRejectedException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** The keys that every language's stores share (contract, section 8). */
final class RedisKeys {
  private static final Pattern NAME = Pattern.compile("[a-z0-9_]{1,24}");

  private final String marks;
  private final String leases;
  private final String steps;

  /**
   * Chooses the keys of one consumer.
   *
   * @param consumer its name, or null for the keys without one
   */
  RedisKeys(String prefix, String consumer) {
    if (prefix == null) {
      throw new IllegalArgumentException("prefix must not be null");
    }
    if (consumer != null && !NAME.matcher(consumer).matches()) {
      throw new IllegalArgumentException("consumer must be 1 to 24 of a-z, 0-9 and _: " + consumer);
    }
    String end = consumer == null ? ":" : "@" + consumer + ":";
    marks = prefix + "idemp" + end;
    leases = prefix + "lease" + end;
    steps = prefix + "once" + end;
  }

  byte[] mark(String id) {
    return bytes(marks + id);
  }

  byte[] lease(String id) {
    return bytes(leases + id);
  }

  byte[] step(String id, String step) {
    return bytes(steps + step + ":" + id);
  }

  /** Never with a replacement character: two ids must not become one key. */
  private static byte[] bytes(String key) {
    try {
      ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(key));
      byte[] bytes = new byte[encoded.remaining()];
      encoded.get(bytes);
      return bytes;
    } catch (CharacterCodingException illFormed) {
      throw new StoreRejectedException("Redis: an id with an unpaired surrogate makes no key");
    }
  }
}
