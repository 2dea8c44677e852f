package io.github.babelqueue.guard;

import java.time.Duration;
import java.util.Optional;

/** What became of a delivery (contract, sections 2 and 3). */
public sealed interface Result {
  /**
   * Whether the delivery is to be acknowledged. One that is not is to be delivered again later, and
   * that is no failed attempt.
   *
   * @return false for {@link Parked}, else true
   */
  default boolean acknowledge() {
    return !(this instanceof Parked);
  }

  /**
   * The handler was called, and returned.
   *
   * @param id the message's id, or empty if it has none that is usable
   * @param failOpen why there is no id
   * @param marked whether the id is marked now
   * @param late whether the lease was no longer ours when the mark was set: another delivery may
   *     have run meanwhile
   * @param markError why the mark is missing although the handler succeeded; a redelivery may run
   *     again
   */
  record Ran(
      Optional<String> id,
      Optional<FailOpen> failOpen,
      boolean marked,
      boolean late,
      Optional<GuardException> markError)
      implements Result {}

  /**
   * The id is marked: the handler was not called, for the effect has happened.
   *
   * @param id the message's id
   */
  record Skipped(String id) implements Result {}

  /**
   * Another delivery is working on the id: the handler was not called.
   *
   * @param id the message's id
   * @param left when the other's lease ends, unless it is renewed
   */
  record Parked(String id, Duration left) implements Result {}
}
