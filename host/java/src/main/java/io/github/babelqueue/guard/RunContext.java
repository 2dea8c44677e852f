package io.github.babelqueue.guard;

import java.util.Objects;
import java.util.Optional;
import java.util.function.Predicate;

/** The context of one handler's run. */
final class RunContext implements Context {
  private final Ticket ticket;
  private final boolean replay;

  /** Null where there is no lease. */
  private final Renewal renewal;

  private final Predicate<String> once;

  RunContext(Ticket ticket, boolean replay, Renewal renewal, Predicate<String> once) {
    this.ticket = ticket;
    this.replay = replay;
    this.renewal = renewal;
    this.once = once;
  }

  @Override
  public Optional<String> id() {
    return Optional.ofNullable(ticket.idOrNull());
  }

  @Override
  public Optional<FailOpen> failOpen() {
    return ticket instanceof Ticket.Open open ? Optional.of(open.reason()) : Optional.empty();
  }

  @Override
  public boolean isReplay() {
    return replay;
  }

  @Override
  public boolean isLeaseLost() {
    return renewal != null && renewal.isLost();
  }

  @Override
  public void onLeaseLost(Runnable action) {
    Objects.requireNonNull(action, "action");
    if (renewal != null) {
      renewal.onLost(action);
    }
  }

  @Override
  public boolean once(String step) {
    return once.test(Objects.requireNonNull(step, "step"));
  }
}
