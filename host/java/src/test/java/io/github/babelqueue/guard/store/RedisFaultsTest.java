package io.github.babelqueue.guard.store;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.GuardException;
import io.github.babelqueue.guard.Result;
import io.github.babelqueue.guard.StoreRejectedException;
import io.github.babelqueue.guard.StoreUnavailableException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisDataException;

/** A real server that stops, restarts, refuses, or whose replies are lost. */
@Timeout(120)
class RedisFaultsTest {
  private static final String TOKEN = "0123456789abcdef0123456789abcdef";

  /** Every question a store is asked. */
  private static Map<String, Runnable> calls(RedisStore store) {
    return Map.of(
        "seen", () -> store.seen("A"),
        "remember", () -> store.remember("A"),
        "forget", () -> store.forget("A"),
        "claim", () -> store.claim("A"),
        "renew", () -> store.renew("A", TOKEN),
        "complete", () -> store.complete("A", TOKEN),
        "release", () -> store.release("A", TOKEN),
        "setOnce", () -> store.setOnce("A", "s"));
  }

  private static void all(RedisStore store, Class<? extends GuardException> kind, String text) {
    calls(store)
        .forEach(
            (name, call) -> {
              var thrown = assertThrows(kind, call::run, name);
              assertTrue(thrown.getMessage().contains(text), name + ": " + thrown.getMessage());
            });
  }

  private static RedisClient impatient(URI uri) {
    var pool = new ConnectionPoolConfig();
    // Else the connection that was mended last would be the next, and the others never used.
    pool.setLifo(false);
    return RedisClient.builder()
        .poolConfig(pool)
        .hostAndPort(uri.getHost(), uri.getPort())
        .clientConfig(
            DefaultJedisClientConfig.builder()
                .connectionTimeoutMillis(200)
                .socketTimeoutMillis(200)
                .build())
        .build();
  }

  @Test
  void aServerThatIsNotThereIsUnavailableAndARestartMends() {
    try (var server = RedisServer.start();
        var store = RedisStore.builder(server.uri()).build();
        Guard guard = Guard.claiming(store)) {
      guard.process(envelope("before"), context -> {});
      server.kill();
      all(store, StoreUnavailableException.class, "Redis");
      var effects = new AtomicInteger();
      assertThrows(
          StoreUnavailableException.class,
          () -> guard.process(envelope("A"), context -> effects.incrementAndGet()));
      assertEquals(0, effects.get());
      server.restart();
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), context -> {}));
    }
  }

  @Test
  void connectionsThatARestartBrokeAreNotNoticed() {
    try (var server = RedisServer.start();
        var client = impatient(server.uri());
        var store = RedisStore.builder(client).build()) {
      for (Runnable call : calls(store).values()) {
        List<Connection> several = Stream.generate(client.getPool()::getResource).limit(4).toList();
        several.forEach(Connection::close);
        assertEquals(4, client.getPool().getNumIdle());
        server.restart();
        try {
          call.run();
        } catch (StoreUnavailableException step) {
          // A step alone is sent once.
          assertTrue(step.getMessage().contains("bq:once:s:A"), step::getMessage);
        }
      }
    }
  }

  @Test
  void aServerThatStopsAnsweringIsUnavailableInTime() {
    try (var server = RedisServer.start();
        var client = impatient(server.uri());
        var store = RedisStore.builder(client).build()) {
      store.remember("A");
      server.signal("STOP");
      try {
        all(store, StoreUnavailableException.class, "Redis");
      } finally {
        server.signal("CONT");
      }
      store.forget("A");
      assertFalse(store.seen("A"));
      assertInstanceOf(ClaimOutcome.class, store.claim("B"));
    }
  }

  @Test
  void aClientOfOurOwnHasTimeouts() {
    try (var server = RedisServer.start();
        var store = RedisStore.builder(server.uri()).build()) {
      store.remember("A");
      server.signal("STOP");
      try {
        assertThrows(StoreUnavailableException.class, () -> store.seen("A"));
      } finally {
        server.signal("CONT");
      }
    }
  }

  @Test
  void aMarkThatCannotBeSetIsInTheResult() {
    try (var server = RedisServer.start();
        var store = RedisStore.builder(server.uri()).build();
        Guard guard = Guard.plain(store)) {
      var ran = (Result.Ran) guard.process(envelope("A"), context -> server.kill());
      assertTrue(ran.acknowledge());
      assertFalse(ran.marked());
      assertInstanceOf(StoreUnavailableException.class, ran.markError().orElseThrow());
    }
  }

  // ---- refusals ---------------------------------------------------------------------------------

  @Test
  void withoutThePasswordItIsRejected() {
    try (var server = RedisServer.start("--requirepass", "secret")) {
      try (var store = RedisStore.builder(server.uri()).build()) {
        all(store, StoreRejectedException.class, "NOAUTH");
      }
      for (String credentials : new String[] {":wrong-one", "nobody:wrong-one"}) {
        URI uri = URI.create("redis://" + credentials + "@127.0.0.1:" + server.port());
        try (var store = RedisStore.builder(uri).build()) {
          all(store, StoreRejectedException.class, "WRONGPASS");
          var thrown = assertThrows(StoreRejectedException.class, () -> store.seen("A"));
          assertFalse(thrown.getMessage().contains("wrong-one"));
        }
      }
      URI uri = URI.create("redis://:secret@127.0.0.1:" + server.port());
      try (var store = RedisStore.builder(uri).build()) {
        assertFalse(store.seen("A"));
      }
    }
  }

  @Test
  void aUserWithoutPermissionIsRejected() {
    try (var server = RedisServer.start();
        Jedis raw = server.client()) {
      raw.aclSetUser("reader", "on", ">pw", "~bq:*", "+get");
      URI uri = URI.create("redis://reader:pw@127.0.0.1:" + server.port());
      try (var store = RedisStore.builder(uri).build()) {
        assertFalse(store.seen("A"));
        assertThrows(StoreRejectedException.class, () -> store.remember("A"));
        assertThrows(StoreRejectedException.class, () -> store.claim("A"));
        assertThrows(StoreRejectedException.class, () -> store.setOnce("A", "s"));
      }
      raw.aclSetUser(
          "user",
          "on",
          ">pw",
          "~bq:*",
          "+get",
          "+set",
          "+getdel",
          "+pttl",
          "+pexpire",
          "+del",
          "+eval");
      uri = URI.create("redis://user:pw@127.0.0.1:" + server.port());
      try (var store = RedisStore.builder(uri).build()) {
        calls(store).values().forEach(Runnable::run); // These are all that it needs.
      }
    }
  }

  @Test
  void aServerWithoutMemoryIsUnavailableForWrites() {
    try (var server = RedisServer.start();
        Jedis raw = server.client();
        var store = RedisStore.builder(server.uri()).build()) {
      String token = ((ClaimOutcome.Won) store.claim("B")).token();
      raw.configSet("maxmemory", "1");
      unavailable("OOM", () -> store.remember("A"));
      unavailable("OOM", () -> store.claim("A"));
      unavailable("OOM", () -> store.setOnce("A", "s"));
      unavailable("OOM", () -> store.complete("B", token));
      assertFalse(store.seen("A"));
      raw.configSet("maxmemory", "0");
      store.remember("A");
      assertTrue(store.seen("A"));
    }
  }

  @Test
  void aReadOnlyServerIsUnavailableForWritesAndItsConnectionsAreDropped() {
    try (var server = RedisServer.start();
        Jedis raw = server.client();
        var client = impatient(server.uri());
        var store = RedisStore.builder(client).build()) {
      store.remember("A");
      raw.replicaof("127.0.0.1", 1);
      raw.configSet("replica-serve-stale-data", "yes");
      assertTrue(store.seen("A"));
      for (Runnable write :
          List.<Runnable>of(
              () -> store.remember("B"),
              () -> store.claim("B"),
              () -> store.setOnce("B", "s"),
              () -> store.forget("A"),
              () -> store.complete("B", TOKEN))) {
        store.seen("A");
        assertEquals(1, client.getPool().getNumIdle());
        long dropped = client.getPool().getDestroyedCount();
        unavailable("READONLY", write);
        assertTrue(client.getPool().getDestroyedCount() > dropped);
      }
      raw.configSet("replica-serve-stale-data", "no");
      unavailable("MASTERDOWN", () -> store.seen("A"));
      raw.replicaofNoOne();
      store.remember("B");
    }
  }

  @Test
  void aFullServerIsUnavailable() {
    try (var server = RedisServer.start();
        Jedis only = server.client();
        var store = RedisStore.builder(server.uri()).build()) {
      assertEquals(1, only.clientList().lines().count(), "a store connects when it is needed");
      only.configSet("maxclients", "1");
      assertThrows(StoreUnavailableException.class, () -> store.seen("A"));
    }
  }

  @Test
  void aServerBusyWithAScriptIsUnavailable() throws Exception {
    try (var server = RedisServer.start("--busy-reply-threshold", "50");
        var store = RedisStore.builder(server.uri()).build();
        Jedis killer = server.client()) {
      store.seen("A");
      var workers = Executors.newSingleThreadExecutor();
      Future<?> script =
          workers.submit(
              () -> {
                try (Jedis endless = server.client()) {
                  endless.eval("while true do end");
                }
              });
      RedisServer.pause(300);
      unavailable("BUSY", () -> store.seen("A"));
      unavailable("BUSY", () -> store.claim("A"));
      killer.scriptKill();
      assertThrows(Exception.class, script::get);
      workers.shutdown();
      assertFalse(store.seen("A"));
    }
  }

  @Test
  void aLoadingServerIsUnavailable() {
    unavailable("LOADING", () -> classified("LOADING Redis is loading the dataset in memory"));
    for (String code :
        new String[] {
          "MOVED 1 127.0.0.1:1",
          "ASK 1 127.0.0.1:1",
          "CLUSTERDOWN x",
          "TRYAGAIN x",
          "NOREPLICAS x",
          "MISCONF x",
          "ERR max number of clients reached",
          "ERR Error running script (call to f_0): @user_script:2: -READONLY You can't write"
        }) {
      unavailable(code, () -> classified(code));
    }
    for (String code :
        new String[] {
          "NOAUTH x", "WRONGPASS x", "NOPERM x", "ERR unknown command", "CROSSSLOT x"
        }) {
      assertThrows(StoreRejectedException.class, () -> classified(code));
    }
  }

  @Test
  void aClientThatCachesRepliesIsRefused() {
    try (var server = RedisServer.start();
        var caching =
            RedisClient.builder()
                .hostAndPort("127.0.0.1", server.port())
                .clientConfig(DefaultJedisClientConfig.builder().resp3().build())
                .cacheConfig(CacheConfig.builder().build())
                .build()) {
      var store = RedisStore.builder(caching);
      var thrown = assertThrows(IllegalArgumentException.class, store::build);
      assertTrue(thrown.getMessage().contains("cache"));
    }
  }

  private static void classified(String reply) {
    throw RedisErrors.classify("GET", new byte[] {'k'}, new JedisDataException(reply));
  }

  private static void unavailable(String code, Runnable call) {
    var thrown = assertThrows(StoreUnavailableException.class, call::run);
    assertTrue(thrown.getMessage().contains(code), thrown::getMessage);
  }
}
