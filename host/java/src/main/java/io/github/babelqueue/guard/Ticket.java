package io.github.babelqueue.guard;

/** What settling has to know of a decision. No instance of the component remembers it. */
sealed interface Ticket {
  /** There was no usable id; nothing will be recorded. */
  record Open(FailOpen reason) implements Ticket {}

  /** The id was not seen. */
  record Seen(String id) implements Ticket {}

  /** The id was claimed. */
  record Leased(String id, String token, long lengthMillis) implements Ticket {}

  /** The id, or null where there is none. */
  default String idOrNull() {
    if (this instanceof Seen seen) {
      return seen.id();
    }
    return this instanceof Leased leased ? leased.id() : null;
  }
}
