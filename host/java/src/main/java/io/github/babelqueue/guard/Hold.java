package io.github.babelqueue.guard;

/** Whether a lease was still ours when the store was asked (contract, section 3). */
public enum Hold {
  /** It was. */
  HELD,
  /** It was not: it had lapsed, and another delivery may have claimed the id. */
  LOST
}
