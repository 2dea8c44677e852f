package io.github.babelqueue.guard;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An interrupt cancels what has not begun, and loses nothing of what has been done. */
@Timeout(60)
class InterruptTest {
  private final Faults store = new Faults();

  private Guard guard(boolean claiming) {
    return claiming ? Guard.claiming(store) : Guard.plain(store);
  }

  @AfterEach
  void clear() {
    Thread.interrupted();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anInterruptedThreadBeginsNothing(boolean claiming) {
    try (Guard guard = guard(claiming)) {
      guard.process(envelope("before"), context -> {});
      int calls = store.calls;
      Thread.currentThread().interrupt();
      assertThrows(CancellationException.class, () -> guard.process(envelope("A"), context -> {}));
      assertTrue(Thread.interrupted(), "the flag is left as it was");
      assertEquals(calls, store.calls);
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), context -> {}));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anInterruptInTheHandlerDoesNotLoseTheMark(boolean claiming) {
    // As a store that waits would.
    store.onRemember = store.onComplete = () -> Thread.sleep(1);
    try (Guard guard = guard(claiming)) {
      for (int i = 0; i < 100; i++) {
        var ran =
            (Result.Ran)
                guard.process(envelope("A" + i), context -> Thread.currentThread().interrupt());
        assertTrue(Thread.interrupted(), "the interrupt is kept");
        assertTrue(ran.marked());
        assertTrue(store.inner.seen("A" + i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anInterruptWhileTheMarkIsSetDoesNotLoseIt(boolean claiming) {
    var thread = Thread.currentThread();
    var struck = new AtomicBoolean();
    store.onRemember =
        store.onComplete =
            () -> {
              if (struck.compareAndSet(false, true)) {
                thread.interrupt();
              }
              Thread.sleep(1);
            };
    try (Guard guard = guard(claiming)) {
      var ran = (Result.Ran) guard.process(envelope("A"), context -> {});
      assertTrue(ran.marked());
      assertTrue(Thread.interrupted(), "the interrupt is kept");
      assertTrue(store.inner.seen("A"));
    }
  }

  @Test
  void anInterruptInTheHandlerDoesNotKeepTheLease() {
    store.onRelease = () -> Thread.sleep(1);
    try (Guard guard = guard(true)) {
      assertThrows(
          InterruptedException.class,
          () ->
              guard.process(
                  envelope("A"),
                  context -> {
                    Thread.currentThread().interrupt();
                    throw new InterruptedException();
                  }));
      assertTrue(Thread.interrupted());
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), context -> {}));
    }
  }

  @Test
  void anInterruptedQuestionIsUnavailable() {
    store.onSeen =
        () -> {
          Thread.currentThread().interrupt();
          Thread.sleep(1);
        };
    try (Guard guard = guard(false)) {
      var thrown =
          assertThrows(
              StoreUnavailableException.class, () -> guard.process(envelope("A"), context -> {}));
      assertInstanceOf(InterruptedException.class, thrown.getCause());
      assertTrue(Thread.interrupted(), "the interrupt is kept");
      assertFalse(store.inner.seen("A"));
    }
  }

  @Test
  void interruptsAtAnyMomentLoseNoMarkAndMixNoIds() throws InterruptedException {
    var done = new AtomicBoolean();
    var cancelled = new AtomicInteger();
    var ran = new AtomicInteger();
    AssertionError[] wrong = new AssertionError[1];
    try (Guard guard = guard(true)) {
      var worker =
          new Thread(
              () -> {
                try {
                  for (int i = 0; i < 50_000; i++) {
                    String id = "A" + i;
                    try {
                      var result = (Result.Ran) guard.process(envelope(id), context -> {});
                      assertEquals(id, result.id().orElseThrow());
                      assertTrue(result.marked());
                      ran.incrementAndGet();
                    } catch (CancellationException interrupted) {
                      cancelled.incrementAndGet();
                    }
                    Thread.interrupted();
                  }
                } catch (AssertionError failure) {
                  wrong[0] = failure;
                } finally {
                  done.set(true);
                }
              });
      worker.start();
      while (!done.get()) {
        worker.interrupt();
        Thread.onSpinWait();
      }
      worker.join();
    }
    if (wrong[0] != null) {
      throw wrong[0];
    }
    assertTrue(ran.get() > 0 && cancelled.get() > 0, ran + " ran, " + cancelled + " cancelled");
  }
}
