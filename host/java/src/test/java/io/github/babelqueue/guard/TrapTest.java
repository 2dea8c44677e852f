package io.github.babelqueue.guard;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.Component.World;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** An instance that ends badly takes nothing with it. */
class TrapTest {
  private final AtomicInteger effects = new AtomicInteger();
  private final Handler<RuntimeException> handler = context -> effects.incrementAndGet();

  @ParameterizedTest
  @EnumSource
  void aTrapIsUndecidedAndTheNextDeliveryIsNot(World world) {
    // More than fits into three pages traps in the component's allocator.
    try (Guard guard = new Guard(world, new Faults(), 1 << 20, 3)) {
      for (int i = 0; i < 100; i++) {
        var thrown =
            assertThrows(UndecidedException.class, () -> guard.process(new byte[500_000], handler));
        assertTrue(thrown.getMessage().contains("trapped"));
        assertEquals(i, effects.get());
        var ran = (Result.Ran) guard.process(envelope("A" + i), handler);
        assertEquals(Optional.of("A" + i), ran.id());
        assertTrue(ran.marked());
      }
      assertTrue(guard.idlePages() <= 3, "one instance is enough for one thread");
    }
  }

  @Test
  void aClaimThatTheComponentCannotTakeInIsGivenBack() {
    var released = new AtomicReference<String>();
    String token = "x".repeat(1 << 20);
    var store =
        new Faults() {
          @Override
          public ClaimOutcome claim(String id) {
            return new ClaimOutcome.Won(token, 60_000);
          }

          @Override
          public Hold release(String id, String owner) {
            assertEquals(token, owner);
            released.set(id);
            return Hold.HELD;
          }
        };
    try (Guard guard = Guard.claiming(store, 1000)) {
      assertThrows(UndecidedException.class, () -> guard.process(envelope("A"), handler));
      assertEquals("A", released.get());
      assertEquals(0, effects.get());
    }
  }

  @Test
  void aStackThatOverflowsAnywhereLeavesTheGuardUsable() throws InterruptedException {
    try (Guard guard = Guard.claiming(new Faults())) {
      guard.process(envelope("warm"), handler);
      Thread thread = new Thread(null, () -> overflow(guard, 0), "deep", 256 * 1024);
      thread.start();
      thread.join();
      for (int i = 0; i < 100; i++) {
        assertEquals(
            Optional.of("later" + i),
            ((Result.Ran) guard.process(envelope("later" + i), handler)).id());
      }
      assertInstanceOf(Result.Skipped.class, guard.process(envelope("warm"), handler));
    }
  }

  /** Calls the guard with less and less stack left, until there is none for the call itself. */
  private int overflow(Guard guard, int depth) {
    try {
      return overflow(guard, depth + 1);
    } catch (StackOverflowError end) {
      for (int i = 0; i < 3; i++) {
        try {
          Result result = guard.process(envelope("deep" + depth), handler);
          if (result instanceof Result.Ran ran) {
            assertEquals(Optional.of("deep" + depth), ran.id());
          }
        } catch (GuardException | StackOverflowError expected) {
          // Neither run nor skipped, or the handler itself had no room.
        }
      }
      if (effects.get() > 20) {
        return depth;
      }
      throw end;
    }
  }
}
