package io.github.babelqueue.guard;

/**
 * The store cannot be reached, timed out, is loading, read-only or failing over: {@code
 * unavailable} in the contract. Delivering again later is right.
 */
public non-sealed class StoreUnavailableException extends GuardException {
  private static final long serialVersionUID = 1L;

  /**
   * Says what could not be had.
   *
   * @param message names the store and what was tried, without any secret
   */
  public StoreUnavailableException(String message) {
    this(message, null);
  }

  /**
   * Says what could not be had, and why.
   *
   * @param message names the store and what was tried, without any secret
   * @param cause what the store's client threw, or null
   */
  public StoreUnavailableException(String message, Throwable cause) {
    super(message, cause);
  }
}
