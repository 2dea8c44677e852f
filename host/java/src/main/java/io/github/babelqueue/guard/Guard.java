package io.github.babelqueue.guard;

import io.github.babelqueue.guard.Component.World;
import io.github.babelqueue.guard.CoreInstance.Reply;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.BiFunction;
import java.util.function.Supplier;

/**
 * Decides on deliveries, calls their handlers, and records how these ended.
 *
 * <p>One guard serves any number of threads, virtual ones too, and may be called again from its own
 * handlers and stores. It decides nothing itself: it runs the component that all languages share,
 * asks the store what the component asks, and reports.
 *
 * <pre>{@code
 * try (Guard guard = Guard.plain(store)) {
 *   Result result = guard.process(body, context -> charge(body));
 *   if (result.acknowledge()) {
 *     message.acknowledge();
 *   }
 * }
 * }</pre>
 *
 * <p><b>Interrupts.</b> A thread that is interrupted before its delivery is decided gets a {@link
 * CancellationException}: nothing was run, asked or recorded. Once the handler has returned, an
 * interrupt, earlier or later, does not lose the mark; the thread is interrupted again when {@code
 * process} returns.
 */
public final class Guard implements AutoCloseable {
  /** The longest body that is decided on unless another limit is set: 16 MiB. */
  public static final int DEFAULT_MAX_BODY_BYTES = 16 << 20;

  /** The component knows that an id is too long without seeing all of it. */
  private static final int ID_BYTES_PASSED = 4_096;

  /** How often a store's call after the handler is made again when an interrupt has ended it. */
  private static final int INTERRUPTED_TRIES = 10;

  private final int maxBody;
  private final Component component;

  /** The component with the function {@code once}, which the plain one lacks. */
  private final Component steps;

  private final Answers answers;
  private final boolean hasSteps;
  private final ScheduledExecutorService renewals = Renewal.executor();
  private volatile boolean closed;

  Guard(World world, Store store, int maxBody, int maxPages) {
    Objects.requireNonNull(store, "store");
    if (maxBody < 1) {
      throw new IllegalArgumentException("maxBodyBytes must be at least 1: " + maxBody);
    }
    this.maxBody = maxBody;
    component = new Component(world, maxPages);
    steps = world == World.CLAIMING ? component : new Component(World.CLAIMING, maxPages);
    answers = new Answers(store);
    hasSteps = store instanceof Marker;
  }

  /**
   * A guard over a seen-set (contract, section 2).
   *
   * @param store the marks; not closed by the guard
   * @return the guard
   */
  public static Guard plain(Store store) {
    return plain(store, DEFAULT_MAX_BODY_BYTES);
  }

  /**
   * A guard over a seen-set, with another limit for bodies.
   *
   * @param store the marks; not closed by the guard
   * @param maxBodyBytes the longest body that is decided on, in bytes
   * @return the guard
   */
  public static Guard plain(Store store, int maxBodyBytes) {
    return new Guard(World.PLAIN, store, maxBodyBytes, Component.pagesFor(maxBodyBytes));
  }

  /**
   * A guard that claims an id while its handler runs (contract, section 3), so that of copies that
   * arrive at once one runs and the others are {@link Result.Parked}.
   *
   * @param store the marks and leases; not closed by the guard
   * @param <S> a store that has claims
   * @return the guard
   */
  public static <S extends Store & Claims> Guard claiming(S store) {
    return claiming(store, DEFAULT_MAX_BODY_BYTES);
  }

  /**
   * A guard that claims an id while its handler runs, with another limit for bodies.
   *
   * @param store the marks and leases; not closed by the guard
   * @param maxBodyBytes the longest body that is decided on, in bytes
   * @param <S> a store that has claims
   * @return the guard
   */
  public static <S extends Store & Claims> Guard claiming(S store, int maxBodyBytes) {
    return new Guard(World.CLAIMING, store, maxBodyBytes, Component.pagesFor(maxBodyBytes));
  }

  /**
   * Runs, skips or parks a delivery by its body. See {@link #process(Delivery, Handler)}.
   *
   * @param body the envelope, any bytes
   * @param handler the code with the side effect
   * @param <X> what the handler throws
   * @return what became of the delivery
   * @throws X what the handler threw
   */
  public <X extends Exception> Result process(byte[] body, Handler<X> handler) throws X {
    return process(Delivery.of(body), handler);
  }

  /**
   * Runs, skips or parks a delivery.
   *
   * <p>The handler is called if the id has no mark, and, with claims, if no other delivery holds
   * it; a delivery without a usable id always runs. If it returns, the id is marked. If it throws
   * anything, nothing is marked, a lease is given back, and what it threw is thrown.
   *
   * @param delivery the delivery
   * @param handler the code with the side effect
   * @param <X> what the handler throws
   * @return what became of the delivery; {@link Result#acknowledge()} says whether to acknowledge
   *     it
   * @throws X what the handler threw
   * @throws StoreUnavailableException if the store cannot be asked; the handler was not called
   * @throws StoreRejectedException if the store refused; the handler was not called
   * @throws UndecidedException if the guard could not decide; the handler was not called
   * @throws CancellationException if the thread was interrupted before; the handler was not called
   * @throws IllegalStateException if the guard is closed; the handler was not called
   */
  public <X extends Exception> Result process(Delivery delivery, Handler<X> handler) throws X {
    Objects.requireNonNull(delivery, "delivery");
    Objects.requireNonNull(handler, "handler");
    Decision decision = decide(delivery);
    if (decision instanceof Decision.Skip skip) {
      return new Result.Skipped(skip.id());
    }
    if (decision instanceof Decision.Park park) {
      return new Result.Parked(park.id(), Duration.ofMillis(park.leftMillis()));
    }
    Ticket ticket = ((Decision.Run) decision).ticket();
    try (Renewal renewal = renewal(ticket)) {
      handler.handle(
          new RunContext(ticket, delivery.isReplay(), renewal, step -> once(ticket, step)));
    } catch (Throwable failure) {
      settleFailure(ticket);
      throw failure;
    }
    return settleSuccess(ticket);
  }

  /**
   * Removes the mark of an id, so that its next delivery runs (contract, section 6).
   *
   * @param id the message's id
   * @throws StoreUnavailableException if the mark is not known to be gone
   * @throws StoreRejectedException if no mark can have this id, or the store refused
   */
  public void forget(String id) {
    checkOpen();
    if (!Wtf8.isWellFormed(id)) {
      throw new StoreRejectedException("not usable as an id: it has an unpaired surrogate");
    }
    byte[] bytes = idBytes(id);
    drive(component, (instance, answer) -> instance.forget(answer, bytes));
  }

  /**
   * Accepts no more deliveries. Handlers that are running end normally: their leases are renewed,
   * and what they did is recorded. The store stays open.
   */
  @Override
  public void close() {
    closed = true;
    renewals.shutdown();
    component.clear();
    steps.clear();
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the guard is closed");
    }
  }

  /** How much memory the idle instances of the component hold, in pages of 64 KiB. */
  int idlePages() {
    return component.idlePages();
  }

  // ---- deciding -------------------------------------------------------------------------------

  private Decision decide(Delivery delivery) {
    checkOpen();
    if (Thread.currentThread().isInterrupted()) {
      throw new CancellationException("interrupted before the delivery was decided");
    }
    byte[] body = delivery.body();
    if (body == null) {
      byte[] id = idBytes(delivery.id());
      return drive(component, (instance, answer) -> instance.decideId(answer, id));
    }
    if (body.length > maxBody) {
      throw new UndecidedException(
          "a body of " + body.length + " bytes is over the guard's limit of " + maxBody, null);
    }
    Reply<Decision> supposed = component.call(instance -> instance.decide(null, body));
    return resolve(
        component,
        supposed,
        // The body need not be read once more.
        (instance, answer) -> instance.decideId(answer, Wtf8.encode(supposed.asked().id())));
  }

  private static byte[] idBytes(String id) {
    byte[] bytes = Wtf8.encode(id);
    return bytes.length <= ID_BYTES_PASSED ? bytes : Arrays.copyOf(bytes, ID_BYTES_PASSED);
  }

  private boolean once(Ticket ticket, String step) {
    if (!hasSteps) {
      throw new UnsupportedOperationException("the store has no steps: it is no Marker");
    }
    return drive(steps, (instance, answer) -> instance.once(answer, ticket, step));
  }

  // ---- driving the component --------------------------------------------------------------------

  /** A function of the component, given the store's answer; null if that is not known yet. */
  private interface Call<T> extends BiFunction<CoreInstance, Answer, Reply<T>> {}

  /**
   * Runs a function on the supposed answer, asks the store what it asked, and runs it again if the
   * answer is another one. The instance is back in its pool while the store is asked.
   */
  private <T> T drive(Component in, Call<T> call) {
    return resolve(in, in.call(instance -> call.apply(instance, null)), call);
  }

  private <T> T resolve(Component in, Reply<T> supposed, Call<T> again) {
    Question question = supposed.asked();
    if (question == null) {
      return supposed.value();
    }
    Answer answer = answers.to(question);
    if (answer.equals(question.kind().supposed)) {
      return supposed.value();
    }
    try {
      return in.call(instance -> again.apply(instance, answer)).value();
    } catch (RuntimeException | Error failure) {
      giveBack(question, answer);
      throw failure;
    }
  }

  /** A claim that the component could not take in would else be held until it lapses. */
  private void giveBack(Question claim, Answer answer) {
    if (answer instanceof Answer.Claimed claimed
        && claimed.outcome() instanceof ClaimOutcome.Won won) {
      try {
        answers.to(new Question(Question.Kind.RELEASE, claim.id(), won.token()));
      } catch (GuardException failure) {
        Log.warn("a lease was not given back", failure);
      }
    }
  }

  // ---- leases and settling
  // ------------------------------------------------------------------------

  private Renewal renewal(Ticket ticket) {
    if (!(ticket instanceof Ticket.Leased leased)) {
      return null;
    }
    try {
      return new Renewal(
          renewals,
          leased.lengthMillis(),
          () -> drive(component, (instance, answer) -> instance.renew(answer, ticket)));
    } catch (RejectedExecutionException closedMeanwhile) {
      throw new IllegalStateException("the guard is closed", closedMeanwhile);
    }
  }

  private Settled settle(Ticket ticket, boolean succeeded) {
    return uninterrupted(
        () -> drive(component, (instance, answer) -> instance.settle(answer, ticket, succeeded)));
  }

  private Result settleSuccess(Ticket ticket) {
    Settled settled = Settled.NOTHING;
    GuardException markError = null;
    try {
      settled = settle(ticket, true);
    } catch (GuardException failure) {
      markError = failure;
    }
    return new Result.Ran(
        Optional.ofNullable(ticket.idOrNull()),
        ticket instanceof Ticket.Open open ? Optional.of(open.reason()) : Optional.empty(),
        settled == Settled.MARKED || settled == Settled.MARKED_LATE,
        settled == Settled.MARKED_LATE,
        Optional.ofNullable(markError));
  }

  private void settleFailure(Ticket ticket) {
    try {
      settle(ticket, false);
    } catch (RuntimeException | Error failure) {
      // The caller is to see what the handler threw; the lease ends by itself.
      Log.warn("a lease was not given back", failure);
    }
  }

  /**
   * Runs what must not be lost to an interrupt: with the thread's flag cleared, and again if a new
   * interrupt has ended it. Settling twice is harmless.
   */
  private static <T> T uninterrupted(Supplier<T> action) {
    boolean interrupted = Thread.interrupted();
    try {
      for (int tries = 1; ; tries++) {
        try {
          return action.get();
        } catch (GuardException failure) {
          if (!Thread.interrupted() || tries == INTERRUPTED_TRIES) {
            throw failure;
          }
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
