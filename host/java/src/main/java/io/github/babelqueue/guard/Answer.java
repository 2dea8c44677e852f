package io.github.babelqueue.guard;

/**
 * What a store says to a {@link Question}. Its failures are not among these: they go to the caller
 * without passing through the component.
 */
sealed interface Answer {
  /** To {@code seen} and {@code set-once}. */
  record Yes(boolean yes) implements Answer {}

  /** To {@code remember} and {@code forget}. */
  record Done() implements Answer {}

  /** To {@code claim}. */
  record Claimed(ClaimOutcome outcome) implements Answer {}

  /** To {@code renew}, {@code complete} and {@code release}. */
  record Held(Hold hold) implements Answer {}
}
