package io.github.babelqueue.guard;

/**
 * The guard itself could not decide: a body over its limit, or a trap in the component: {@code
 * guard} in the contract. The next delivery is decided normally.
 */
public final class UndecidedException extends GuardException {
  private static final long serialVersionUID = 1L;

  UndecidedException(String message, Throwable cause) {
    super(message, cause);
  }
}
