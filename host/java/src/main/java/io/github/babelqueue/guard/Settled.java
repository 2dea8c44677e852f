package io.github.babelqueue.guard;

/** What settling did, in the order of the interface {@code types}. */
enum Settled {
  NOTHING,
  MARKED,
  MARKED_LATE,
  RELEASED,
  LEASE_LOST
}
