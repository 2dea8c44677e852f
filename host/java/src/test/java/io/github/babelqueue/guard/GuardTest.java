package io.github.babelqueue.guard;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The contract's sections 1, 2, 6 and 7 in a single thread. */
class GuardTest {
  private final Faults store = new Faults();
  private final AtomicInteger effects = new AtomicInteger();
  private final Handler<RuntimeException> handler = context -> effects.incrementAndGet();

  private static void nothing(Context context) {}

  private Guard guard(boolean claiming) {
    return claiming ? Guard.claiming(store) : Guard.plain(store);
  }

  @Test
  void aCopyIsSkippedAndAcknowledged() {
    try (Guard guard = Guard.plain(store)) {
      Result first = guard.process(envelope("A"), handler);
      Result second = guard.process(envelope("A"), handler);
      assertEquals(
          new Result.Ran(Optional.of("A"), Optional.empty(), true, false, Optional.empty()), first);
      assertEquals(new Result.Skipped("A"), second);
      assertTrue(first.acknowledge() && second.acknowledge());
      assertEquals(1, effects.get());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void withoutAnIdItRunsAndAsksNothing(boolean claiming) {
    try (Guard guard = guard(claiming)) {
      for (int i = 0; i < 2; i++) {
        Result result = guard.process("no JSON".getBytes(StandardCharsets.UTF_8), handler);
        assertEquals(
            new Result.Ran(
                Optional.empty(), Optional.of(FailOpen.MALFORMED), false, false, Optional.empty()),
            result);
      }
      assertEquals(2, effects.get());
      assertEquals(0, store.calls);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatTheHandlerThrowsIsThrownAndNothingIsMarked(boolean claiming) {
    Throwable[] all = {
      new IOException("checked"),
      new IllegalStateException("unchecked"),
      new AssertionError("an error"),
      new StoreUnavailableException("as a store would"),
      new InterruptedException("interrupted"),
    };
    try (Guard guard = guard(claiming)) {
      for (Throwable one : all) {
        Throwable thrown =
            assertThrows(
                Throwable.class,
                () ->
                    guard.process(
                        envelope("A"),
                        context -> {
                          throwAny(one);
                        }));
        assertSame(one, thrown);
        assertEquals(0, thrown.getSuppressed().length);
        assertFalse(store.inner.seen("A"));
      }
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), handler));
    }
  }

  @SuppressWarnings("unchecked")
  private static <X extends Throwable> void throwAny(Throwable one) throws X {
    throw (X) one;
  }

  @Test
  void checkedExceptionsKeepTheirType() {
    try (Guard guard = Guard.plain(store)) {
      guard.process(
          envelope("A"),
          context -> {
            throw new IOException("full");
          });
    } catch (IOException compiles) {
      assertEquals("full", compiles.getMessage());
    }
  }

  @Test
  void aStoresOwnFailuresPassUnchanged() {
    GuardException[] all = {
      new StoreUnavailableException("gone"), new StoreRejectedException("wrong password")
    };
    try (Guard plain = Guard.plain(store);
        Guard claiming = Guard.claiming(store)) {
      for (GuardException one : all) {
        store.onSeen = store.onClaim = () -> throwAny(one);
        for (Guard guard : new Guard[] {plain, claiming}) {
          assertSame(
              one, assertThrows(GuardException.class, () -> guard.process(envelope("A"), handler)));
        }
      }
      assertEquals(0, effects.get());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whateverElseAStoreThrowsIsUnavailable(boolean claiming) {
    Exception cause = new SQLException("connection refused");
    store.onSeen = store.onClaim = () -> throwAny(cause);
    try (Guard guard = guard(claiming)) {
      var thrown =
          assertThrows(
              StoreUnavailableException.class, () -> guard.process(envelope("A"), handler));
      assertSame(cause, thrown.getCause());
      assertTrue(thrown.getMessage().contains("connection refused"));
      store.onSeen = store.onClaim = () -> {};
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), handler));
      assertEquals(1, effects.get());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anErrorInAStorePassesAndLeavesTheGuardUsable(boolean claiming) {
    Error error = new NoClassDefFoundError("driver");
    try (Guard guard = guard(claiming)) {
      guard.process(envelope("B"), handler);
      int pages = guard.idlePages();
      store.onSeen = store.onClaim = () -> throwAny(error);
      for (int i = 0; i < 1000; i++) {
        assertSame(error, assertThrows(Error.class, () -> guard.process(envelope("A"), handler)));
      }
      store.onSeen = store.onClaim = () -> {};
      assertInstanceOf(Result.Ran.class, guard.process(envelope("A"), handler));
      assertEquals(pages, guard.idlePages());
    }
  }

  @Test
  void anAnswerOfNullIsUnavailable() {
    try (Guard guard =
        Guard.claiming(
            new Faults() {
              @Override
              public ClaimOutcome claim(String id) {
                return null;
              }
            })) {
      assertThrows(StoreUnavailableException.class, () -> guard.process(envelope("A"), handler));
      assertEquals(0, effects.get());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMissingMarkIsInTheResult(boolean claiming) {
    var failure = new StoreUnavailableException("gone");
    store.onRemember = store.onComplete = () -> throwAny(failure);
    try (Guard guard = guard(claiming)) {
      var ran = (Result.Ran) guard.process(envelope("A"), handler);
      assertTrue(ran.acknowledge());
      assertFalse(ran.marked());
      assertSame(failure, ran.markError().orElseThrow());
    }
  }

  @Test
  void forgettingMakesItRunAgain() {
    try (Guard guard = Guard.plain(store)) {
      guard.process(envelope("A"), handler);
      guard.forget("A");
      guard.process(envelope("A"), handler);
      assertEquals(2, effects.get());
      guard.forget("never seen");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "\0", "\ud83d", "a\udce6"})
  void anUnusableIdIsNotForgotten(String id) {
    try (Guard guard = Guard.plain(store)) {
      assertThrows(StoreRejectedException.class, () -> guard.forget(id));
      assertThrows(StoreRejectedException.class, () -> guard.forget("x".repeat(100_000)));
      assertEquals(0, store.calls);
    }
  }

  @Test
  void aReplayIsToldButRunsOnlyWhenForgotten() {
    Delivery replay =
        Delivery.of(envelope("A")).withHeaders(Map.of("bq-replay-bypass", "", "other", 1));
    try (Guard guard = Guard.plain(store)) {
      guard.process(envelope("A"), context -> assertFalse(context.isReplay()));
      assertInstanceOf(Result.Skipped.class, guard.process(replay, handler));
      guard.forget("A");
      assertInstanceOf(
          Result.Ran.class, guard.process(replay, context -> assertTrue(context.isReplay())));
    }
  }

  @Test
  void aBodyOverTheLimitIsNotDecidedOn() {
    try (Guard guard = Guard.plain(store, 1000)) {
      byte[] tooLong = new byte[1001];
      var thrown = assertThrows(UndecidedException.class, () -> guard.process(tooLong, handler));
      assertTrue(thrown.getMessage().contains("1000"));
      assertEquals(0, effects.get());
      assertInstanceOf(Result.Ran.class, guard.process(new byte[1000], handler));
    }
  }

  @Test
  void bodiesUpToTheLimitAreDecidedOn() {
    String head = "{\"meta\":{\"id\":\"A\"},\"data\":";
    int limit = Guard.DEFAULT_MAX_BODY_BYTES;
    int room = limit - head.length() - 1;
    try (Guard guard = Guard.plain(store)) {
      for (String filling :
          new String[] {
            "\"" + "x".repeat(room - 2) + "\"", "[".repeat(room / 2) + "]".repeat(room / 2)
          }) {
        var ran = (Result.Ran) guard.process(Delivery.of(head + filling + "}"), handler);
        assertEquals(Optional.of("A"), ran.id());
        guard.forget("A");
      }
      var ran = (Result.Ran) guard.process(Delivery.of("[".repeat(limit)), handler);
      assertEquals(Optional.of(FailOpen.MALFORMED), ran.failOpen());
      ran = (Result.Ran) guard.process(Delivery.of("{\"\":".repeat(limit / 4)), handler);
      assertEquals(Optional.of(FailOpen.MALFORMED), ran.failOpen());
      String id = "{\"meta\":{\"id\":\"" + "\\u0041".repeat(limit / 6 - 10) + "\"}}";
      ran = (Result.Ran) guard.process(Delivery.of(id), handler);
      assertEquals(Optional.of(FailOpen.UNUSABLE), ran.failOpen());
      assertTrue(guard.idlePages() < 100, "an instance that has grown that far is not kept");
    }
  }

  @Test
  void aStepRunsOnce() {
    for (boolean claiming : new boolean[] {false, true}) {
      String id = "A" + claiming;
      try (Guard guard = guard(claiming)) {
        for (boolean expected : new boolean[] {true, false}) {
          guard.process(
              envelope(id),
              context -> {
                assertEquals(expected, context.once("count"));
                assertThrows(StoreRejectedException.class, () -> context.once("Not a name"));
              });
          guard.forget(id);
        }
        for (int i = 0; i < 2; i++) {
          guard.process(new byte[0], context -> assertTrue(context.once("count")));
        }
      }
    }
  }

  @Test
  void withoutAMarkerThereAreNoSteps() {
    Store three =
        new Store() {
          @Override
          public boolean seen(String id) {
            return false;
          }

          @Override
          public void remember(String id) {}

          @Override
          public void forget(String id) {}
        };
    try (Guard guard = Guard.plain(three)) {
      assertThrows(
          UnsupportedOperationException.class,
          () -> guard.process(envelope("A"), context -> context.once("count")));
    }
  }

  @Test
  void aHandlerMayUseItsGuard() {
    try (Guard guard = Guard.claiming(store)) {
      guard.process(
          envelope("A"),
          outer -> {
            assertInstanceOf(Result.Parked.class, guard.process(envelope("A"), handler));
            var inner = (Result.Ran) guard.process(envelope("B"), GuardTest::nothing);
            assertEquals(Optional.of("B"), inner.id());
            assertEquals(Optional.of("A"), outer.id());
          });
      assertTrue(store.inner.seen("A"));
    }
  }

  @Test
  void aStoreMayUseTheGuardThatIsAskingIt() {
    Guard[] itself = new Guard[1];
    var nested = new AtomicInteger();
    store.onSeen =
        () -> {
          if (nested.getAndIncrement() < 3) {
            String id = "inner" + nested.get();
            var ran = (Result.Ran) itself[0].process(envelope(id), GuardTest::nothing);
            assertEquals(Optional.of(id), ran.id());
          }
        };
    try (Guard guard = Guard.plain(store)) {
      itself[0] = guard;
      var ran = (Result.Ran) guard.process(envelope("outer"), handler);
      assertEquals(Optional.of("outer"), ran.id());
    }
    assertTrue(store.inner.seen("outer") && store.inner.seen("inner1"));
  }

  @Test
  void aClosedGuardSaysSo() {
    Guard guard = Guard.plain(store);
    guard.close();
    guard.close();
    assertThrows(IllegalStateException.class, () -> guard.process(envelope("A"), handler));
    assertEquals(0, effects.get());
  }
}
