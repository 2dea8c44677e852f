package io.github.babelqueue.guard;

import java.util.Optional;

/** What a handler can learn of its delivery, and ask of the guard. */
public interface Context {
  /**
   * The message's id.
   *
   * @return the id, or empty if the delivery has none that is usable
   */
  Optional<String> id();

  /**
   * Why the delivery is not deduplicated.
   *
   * @return the reason, or empty if there is an {@link #id()}
   */
  Optional<FailOpen> failOpen();

  /**
   * Whether this is a deliberate replay, whose external effects may have happened already: its
   * headers hold {@code bq-replay-bypass} (contract, section 6).
   *
   * @return whether the header is there
   */
  boolean isReplay();

  /**
   * Whether the lease on the id is no longer ours, so that another delivery of it may be running.
   * Without claims there is no lease to lose.
   *
   * @return whether the lease was lost
   */
  boolean isLeaseLost();

  /**
   * Has an action run when the lease is lost while the handler runs, or at once if it is lost
   * already. It runs on another thread, and should be short; interrupting the handler is a use.
   *
   * @param action what to do
   */
  void onLeaseLost(Runnable action);

  /**
   * Whether the named step of this delivery is to run now: true once for each id and step, and
   * always without a usable id (contract, section 4). For an effect that may be lost rather than
   * happen twice, such as a counter; the mark is set before the effect and not taken back.
   *
   * @param step a name of 1 to 40 of {@code a-z}, {@code 0-9} and {@code _}
   * @return whether to run it
   * @throws StoreUnavailableException if the store cannot tell; whether the step's mark was set is
   *     then unknown
   * @throws StoreRejectedException if the name is not one, or the store refused
   * @throws UnsupportedOperationException if the store is no {@link Marker}
   */
  boolean once(String step);
}
