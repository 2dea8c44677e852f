package io.github.babelqueue.guard;

/**
 * The code with the side effect. Returning means that the effect has happened; throwing anything
 * means that it has not, and that a redelivery is to run again.
 *
 * @param <X> what it throws, beside unchecked exceptions
 */
@FunctionalInterface
public interface Handler<X extends Exception> {
  /**
   * Handles one delivery. What it throws reaches the caller of the guard unchanged.
   *
   * @param context what the guard knows of the delivery
   * @throws X if the effect has not happened
   */
  void handle(Context context) throws X;
}
