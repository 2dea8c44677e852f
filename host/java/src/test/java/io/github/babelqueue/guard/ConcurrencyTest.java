package io.github.babelqueue.guard;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.babelqueue.guard.store.MemoryStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One guard, many threads of both kinds, and many calls. */
@Timeout(300)
class ConcurrencyTest {
  private static final int CALLS = 1_000_000;

  @Test
  void threadsThatShareAGuardDoNotMixTheirIds() throws Exception {
    int threads = 16;
    int each = 5_000;
    ExecutorService workers = Executors.newFixedThreadPool(threads);
    var store = new MemoryStore();
    var effects = new AtomicInteger();
    try (Guard guard = Guard.claiming(store)) {
      List<Future<?>> ends = new ArrayList<>();
      for (int t = 0; t < threads; t++) {
        String name = "thread " + t + ", ".repeat(t);
        ends.add(
            workers.submit(
                () -> {
                  for (int i = 0; i < each; i++) {
                    String id = name + i;
                    var ran =
                        (Result.Ran)
                            guard.process(
                                envelope(id),
                                context -> {
                                  assertEquals(Optional.of(id), context.id());
                                  effects.incrementAndGet();
                                });
                    assertEquals(Optional.of(id), ran.id());
                    assertEquals(
                        new Result.Skipped(id), guard.process(Delivery.ofId(id), context -> {}));
                  }
                }));
      }
      for (Future<?> end : ends) {
        end.get();
      }
      assertEquals(threads * each, effects.get());
      int pages = guard.idlePages();
      assertTrue(pages <= 4 * 2 * Runtime.getRuntime().availableProcessors(), pages + " pages");
    } finally {
      workers.shutdownNow();
    }
  }

  @Test
  void virtualThreadsAreNotPinned() throws Exception {
    ExecutorService workers = virtualThreads();
    // More than there can be carriers: were one pinned in a call, not all could get this far.
    int threads = 2_000;
    var store = new Faults();
    var asked = new CountDownLatch(threads);
    var marking = new CountDownLatch(threads);
    store.onClaim =
        () -> {
          asked.countDown();
          asked.await();
        };
    store.onComplete =
        () -> {
          marking.countDown();
          marking.await();
        };
    try (Guard guard = Guard.claiming(store)) {
      List<Future<Result>> results = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        String id = "A" + i;
        results.add(workers.submit(() -> guard.process(envelope(id), context -> {})));
      }
      for (Future<Result> result : results) {
        assertTrue(((Result.Ran) result.get(60, TimeUnit.SECONDS)).marked());
      }
      assertTrue(guard.idlePages() <= 4 * 2 * Runtime.getRuntime().availableProcessors());
    } finally {
      workers.shutdownNow();
    }
  }

  /** The tests are compiled for Java 17, which has none. */
  private static ExecutorService virtualThreads() throws Exception {
    assumeTrue(Runtime.version().feature() >= 21, "virtual threads need Java 21");
    return (ExecutorService)
        Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
  }

  @Test
  void aMillionCallsLeaveNothingBehind() {
    var store = new Faults();
    var failure = new StoreUnavailableException("now and then");
    try (Guard guard = Guard.plain(store)) {
      guard.process(envelope("A"), context -> {});
      int pages = guard.idlePages();
      for (int i = 0; i < CALLS; i++) {
        String id = "A" + i % 1000;
        switch (i % 4) {
          case 0 -> guard.process(envelope(id), context -> {});
          case 1 -> guard.forget(id);
          case 2 -> guard.process(Delivery.of("{\"meta\":{"), context -> {});
          default -> {
            store.onSeen =
                () -> {
                  throw failure;
                };
            assertThrows(
                StoreUnavailableException.class, () -> guard.process(envelope(id), context -> {}));
            store.onSeen = () -> {};
          }
        }
      }
      assertEquals(pages, guard.idlePages());
      assertInstanceOf(Result.Ran.class, guard.process(envelope("last"), context -> {}));
    }
  }
}
