package io.github.babelqueue.guard;

/**
 * Marks of single steps, set before an effect that may be lost rather than happen twice (contract,
 * section 4). Exceptions are those of {@link Store}.
 */
public interface Marker {
  /**
   * Sets the step's own mark, in one atomic step together with its retention. A store must not send
   * the command again by itself: a lost reply is {@link StoreUnavailableException}. Steps need a
   * retention: a store that keeps its marks for ever throws {@link StoreRejectedException}, and
   * sends nothing.
   *
   * @param id a usable id
   * @param step a name of 1 to 40 of {@code a-z}, {@code 0-9} and {@code _}
   * @return whether this call set it; false means that an earlier one did
   * @throws Exception if the store cannot tell
   */
  boolean setOnce(String id, String step) throws Exception;
}
