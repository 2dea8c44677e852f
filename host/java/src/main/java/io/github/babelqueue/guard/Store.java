package io.github.babelqueue.guard;

/**
 * The seen-set: the three questions that every store answers (contract, section 2).
 *
 * <p>A store keeps ids apart exactly as they are: no trimming, no case folding, no Unicode
 * normalisation. It is called by many threads at once, and may block.
 *
 * <p>A store that cannot answer throws {@link StoreUnavailableException} or {@link
 * StoreRejectedException}, which reach the guard's caller unchanged. Any other exception reaches
 * them as the cause of a {@link StoreUnavailableException}, and an {@link Error} unchanged.
 */
public interface Store {
  /**
   * Whether the id has a mark that has not expired. Must not guess, and must be false for an id
   * that is only leased.
   *
   * @param id a usable id
   * @return whether it was processed
   * @throws Exception if the store cannot tell
   */
  boolean seen(String id) throws Exception;

  /**
   * Sets the mark, and starts its retention again if it is there. Called after the handler has
   * succeeded. When an interrupt of the calling thread makes it fail, it is called once more.
   *
   * @param id a usable id
   * @throws Exception if the mark is not known to be set
   */
  void remember(String id) throws Exception;

  /**
   * Removes the mark, so that the next delivery runs. No mark is no error; a live lease is not
   * touched.
   *
   * @param id a usable id
   * @throws Exception if the mark is not known to be gone
   */
  void forget(String id) throws Exception;
}
