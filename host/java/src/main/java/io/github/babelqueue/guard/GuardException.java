package io.github.babelqueue.guard;

/**
 * Why a delivery was neither run nor skipped (contract, section 7): the handler was not called, and
 * the delivery must not be acknowledged.
 *
 * <p>After a handler's success it does not reach the caller as an exception, but in {@link
 * Result.Ran#markError()}.
 */
public abstract sealed class GuardException extends RuntimeException
    permits StoreUnavailableException, StoreRejectedException, UndecidedException {
  private static final long serialVersionUID = 1L;

  GuardException(String message, Throwable cause) {
    super(message, cause);
  }
}
