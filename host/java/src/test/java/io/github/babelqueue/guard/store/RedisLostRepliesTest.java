package io.github.babelqueue.guard.store;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.Hold;
import io.github.babelqueue.guard.Result;
import io.github.babelqueue.guard.StoreUnavailableException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;

/** Commands that a real server has carried out, though nobody heard of it. */
@Timeout(120)
class RedisLostRepliesTest {
  private static final String TOKEN = "0123456789abcdef0123456789abcdef";

  @Test
  void aClaimWhoseReplyIsLostIsStillOurs() {
    try (var server = RedisServer.start();
        var proxy = new Proxy(server.port());
        var store = RedisStore.builder(proxy.uri()).build();
        Jedis raw = server.client()) {
      store.seen("A");
      proxy.loseReplyTo("bq:lease:A", 1);
      var won = (ClaimOutcome.Won) store.claim("A");
      assertEquals(won.token(), raw.get("bq:lease:A"));
    }
  }

  @Test
  void aClaimThatStaysUnknownIsGivenBackAndUnavailable() {
    try (var server = RedisServer.start();
        var proxy = new Proxy(server.port());
        var store = RedisStore.builder(proxy.uri()).build();
        Jedis raw = server.client()) {
      store.seen("A");
      proxy.loseReplyTo("bq:lease:A", 2);
      assertThrows(StoreUnavailableException.class, () -> store.claim("A"));
      assertFalse(raw.exists("bq:lease:A"));
      assertInstanceOf(ClaimOutcome.Won.class, store.claim("A"));
    }
  }

  @Test
  void aStepWhoseReplyIsLostIsNotSentAgain() {
    try (var server = RedisServer.start();
        var proxy = new Proxy(server.port());
        var store = RedisStore.builder(proxy.uri()).build();
        Jedis raw = server.client()) {
      store.seen("A");
      proxy.loseReplyTo("bq:once", 1);
      assertThrows(StoreUnavailableException.class, () -> store.setOnce("A", "s"));
      assertTrue(raw.info("commandstats").contains("cmdstat_set:calls=1,"));
      assertFalse(store.setOnce("A", "s"));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMarkWhoseReplyIsLostIsSet(boolean claiming) {
    try (var server = RedisServer.start();
        var proxy = new Proxy(server.port());
        var store = RedisStore.builder(proxy.uri()).build();
        Guard guard = claiming ? Guard.claiming(store) : Guard.plain(store);
        Jedis raw = server.client()) {
      store.seen("A");
      var ran =
          (Result.Ran) guard.process(envelope("A"), context -> proxy.loseReplyTo("bq:idemp:A", 1));
      assertTrue(ran.marked());
      assertTrue(raw.exists("bq:idemp:A"));
      assertFalse(raw.exists("bq:lease:A"));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anInterruptInAVirtualThreadDoesNotLoseTheMark(boolean claiming) throws Exception {
    // There, an interrupt closes the socket that the thread waits on.
    assumeTrue(Runtime.version().feature() >= 21, "virtual threads need Java 21");
    var workers =
        (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    try (var server = RedisServer.start();
        var store = RedisStore.builder(server.uri()).build();
        Guard guard = claiming ? Guard.claiming(store) : Guard.plain(store)) {
      for (int i = 0; i < 20; i++) {
        String id = "A" + i;
        Result result =
            workers
                .submit(
                    () ->
                        guard.process(envelope(id), context -> Thread.currentThread().interrupt()))
                .get();
        assertTrue(((Result.Ran) result).marked());
        assertTrue(store.seen(id));
        assertEquals(Hold.LOST, store.release(id, TOKEN));
      }
    } finally {
      workers.shutdown();
    }
  }
}
