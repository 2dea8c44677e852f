package io.github.babelqueue.guard;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/** Renews a lease at a third of its length while its handler runs, and knows when it is lost. */
final class Renewal implements AutoCloseable {
  /** So many renewals can wait for a slow store at once. */
  private static final int THREADS = 8;

  private final Supplier<Hold> renew;
  private final long lengthNanos;
  private final Future<?> schedule;
  private final ReentrantLock lock = new ReentrantLock();

  /** What to do when the lease is lost; guarded by the lock. */
  private final List<Runnable> actions = new ArrayList<>();

  private volatile long renewedAt = System.nanoTime();
  private volatile boolean lost;

  /**
   * Begins at once.
   *
   * @param renew asks the store, and may throw a {@link GuardException}
   */
  Renewal(ScheduledExecutorService executor, long lengthMillis, Supplier<Hold> renew) {
    this.renew = renew;
    lengthNanos = TimeUnit.MILLISECONDS.toNanos(lengthMillis);
    long third = Math.max(1, lengthNanos / 3);
    schedule = executor.scheduleWithFixedDelay(this::renewOnce, third, third, TimeUnit.NANOSECONDS);
  }

  /** Its threads are there only while there are leases, and keep no program from ending. */
  static ScheduledExecutorService executor() {
    var executor =
        new ScheduledThreadPoolExecutor(
            THREADS,
            action -> {
              Thread thread = new Thread(action, "babelqueue-guard-renewal");
              thread.setDaemon(true);
              return thread;
            });
    executor.setKeepAliveTime(10, TimeUnit.SECONDS);
    executor.allowCoreThreadTimeOut(true);
    executor.setRemoveOnCancelPolicy(true);
    // A handler that runs while its guard is closed keeps its lease.
    executor.setContinueExistingPeriodicTasksAfterShutdownPolicy(true);
    return executor;
  }

  private void renewOnce() {
    long before = System.nanoTime();
    try {
      if (renew.get() == Hold.LOST) {
        lose();
      } else {
        renewedAt = before;
      }
    } catch (GuardException failure) {
      // The store may be back before the lease ends.
      Log.warn("a lease was not renewed", failure);
      if (isLost()) {
        lose();
      }
    }
  }

  /** Also true when nothing was heard of the store for as long as the lease lasts. */
  boolean isLost() {
    return lost || System.nanoTime() - renewedAt >= lengthNanos;
  }

  void onLost(Runnable action) {
    lock.lock();
    try {
      if (!lost) {
        actions.add(action);
        return;
      }
    } finally {
      lock.unlock();
    }
    run(action);
  }

  private void lose() {
    List<Runnable> due;
    lock.lock();
    try {
      lost = true;
      due = List.copyOf(actions);
      actions.clear();
    } finally {
      lock.unlock();
    }
    schedule.cancel(false);
    due.forEach(Renewal::run);
  }

  private static void run(Runnable action) {
    try {
      action.run();
    } catch (RuntimeException failure) {
      Log.warn("what was to be done on a lost lease failed", failure);
    }
  }

  @Override
  public void close() {
    schedule.cancel(false);
    lock.lock();
    try {
      actions.clear();
    } finally {
      lock.unlock();
    }
  }
}
