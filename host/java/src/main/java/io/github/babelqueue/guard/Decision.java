package io.github.babelqueue.guard;

/** What the component says is to be done with a delivery. */
sealed interface Decision {
  record Run(Ticket ticket) implements Decision {}

  record Skip(String id) implements Decision {}

  record Park(String id, long leftMillis) implements Decision {}
}
