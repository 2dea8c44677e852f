package io.github.babelqueue.guard.store;

import java.net.SocketTimeoutException;
import java.net.URI;
import java.time.Duration;
import java.util.function.Function;
import java.util.function.Supplier;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.util.JedisURIHelper;

/**
 * Sends commands over a client of Jedis, and sees to it that the next ones find a connection to a
 * server that can carry them out.
 */
final class RedisConnections implements AutoCloseable {
  private final UnifiedJedis client;
  private final boolean owned;

  private RedisConnections(UnifiedJedis client, boolean owned) {
    this.client = client;
    this.owned = owned;
  }

  static RedisConnections over(UnifiedJedis client) {
    if (client.getCache() != null) {
      throw new IllegalArgumentException(
          "client must not cache replies: it would answer for a mark that is gone, or not there yet");
    }
    return new RedisConnections(client, false);
  }

  static RedisConnections open(URI uri) {
    if (!JedisURIHelper.isValid(uri)
        || !JedisURIHelper.isRedisScheme(uri) && !JedisURIHelper.isRedisSSLScheme(uri)) {
      // Without the URI itself, which may hold a password.
      throw new IllegalArgumentException("uri must be redis://host:port/database, or rediss: one");
    }
    var pool = new ConnectionPoolConfig();
    pool.setMaxTotal(64);
    pool.setMaxIdle(64);
    pool.setMaxWait(Duration.ofSeconds(5));
    RedisClient client =
        RedisClient.builder()
            .hostAndPort(JedisURIHelper.getHostAndPort(uri))
            .clientConfig(
                DefaultJedisClientConfig.builder()
                    // Chosen rather than negotiated, for which the client would connect right here.
                    .protocol(RedisProtocol.RESP2)
                    .connectionTimeoutMillis(2_000)
                    .socketTimeoutMillis(5_000)
                    .user(JedisURIHelper.getUser(uri))
                    .password(JedisURIHelper.getPassword(uri))
                    .database(JedisURIHelper.getDBIndex(uri))
                    .sslOptions(JedisURIHelper.isRedisSSLScheme(uri) ? SslOptions.defaults() : null)
                    .build())
            .poolConfig(pool)
            .build();
    return new RedisConnections(client, true);
  }

  UnifiedJedis client() {
    return client;
  }

  @Override
  public void close() {
    if (owned) {
      client.close();
    }
  }

  /** Sends what does no harm when it is carried out twice. */
  <T> T repeatable(String command, byte[] key, Supplier<T> send) {
    try {
      try {
        return send.get();
      } catch (JedisConnectionException broken) {
        dropIdleConnections();
        if (RedisErrors.isCausedBy(broken, SocketTimeoutException.class)) {
          throw broken;
        }
        return send.get();
      }
    } catch (RuntimeException failure) {
      afterFailure(key, failure);
      throw RedisErrors.classify(command, key, failure);
    }
  }

  /** Sends commands in one round trip, and reads their replies when all are there. */
  <T> T pipelined(byte[] key, Function<AbstractPipeline, Supplier<T>> commands) {
    try {
      Supplier<T> replies;
      try (AbstractPipeline pipeline = client.pipelined()) {
        replies = commands.apply(pipeline);
        pipeline.sync();
      }
      return replies.get();
    } catch (RuntimeException failure) {
      afterFailure(key, failure);
      throw failure;
    }
  }

  private void afterFailure(byte[] key, RuntimeException failure) {
    if (failure instanceof JedisConnectionException || RedisErrors.isReply(failure, "READONLY")) {
      // The other connections lead to the same server, which is gone, or no longer the primary.
      dropIdleConnections();
    } else if (RedisErrors.isReply(failure, "MOVED")) {
      learnNewPlace(key);
    } else if (RedisErrors.isCausedBy(failure, InterruptedException.class)) {
      Thread.currentThread().interrupt();
    }
  }

  private void dropIdleConnections() {
    if (client instanceof RedisClient pooled) {
      pooled.getPool().clear();
    }
  }

  /** A cluster's client follows redirections only outside pipelines, and remembers them. */
  private void learnNewPlace(byte[] key) {
    try {
      client.exists(key);
    } catch (RuntimeException stillUnknown) {
      // The failure that is being reported says it already.
    }
  }
}
