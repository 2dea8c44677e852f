package io.github.babelqueue.guard.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Hold;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Marks, leases and steps under a clock that the test sets. */
class MemoryStoreTest {
  private final AtomicLong now = new AtomicLong();
  private final MemoryStore store =
      new MemoryStore(Duration.ofMillis(1000), Duration.ofMillis(100), 3, now::get);

  private String won(String id) {
    return ((ClaimOutcome.Won) store.claim(id)).token();
  }

  @Test
  void aMarkLastsForItsRetention() {
    store.remember("A");
    now.set(999);
    assertTrue(store.seen("A"));
    now.set(1000);
    assertFalse(store.seen("A"));
  }

  @Test
  void rememberingAgainStartsTheRetentionAgain() {
    store.remember("A");
    now.set(900);
    store.remember("A");
    now.set(1899);
    assertTrue(store.seen("A"));
  }

  @Test
  void theMarkThatWasSetFirstGoesFirst() {
    for (String id : new String[] {"A", "B", "C", "A", "D"}) {
      store.remember(id);
    }
    assertFalse(store.seen("B"));
    assertTrue(store.seen("A") && store.seen("C") && store.seen("D"));
  }

  @Test
  void idsAreKeptApartAsTheyAre() {
    store.remember("caf\u00e9");
    assertFalse(store.seen("cafe\u0301"));
    assertFalse(store.seen("CAF\u00c9"));
    assertFalse(store.seen("caf\u00e9 "));
  }

  @Test
  void aLeaseLapsesUnlessItIsRenewed() {
    String token = won("A");
    now.set(60);
    assertEquals(new ClaimOutcome.Busy(40), store.claim("A"));
    assertEquals(Hold.HELD, store.renew("A", token));
    now.set(159);
    assertEquals(new ClaimOutcome.Busy(1), store.claim("A"));
    now.set(160);
    assertEquals(Hold.LOST, store.renew("A", token));
    String other = won("A");
    assertEquals(Hold.LOST, store.release("A", token));
    assertEquals(Hold.HELD, store.release("A", other));
    assertEquals(Hold.LOST, store.release("A", other));
  }

  @Test
  void completingMarksWhoeverHoldsTheLease() {
    String late = won("A");
    now.set(100);
    String other = won("A");
    assertEquals(Hold.LOST, store.complete("A", late));
    assertTrue(store.seen("A"));
    assertInstanceOf(ClaimOutcome.Done.class, store.claim("A"));
    assertEquals(Hold.HELD, store.renew("A", other), "the other's lease was not touched");
    now.set(1099);
    assertTrue(store.seen("A"), "a mark has its own retention");
  }

  @Test
  void forgettingLeavesALeaseAlone() {
    String token = won("A");
    store.forget("A");
    assertInstanceOf(ClaimOutcome.Busy.class, store.claim("A"));
    assertEquals(Hold.HELD, store.complete("A", token));
    store.forget("A");
    assertFalse(store.seen("A"));
  }

  @Test
  void aStepIsSetOnceForEachIdAndName() {
    assertTrue(store.setOnce("A", "s"));
    assertFalse(store.setOnce("A", "s"));
    assertTrue(store.setOnce("A", "t"));
    assertTrue(store.setOnce("B", "s"));
    store.remember("A");
    store.forget("A");
    assertFalse(store.setOnce("A", "s"), "it is not taken back");
    now.set(1000);
    assertTrue(store.setOnce("A", "s"));
  }

  @Test
  void nothingIsKeptBeyondItsTime() {
    var map = new ExpiringMap<String>(10, 1000);
    for (int i = 0; i < 10_000; i++) {
      map.put("k" + i, "v", i);
      assertTrue(map.size() <= 10);
    }
    map = new ExpiringMap<>(Long.MAX_VALUE, 7);
    for (int i = 0; i < 100; i++) {
      map.put("k" + i, "v", i);
      assertTrue(map.size() <= 7);
    }
  }

  static Stream<Duration> badDurations() {
    return Stream.of(
        Duration.ZERO,
        Duration.ofMillis(-1),
        Duration.ofNanos(500_000),
        Duration.ofMillis(1).plusNanos(1),
        Duration.ofSeconds(Long.MAX_VALUE),
        Duration.ofMillis(Long.MAX_VALUE));
  }

  @ParameterizedTest
  @MethodSource("badDurations")
  void aDurationThatIsNoneIsRefusedByName(Duration bad) {
    Duration good = Duration.ofSeconds(1);
    URI uri = URI.create("redis://127.0.0.1:1");
    refused("retention", () -> new MemoryStore(bad, good, 1));
    refused("lease", () -> new MemoryStore(good, bad, 1));
    refused("retention", () -> RedisStore.builder(uri).retention(bad).build());
    refused("lease", () -> RedisStore.builder(uri).lease(bad).build());
  }

  @Test
  void otherSettingsAreRefusedByNameToo() {
    Duration good = Duration.ofSeconds(1);
    URI uri = URI.create("redis://127.0.0.1:1");
    refused("maxMarks", () -> new MemoryStore(good, good, 0));
    refused("lease", () -> new MemoryStore(good, null, 1));
    for (String name : new String[] {"", "A", "a-b", "a:b", "a".repeat(25), "é", "a\n"}) {
      refused("consumer", () -> RedisStore.builder(uri).consumer(name).build());
    }
    refused("prefix", () -> RedisStore.builder(uri).prefix(null).build());
    refused("uri", () -> RedisStore.builder(URI.create("http://127.0.0.1:1")).build());
    refused("uri", () -> RedisStore.builder(URI.create("redis:nowhere")).build());
  }

  private static void refused(String setting, Runnable construction) {
    var thrown = assertThrows(IllegalArgumentException.class, construction::run);
    assertTrue(thrown.getMessage().contains(setting), thrown::getMessage);
  }
}
