package io.github.babelqueue.guard;

import java.util.Objects;

/** What a store answers to a claim (contract, section 3). */
public sealed interface ClaimOutcome {
  /**
   * The id was absent, or its lease had lapsed: the lease is now ours.
   *
   * @param token names this one acquisition; no other claim, of any process, can equal or guess it
   * @param lengthMillis how long the lease lasts from now or its last renewal, in milliseconds
   */
  record Won(String token, long lengthMillis) implements ClaimOutcome {
    /**
     * Refuses a lease without a token or without a length.
     *
     * @param token not null
     * @param lengthMillis at least 1
     */
    public Won {
      Objects.requireNonNull(token, "token");
      if (lengthMillis < 1) {
        throw new IllegalArgumentException("lengthMillis must be at least 1: " + lengthMillis);
      }
    }
  }

  /**
   * Another delivery holds a live lease.
   *
   * @param leftMillis after how many milliseconds it ends, unless it is renewed
   */
  record Busy(long leftMillis) implements ClaimOutcome {
    /**
     * Refuses a negative time.
     *
     * @param leftMillis at least 0
     */
    public Busy {
      if (leftMillis < 0) {
        throw new IllegalArgumentException("leftMillis must not be negative: " + leftMillis);
      }
    }
  }

  /** The id has a mark: the effect has happened. */
  record Done() implements ClaimOutcome {}
}
