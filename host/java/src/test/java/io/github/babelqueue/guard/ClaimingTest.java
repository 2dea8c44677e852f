package io.github.babelqueue.guard;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.store.MemoryStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The contract's section 3. */
@Timeout(60)
class ClaimingTest {
  private static final Duration HOUR = Duration.ofHours(1);

  private static MemoryStore withLease(long millis) {
    return new MemoryStore(HOUR, Duration.ofMillis(millis), 1000);
  }

  @Test
  void ofCopiesAtOnceOneRunsAndTheOthersAreParked() throws Exception {
    var store = new MemoryStore();
    var allArrived = new CountDownLatch(7);
    var effects = new AtomicInteger();
    ExecutorService workers = Executors.newFixedThreadPool(8);
    try (Guard guard = Guard.claiming(store)) {
      List<Future<Result>> results = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        results.add(
            workers.submit(
                () -> {
                  Result result =
                      guard.process(
                          envelope("A"),
                          context -> {
                            effects.incrementAndGet();
                            assertTrue(allArrived.await(30, TimeUnit.SECONDS));
                          });
                  allArrived.countDown();
                  return result;
                }));
      }
      int parked = 0;
      for (Future<Result> result : results) {
        if (result.get() instanceof Result.Parked one) {
          parked++;
          assertFalse(one.acknowledge());
          assertEquals("A", one.id());
          assertTrue(one.left().toMillis() > 50_000 && one.left().toMillis() <= 60_000);
        }
      }
      assertEquals(1, effects.get());
      assertEquals(7, parked);
      assertInstanceOf(Result.Skipped.class, guard.process(envelope("A"), context -> {}));
    } finally {
      workers.shutdownNow();
    }
  }

  @Test
  void aLeaseIsNoMark() {
    var store = new MemoryStore();
    try (Guard guard = Guard.claiming(store);
        Guard plain = Guard.plain(store)) {
      guard.process(
          envelope("A"),
          context -> {
            assertFalse(store.seen("A"));
            assertInstanceOf(Result.Ran.class, plain.process(envelope("A"), copy -> {}));
          });
    }
  }

  @Test
  void aFailureGivesTheLeaseBack() {
    try (Guard guard = Guard.claiming(new MemoryStore())) {
      assertThrows(
          AssertionError.class,
          () ->
              guard.process(
                  envelope("A"),
                  context -> {
                    throw new AssertionError();
                  }));
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), context -> {}));
    }
  }

  @Test
  void whatReleaseThrowsDoesNotHideTheHandlersFailure() {
    var store = new Faults();
    store.onRelease =
        () -> {
          throw new StoreUnavailableException("gone");
        };
    try (Guard guard = Guard.claiming(store)) {
      assertThrows(
          IllegalStateException.class,
          () ->
              guard.process(
                  envelope("A"),
                  context -> {
                    throw new IllegalStateException();
                  }));
      assertInstanceOf(Result.Parked.class, guard.process(envelope("A"), context -> {}));
    }
  }

  @Test
  void aLeaseIsRenewedWhileTheHandlerRuns() {
    var store = withLease(150);
    try (Guard guard = Guard.claiming(store)) {
      var ran =
          (Result.Ran)
              guard.process(
                  envelope("A"),
                  context -> {
                    Thread.sleep(600);
                    assertFalse(context.isLeaseLost());
                    assertInstanceOf(ClaimOutcome.Busy.class, store.claim("A"));
                  });
      assertTrue(ran.marked());
      assertFalse(ran.late());
    } catch (InterruptedException nobodyDoes) {
      throw new AssertionError(nobodyDoes);
    }
  }

  @Test
  void aGuardThatIsClosedMeanwhileStillRenewsAndMarks() throws Exception {
    var store = withLease(150);
    Guard guard = Guard.claiming(store);
    var ran =
        (Result.Ran)
            guard.process(
                envelope("A"),
                context -> {
                  guard.close();
                  Thread.sleep(500);
                  assertFalse(context.isLeaseLost());
                });
    assertTrue(ran.marked());
    assertFalse(ran.late());
  }

  @Test
  void aLostLeaseIsToldAndTheMarkIsSetAllTheSame() throws Exception {
    var store = new Faults();
    store.leaseMillis = 120;
    try (Guard guard = Guard.claiming(store)) {
      var told = new CountDownLatch(1);
      var ran =
          (Result.Ran)
              guard.process(
                  envelope("A"),
                  context -> {
                    context.onLeaseLost(told::countDown);
                    assertFalse(context.isLeaseLost());
                    store.inner.release("A", store.lastToken());
                    var other = (ClaimOutcome.Won) store.inner.claim("A");
                    assertTrue(told.await(30, TimeUnit.SECONDS));
                    assertTrue(context.isLeaseLost());
                    var late = new CountDownLatch(1);
                    context.onLeaseLost(late::countDown);
                    assertEquals(0, late.getCount(), "told at once when it is lost already");
                    assertNotEquals(store.lastToken(), other.token());
                  });
      assertTrue(ran.marked());
      assertTrue(ran.late());
      assertTrue(store.seen("A"));
    }
  }

  @Test
  void aStoreThatIsGoneForAsLongAsTheLeaseMeansLost() throws Exception {
    var store = new Faults();
    store.onRenew =
        () -> {
          throw new StoreUnavailableException("gone");
        };
    store.leaseMillis = 150;
    try (Guard guard = Guard.claiming(store)) {
      var told = new CountDownLatch(1);
      guard.process(
          envelope("A"),
          context -> {
            context.onLeaseLost(told::countDown);
            assertTrue(told.await(30, TimeUnit.SECONDS));
            assertTrue(context.isLeaseLost());
          });
    }
  }

  @Test
  void onePauseOfTheStoreDoesNotLoseTheLease() throws Exception {
    var store = new Faults();
    var renewals = new AtomicInteger();
    store.onRenew =
        () -> {
          if (renewals.getAndIncrement() == 0) {
            throw new StoreUnavailableException("for a moment");
          }
        };
    store.leaseMillis = 600;
    try (Guard guard = Guard.claiming(store)) {
      guard.process(
          envelope("A"),
          context -> {
            while (renewals.get() < 3) {
              Thread.sleep(10);
            }
            assertFalse(context.isLeaseLost());
          });
    }
  }
}
