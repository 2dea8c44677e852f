package io.github.babelqueue.guard;

/**
 * The store was reached, and refused for a reason that time does not mend, such as wrong
 * credentials or a value of another type under the key: {@code rejected} in the contract. An
 * operator has to act; the message says on what.
 */
public non-sealed class StoreRejectedException extends GuardException {
  private static final long serialVersionUID = 1L;

  /**
   * Says what was refused.
   *
   * @param message names the store, what was tried and what to mend, without any secret
   */
  public StoreRejectedException(String message) {
    this(message, null);
  }

  /**
   * Says what was refused, and by whom.
   *
   * @param message names the store, what was tried and what to mend, without any secret
   * @param cause what the store's client threw, or null
   */
  public StoreRejectedException(String message, Throwable cause) {
    super(message, cause);
  }
}
