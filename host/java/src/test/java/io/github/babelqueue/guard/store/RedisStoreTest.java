package io.github.babelqueue.guard.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Hold;
import io.github.babelqueue.guard.StoreRejectedException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

/** What the store writes and reads, seen by another client of a real server. */
@Timeout(60)
class RedisStoreTest {
  private RedisServer server;
  private Jedis raw;
  private RedisStore store;

  @BeforeEach
  void open() {
    server = RedisServer.shared();
    raw = server.client();
    raw.flushAll();
    store = RedisStore.builder(server.uri()).build();
  }

  @AfterEach
  void close() {
    if (store != null) {
      store.close();
      raw.close();
    }
  }

  private static void assertAbout(long millis, long left) {
    assertTrue(left > millis - 5_000 && left <= millis, left + " of " + millis);
  }

  @Test
  void aMarkIsWhatEveryLanguageWrites() {
    store.remember("A");
    assertEquals("1", raw.get("bq:idemp:A"));
    assertAbout(14L * 24 * 3600 * 1000, raw.pttl("bq:idemp:A"));
    assertTrue(store.seen("A"));
    store.forget("A");
    assertFalse(raw.exists("bq:idemp:A"));
    assertFalse(store.seen("A"));
  }

  @Test
  void aMarkOfAnotherClientCounts() {
    raw.set("bq:idemp:A", "1", new SetParams().px(1000));
    raw.set("bq:idemp:B", "");
    assertTrue(store.seen("A") && store.seen("B"));
    assertInstanceOf(ClaimOutcome.Done.class, store.claim("A"));
    assertFalse(raw.exists("bq:lease:A"));
  }

  @Test
  void rememberingAgainStartsTheRetentionAgain() {
    raw.set("bq:idemp:A", "1", new SetParams().px(1000));
    store.remember("A");
    assertAbout(14L * 24 * 3600 * 1000, raw.pttl("bq:idemp:A"));
  }

  @Test
  void settingsChooseKeysAndTimes() {
    try (var other =
        RedisStore.builder(server.uri())
            .prefix("shop:")
            .consumer("mail_2")
            .retention(Duration.ofHours(1))
            .lease(Duration.ofMillis(1500))
            .build()) {
      other.remember("A");
      assertAbout(3_600_000, raw.pttl("shop:idemp@mail_2:A"));
      String token = ((ClaimOutcome.Won) other.claim("B")).token();
      assertEquals(token, raw.get("shop:lease@mail_2:B"));
      assertAbout(1500, raw.pttl("shop:lease@mail_2:B"));
      other.setOnce("B", "count");
      assertAbout(3_600_000, raw.pttl("shop:once@mail_2:count:B"));
      assertFalse(store.seen("A"));
      assertInstanceOf(ClaimOutcome.Won.class, store.claim("B"));
    }
  }

  @Test
  void marksCanBeKeptForEver() {
    try (var forever = RedisStore.builder(server.uri()).retainForever().build()) {
      raw.set("bq:idemp:A", "1", new SetParams().px(1000));
      forever.remember("A");
      assertEquals(-1, raw.pttl("bq:idemp:A"));
      String token = ((ClaimOutcome.Won) forever.claim("B")).token();
      forever.complete("B", token);
      assertEquals(-1, raw.pttl("bq:idemp:B"));
      assertThrows(StoreRejectedException.class, () -> forever.setOnce("A", "s"));
    }
  }

  @Test
  void aLeaseIsHeldRenewedCompletedAndReleasedByItsOwner() {
    var won = (ClaimOutcome.Won) store.claim("A");
    assertEquals(60_000, won.lengthMillis());
    assertTrue(won.token().matches("[0-9a-f]{32}"));
    assertEquals(won.token(), raw.get("bq:lease:A"));
    assertAbout(60_000, raw.pttl("bq:lease:A"));
    assertFalse(store.seen("A"));
    raw.pexpire("bq:lease:A", 1000);
    var busy = (ClaimOutcome.Busy) store.claim("A");
    assertTrue(busy.leftMillis() >= 1 && busy.leftMillis() <= 1000);
    assertEquals(Hold.LOST, store.renew("A", "another"));
    assertTrue(raw.pttl("bq:lease:A") <= 1000);
    assertEquals(Hold.HELD, store.renew("A", won.token()));
    assertAbout(60_000, raw.pttl("bq:lease:A"));
    store.forget("A");
    assertEquals(Hold.LOST, store.release("A", "another"));
    assertTrue(raw.exists("bq:lease:A"), "neither touches another's lease");
    assertEquals(Hold.HELD, store.complete("A", won.token()));
    assertFalse(raw.exists("bq:lease:A"));
    assertAbout(14L * 24 * 3600 * 1000, raw.pttl("bq:idemp:A"));
    assertInstanceOf(ClaimOutcome.Done.class, store.claim("A"));
    assertFalse(raw.exists("bq:lease:A"));
    String token = ((ClaimOutcome.Won) store.claim("B")).token();
    assertNotEquals(won.token(), token);
    assertEquals(Hold.HELD, store.release("B", token));
    assertFalse(raw.exists("bq:lease:B"));
  }

  @Test
  void aLateFinishMarksAndLeavesTheOtherLeaseAlone() {
    String late = ((ClaimOutcome.Won) store.claim("A")).token();
    raw.del("bq:lease:A");
    assertEquals(Hold.LOST, store.renew("A", late));
    assertFalse(raw.exists("bq:lease:A"), "a lapsed lease is not revived");
    String other = ((ClaimOutcome.Won) store.claim("A")).token();
    assertEquals(Hold.LOST, store.complete("A", late));
    assertEquals("1", raw.get("bq:idemp:A"));
    assertEquals(other, raw.get("bq:lease:A"));
  }

  @Test
  void aLeaseLapsesByTheServersClock() throws InterruptedException {
    try (var brief = RedisStore.builder(server.uri()).lease(Duration.ofMillis(100)).build()) {
      brief.claim("A");
      assertInstanceOf(ClaimOutcome.Busy.class, brief.claim("A"));
      Thread.sleep(150);
      assertInstanceOf(ClaimOutcome.Won.class, brief.claim("A"));
    }
  }

  @Test
  void ofManyClaimsOneWins() throws Exception {
    int threads = 16;
    ExecutorService workers = Executors.newFixedThreadPool(threads);
    try {
      for (int round = 0; round < 50; round++) {
        String id = "A" + round;
        var start = new CountDownLatch(1);
        List<Future<ClaimOutcome>> claims = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
          claims.add(
              workers.submit(
                  () -> {
                    start.await();
                    return store.claim(id);
                  }));
        }
        start.countDown();
        int won = 0;
        for (Future<ClaimOutcome> claim : claims) {
          won += claim.get() instanceof ClaimOutcome.Won ? 1 : 0;
        }
        assertEquals(1, won);
      }
    } finally {
      workers.shutdownNow();
    }
  }

  @Test
  void aStepIsSetOnce() {
    assertTrue(store.setOnce("A", "count"));
    assertFalse(store.setOnce("A", "count"));
    assertTrue(store.setOnce("A", "other"));
    assertEquals("1", raw.get("bq:once:count:A"));
    assertAbout(14L * 24 * 3600 * 1000, raw.pttl("bq:once:count:A"));
  }

  @Test
  void aValueOfAnotherTypeIsRejectedNamedAndLeftAlone() {
    String token = ((ClaimOutcome.Won) store.claim("C")).token();
    for (String key : new String[] {"bq:idemp:A", "bq:lease:B", "bq:once:s:A", "bq:idemp:C"}) {
      raw.hset(key, "field", "value");
    }
    rejected("bq:idemp:A", () -> store.seen("A"));
    rejected("bq:idemp:A", () -> store.remember("A"));
    rejected("bq:idemp:A", () -> store.forget("A"));
    rejected("A", () -> store.claim("A"));
    assertFalse(raw.exists("bq:lease:A"), "what was won is given back");
    rejected("bq:lease:B", () -> store.claim("B"));
    rejected("bq:lease:B", () -> store.renew("B", "t"));
    rejected("bq:lease:B", () -> store.release("B", "t"));
    rejected("bq:once:s:A", () -> store.setOnce("A", "s"));
    rejected("bq:idemp:C", () -> store.complete("C", token));
    for (String key : new String[] {"bq:idemp:A", "bq:lease:B", "bq:once:s:A", "bq:idemp:C"}) {
      assertEquals("value", raw.hget(key, "field"));
    }
    assertEquals(Hold.HELD, store.complete("B", "t"), "the mark counts, whatever the lease is");
    assertEquals("1", raw.get("bq:idemp:B"));
  }

  private static void rejected(String key, Runnable call) {
    var thrown = assertThrows(StoreRejectedException.class, call::run);
    assertTrue(thrown.getMessage().contains(key), thrown::getMessage);
    assertTrue(thrown.getMessage().contains("WRONGTYPE"), thrown::getMessage);
  }

  @Test
  void idsGoIntoKeysByteForByte() {
    for (String id :
        new String[] {" ", "*", "a:b", "caf\u00e9", "cafe\u0301", "\ud83d\udce6", "\n"}) {
      store.remember(id);
      byte[] key = ("bq:idemp:" + id).getBytes(StandardCharsets.UTF_8);
      assertArrayEquals(new byte[] {'1'}, raw.get(key));
      assertTrue(store.seen(id));
    }
    assertEquals(7, raw.dbSize());
    assertThrows(StoreRejectedException.class, () -> store.seen("a\ud83d"));
    assertThrows(StoreRejectedException.class, () -> store.remember("\udce6"));
    assertEquals(7, raw.dbSize());
    assertNull(raw.get("bq:idemp:?"));
  }

  @Test
  void scriptsSurviveAFlush() {
    String token = ((ClaimOutcome.Won) store.claim("A")).token();
    raw.scriptFlush();
    assertEquals(Hold.HELD, store.renew("A", token));
    raw.scriptFlush();
    assertEquals(Hold.HELD, store.release("A", token));
  }

  @Test
  void theScriptsAreThoseOfEveryLanguage() throws Exception {
    for (String name : new String[] {"renew.lua", "release.lua"}) {
      assertArrayEquals(
          Files.readAllBytes(Path.of("../../stores/redis", name)),
          Files.readAllBytes(Path.of("src/main/resources/babelqueue-guard", name)));
    }
  }

  @Test
  void theCoreModulesAreThoseOfEveryLanguage() throws Exception {
    for (String name : new String[] {"plain.core.wasm", "claiming.core.wasm"}) {
      assertArrayEquals(
          Files.readAllBytes(Path.of("../../guest/artifacts", name)),
          Files.readAllBytes(Path.of("src/main/resources/babelqueue-guard", name)));
    }
  }
}
