package io.github.babelqueue.guard.store;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Claims;
import io.github.babelqueue.guard.GuardException;
import io.github.babelqueue.guard.Hold;
import io.github.babelqueue.guard.Marker;
import io.github.babelqueue.guard.Store;
import io.github.babelqueue.guard.StoreRejectedException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

/**
 * Marks, leases and steps in Redis 6.2 or later, or any Valkey, over Jedis.
 *
 * <p>The keys are those of every other language (contract, section 8). An expired mark is absent;
 * so is one that the server has evicted, which is why its {@code maxmemory-policy} should be {@code
 * noeviction}.
 *
 * <p>A command that may be repeated is sent once more when its connection turns out to be broken,
 * though not after a timeout. A claim whose reply is lost is sent once more with the same token; a
 * step never is.
 */
public final class RedisStore implements Store, Claims, Marker, AutoCloseable {
  private static final byte[] MARKED = {'1'};
  private static final byte[] RENEW = script("renew.lua");
  private static final byte[] RELEASE = script("release.lua");

  private final RedisConnections connections;
  private final UnifiedJedis client;
  private final RedisKeys keys;

  /** Null for ever. */
  private final Long retentionMillis;

  private final long leaseMillis;

  private RedisStore(Builder builder) {
    keys = new RedisKeys(builder.prefix, builder.consumer);
    retentionMillis =
        builder.retention == null ? null : Durations.millis("retention", builder.retention);
    leaseMillis = Durations.millis("lease", builder.lease);
    connections =
        builder.client == null
            ? RedisConnections.open(builder.uri)
            : RedisConnections.over(builder.client);
    client = connections.client();
  }

  /**
   * A store with a client of its own, which connects when it is first needed: in 2 seconds at most,
   * and with 5 seconds for an answer.
   *
   * @param uri {@code redis://user:password@host:port/database}, or {@code rediss:} for TLS
   * @return the store's settings
   */
  public static Builder builder(URI uri) {
    return new Builder(Objects.requireNonNull(uri, "uri"), null);
  }

  /**
   * A store over a client that is there already: a {@code RedisClient}, {@code RedisClusterClient}
   * or any other that is safe for threads and caches no replies. Its timeouts are its own; the
   * store does not close it.
   *
   * @param client the client
   * @return the store's settings
   */
  public static Builder builder(UnifiedJedis client) {
    return new Builder(null, Objects.requireNonNull(client, "client"));
  }

  /** The settings of a {@link RedisStore}. */
  public static final class Builder {
    private final URI uri;
    private final UnifiedJedis client;
    private String prefix = "bq:";
    private String consumer;
    private Duration retention = Durations.DEFAULT_RETENTION;
    private Duration lease = Durations.DEFAULT_LEASE;

    private Builder(URI uri, UnifiedJedis client) {
      this.uri = uri;
      this.client = client;
    }

    /**
     * What all keys begin with; {@code bq:} unless set.
     *
     * @param prefix the prefix
     * @return this
     */
    public Builder prefix(String prefix) {
      this.prefix = prefix;
      return this;
    }

    /**
     * The consumer's name. Two different consumers of one message need two names, or the mark of
     * the first makes the second skip.
     *
     * @param consumer 1 to 24 of {@code a-z}, {@code 0-9} and {@code _}
     * @return this
     */
    public Builder consumer(String consumer) {
      this.consumer = Objects.requireNonNull(consumer, "consumer");
      return this;
    }

    /**
     * How long marks are kept; 14 days unless set.
     *
     * @param retention whole milliseconds, more than zero
     * @return this
     */
    public Builder retention(Duration retention) {
      this.retention = Objects.requireNonNull(retention, "retention");
      return this;
    }

    /**
     * Keeps marks for ever. Steps, which need a retention, are then rejected.
     *
     * @return this
     */
    public Builder retainForever() {
      this.retention = null;
      return this;
    }

    /**
     * How long a lease lasts from its claim or last renewal; 60 seconds unless set.
     *
     * @param lease whole milliseconds, more than zero
     * @return this
     */
    public Builder lease(Duration lease) {
      this.lease = lease;
      return this;
    }

    /**
     * Makes the store. Nothing is sent yet.
     *
     * @return the store
     * @throws IllegalArgumentException naming the setting that is not as it should be
     */
    public RedisStore build() {
      return new RedisStore(this);
    }
  }

  /** Closes the client, unless it was given. */
  @Override
  public void close() {
    connections.close();
  }

  // ---- marks ------------------------------------------------------------------------------------

  @Override
  public boolean seen(String id) {
    byte[] mark = keys.mark(id);
    // Not EXISTS, which would take a value of any other type for a mark.
    return connections.repeatable("GET", mark, () -> client.get(mark)) != null;
  }

  @Override
  public void remember(String id) {
    byte[] mark = keys.mark(id);
    // With GET, the server refuses to overwrite a value of another type.
    connections.repeatable("SET", mark, () -> client.setGet(mark, MARKED, withRetention()));
  }

  @Override
  public void forget(String id) {
    byte[] mark = keys.mark(id);
    connections.repeatable("GETDEL", mark, () -> client.getDel(mark));
  }

  private SetParams withRetention() {
    SetParams parameters = new SetParams();
    return retentionMillis == null ? parameters : parameters.px(retentionMillis);
  }

  // ---- leases -----------------------------------------------------------------------------------

  @Override
  public ClaimOutcome claim(String id) {
    String token = Tokens.next();
    try {
      return claim(id, token);
    } catch (JedisConnectionException lost) {
      // It may have been carried out. An interrupt must not keep us from finding out.
      boolean interrupted = Thread.interrupted();
      try {
        return claim(id, token);
      } catch (JedisConnectionException unknown) {
        releaseQuietly(id, token);
        throw RedisErrors.classify("claim", keys.lease(id), unknown);
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  /** Lets only a {@link JedisConnectionException} through as it is. */
  private ClaimOutcome claim(String id, String token) {
    byte[] lease = keys.lease(id);
    byte[] mark = keys.mark(id);
    byte[] owner = ascii(token);
    try {
      return connections.pipelined(
          lease,
          pipeline -> {
            // The lease is tried first and the mark looked for second, so that no mark set between
            // the two is overlooked.
            Response<String> taken =
                pipeline.set(lease, owner, new SetParams().nx().px(leaseMillis));
            Response<byte[]> holder = pipeline.get(lease);
            Response<Long> left = pipeline.pttl(lease);
            Response<byte[]> marked = pipeline.get(mark);
            return () -> {
              boolean won = "OK".equals(taken.get()) || Arrays.equals(owner, holder.get());
              if (marked.get() != null) {
                if (won) {
                  releaseQuietly(id, token);
                }
                return new ClaimOutcome.Done();
              }
              return won
                  ? new ClaimOutcome.Won(token, leaseMillis)
                  : new ClaimOutcome.Busy(Math.max(1, left.get()));
            };
          });
    } catch (JedisConnectionException lost) {
      throw lost;
    } catch (RuntimeException failure) {
      releaseQuietly(id, token);
      throw RedisErrors.classify("claim", lease, failure);
    }
  }

  @Override
  public Hold renew(String id, String token) {
    byte[] lease = keys.lease(id);
    byte[] length = ascii(Long.toString(leaseMillis));
    return hold(
        connections.repeatable(
            "renew", lease, () -> client.eval(RENEW, 1, lease, ascii(token), length)));
  }

  @Override
  public Hold complete(String id, String token) {
    byte[] lease = keys.lease(id);
    byte[] mark = keys.mark(id);
    return connections.repeatable(
        "complete",
        mark,
        () ->
            connections.pipelined(
                mark,
                pipeline -> {
                  Response<byte[]> marked = pipeline.setGet(mark, MARKED, withRetention());
                  Response<Object> dropped = pipeline.eval(RELEASE, 1, lease, ascii(token));
                  return () -> {
                    marked.get();
                    try {
                      return hold(dropped.get());
                    } catch (JedisDataException undropped) {
                      // The mark counts; the lease ends by itself.
                      return Hold.HELD;
                    }
                  };
                }));
  }

  @Override
  public Hold release(String id, String token) {
    byte[] lease = keys.lease(id);
    return hold(
        connections.repeatable(
            "release", lease, () -> client.eval(RELEASE, 1, lease, ascii(token))));
  }

  private void releaseQuietly(String id, String token) {
    try {
      release(id, token);
    } catch (GuardException endsByItself) {
      // Nobody can do more about it than wait.
    }
  }

  private static Hold hold(Object changed) {
    return Long.valueOf(1).equals(changed) ? Hold.HELD : Hold.LOST;
  }

  // ---- steps ------------------------------------------------------------------------------------

  @Override
  public boolean setOnce(String id, String step) {
    if (retentionMillis == null) {
      throw new StoreRejectedException(
          "Redis: steps need a retention, and this store retains for ever");
    }
    byte[] key = keys.step(id, step);
    try {
      // Of a pipeline nothing is repeated by the client either, not even on a cluster.
      String set =
          connections.pipelined(
              key, pipeline -> pipeline.set(key, MARKED, withRetention().nx())::get);
      if (set != null) {
        return true;
      }
    } catch (RuntimeException failure) {
      throw RedisErrors.classify("SET", key, failure);
    }
    // Something of another type is no mark of ours.
    connections.repeatable("GET", key, () -> client.get(key));
    return false;
  }

  // ---- bytes ------------------------------------------------------------------------------------

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static byte[] script(String name) {
    try (InputStream file = RedisStore.class.getResourceAsStream("/babelqueue-guard/" + name)) {
      return file.readAllBytes();
    } catch (IOException broken) {
      throw new UncheckedIOException(broken);
    }
  }
}
