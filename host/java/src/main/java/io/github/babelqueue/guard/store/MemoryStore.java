package io.github.babelqueue.guard.store;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Claims;
import io.github.babelqueue.guard.Hold;
import io.github.babelqueue.guard.Marker;
import io.github.babelqueue.guard.Store;
import java.time.Duration;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Marks, leases and steps in this process alone: for tests, and for consumers that are one process.
 *
 * <p>It is bounded. A mark goes after its retention; beyond the maximum number of marks, the one
 * that was set first goes early, and a redelivery of its message runs again. Marks of steps are
 * counted apart, under the same maximum. Leases are bounded by the handlers that run. Its clock is
 * monotonic.
 */
public final class MemoryStore implements Store, Claims, Marker {
  /** How many marks are kept unless another maximum is set. */
  public static final int DEFAULT_MAX_MARKS = 1_000_000;

  private final ReentrantLock lock = new ReentrantLock();
  private final ExpiringMap<Boolean> marks;
  private final ExpiringMap<Boolean> steps;
  private final ExpiringMap<String> leases;
  private final long leaseMillis;
  private final LongSupplier clockMillis;

  /** A store with a retention of 14 days, leases of 60 seconds and 1,000,000 marks at most. */
  public MemoryStore() {
    this(Durations.DEFAULT_RETENTION, Durations.DEFAULT_LEASE, DEFAULT_MAX_MARKS);
  }

  /**
   * A store with settings of its own.
   *
   * @param retention how long a mark is kept, in whole milliseconds
   * @param lease how long a lease lasts, in whole milliseconds
   * @param maxMarks how many marks are kept at most
   * @throws IllegalArgumentException naming the setting that is no such duration or number
   */
  public MemoryStore(Duration retention, Duration lease, int maxMarks) {
    this(retention, lease, maxMarks, monotonicMillis());
  }

  MemoryStore(Duration retention, Duration lease, int maxMarks, LongSupplier clockMillis) {
    if (maxMarks < 1) {
      throw new IllegalArgumentException("maxMarks must be at least 1: " + maxMarks);
    }
    long retentionMillis = Durations.millis("retention", retention);
    leaseMillis = Durations.millis("lease", lease);
    marks = new ExpiringMap<>(retentionMillis, maxMarks);
    steps = new ExpiringMap<>(retentionMillis, maxMarks);
    leases = new ExpiringMap<>(leaseMillis, Integer.MAX_VALUE);
    this.clockMillis = clockMillis;
  }

  private static LongSupplier monotonicMillis() {
    long start = System.nanoTime();
    return () -> (System.nanoTime() - start) / 1_000_000;
  }

  @Override
  public boolean seen(String id) {
    return locked(() -> marks.get(id, now()) != null);
  }

  @Override
  public void remember(String id) {
    locked(
        () -> {
          marks.put(id, true, now());
          return null;
        });
  }

  @Override
  public void forget(String id) {
    locked(
        () -> {
          marks.remove(id);
          return null;
        });
  }

  @Override
  public ClaimOutcome claim(String id) {
    String token = Tokens.next();
    return locked(
        () -> {
          long now = now();
          if (marks.get(id, now) != null) {
            return new ClaimOutcome.Done();
          }
          if (leases.get(id, now) != null) {
            return new ClaimOutcome.Busy(leases.leftMillis(id, now));
          }
          leases.put(id, token, now);
          return new ClaimOutcome.Won(token, leaseMillis);
        });
  }

  @Override
  public Hold renew(String id, String token) {
    return locked(
        () -> {
          Hold hold = holdOf(id, token);
          if (hold == Hold.HELD) {
            leases.put(id, token, now());
          }
          return hold;
        });
  }

  @Override
  public Hold complete(String id, String token) {
    return locked(
        () -> {
          marks.put(id, true, now());
          return drop(id, token);
        });
  }

  @Override
  public Hold release(String id, String token) {
    return locked(() -> drop(id, token));
  }

  @Override
  public boolean setOnce(String id, String step) {
    // No step's name has a colon.
    String key = step + ":" + id;
    return locked(
        () -> {
          long now = now();
          if (steps.get(key, now) != null) {
            return false;
          }
          steps.put(key, true, now);
          return true;
        });
  }

  private Hold holdOf(String id, String token) {
    return token.equals(leases.get(id, now())) ? Hold.HELD : Hold.LOST;
  }

  private Hold drop(String id, String token) {
    Hold hold = holdOf(id, token);
    if (hold == Hold.HELD) {
      leases.remove(id);
    }
    return hold;
  }

  private long now() {
    return clockMillis.getAsLong();
  }

  private <T> T locked(Supplier<T> action) {
    lock.lock();
    try {
      return action.get();
    } finally {
      lock.unlock();
    }
  }
}
