package io.github.babelqueue.guard.store;

import java.util.Iterator;
import java.util.LinkedHashMap;

/**
 * Values that expire, all after the same time, so that they lie in the order in which they do. Each
 * insertion drops those at the head that have expired; nothing is ever scanned.
 */
final class ExpiringMap<V> {
  private record Entry<V>(V value, long expiresAt) {}

  private final LinkedHashMap<String, Entry<V>> entries = new LinkedHashMap<>();
  private final long lifeMillis;
  private final int maxEntries;

  /**
   * Makes an empty one.
   *
   * @param lifeMillis how long a value lasts; {@link Long#MAX_VALUE} for ever
   * @param maxEntries beyond how many the oldest is dropped, though it has not expired
   */
  ExpiringMap(long lifeMillis, int maxEntries) {
    this.lifeMillis = lifeMillis;
    this.maxEntries = maxEntries;
  }

  V get(String key, long now) {
    Entry<V> entry = entries.get(key);
    return entry == null || entry.expiresAt <= now ? null : entry.value;
  }

  /** How long the value of a key that has one still lasts. */
  long leftMillis(String key, long now) {
    return entries.get(key).expiresAt - now;
  }

  /** Puts a value, in the place of any that is there, for its whole life. */
  void put(String key, V value, long now) {
    entries.remove(key);
    long expiresAt = lifeMillis > Long.MAX_VALUE - now ? Long.MAX_VALUE : now + lifeMillis;
    entries.put(key, new Entry<>(value, expiresAt));
    dropOldest(now);
  }

  private void dropOldest(long now) {
    Iterator<Entry<V>> oldest = entries.values().iterator();
    while (oldest.hasNext()) {
      if (oldest.next().expiresAt > now && entries.size() <= maxEntries) {
        return;
      }
      oldest.remove();
    }
  }

  void remove(String key) {
    entries.remove(key);
  }

  int size() {
    return entries.size();
  }
}
