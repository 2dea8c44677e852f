package io.github.babelqueue.guard;

/**
 * Atomic claims: at most one live lease on an id (contract, section 3).
 *
 * <p>An id is absent, leased or marked, and a mark counts before a lease. All times are the store's
 * own. Where mark and lease are two records, a claim takes the lease first and looks for the mark
 * second; a completion writes the mark first and drops the lease second. Exceptions are those of
 * {@link Store}.
 */
public interface Claims {
  /**
   * Takes the lease, if the id is absent or its lease has lapsed. Of any number of calls at once,
   * one wins. An outcome that stays unknown is {@link StoreUnavailableException}, never {@link
   * ClaimOutcome.Busy}.
   *
   * @param id a usable id
   * @return what the id was found to be
   * @throws Exception if the store cannot tell
   */
  ClaimOutcome claim(String id) throws Exception;

  /**
   * Extends the lease to its full length again, if the token owns it and it is still live. Never
   * revives a lapsed lease, and never touches a mark.
   *
   * @param id a usable id
   * @param token the token of the claim
   * @return whether the lease was still ours
   * @throws Exception if the store cannot tell
   */
  Hold renew(String id, String token) throws Exception;

  /**
   * Sets the mark, whoever holds the lease, with the mark's own retention; drops the lease if, and
   * only if, the token owns it. When an interrupt of the calling thread makes it fail, it is called
   * once more.
   *
   * @param id a usable id
   * @param token the token of the claim
   * @return whether the lease was still ours; the mark is set anyhow
   * @throws Exception if the mark is not known to be set
   */
  Hold complete(String id, String token) throws Exception;

  /**
   * Drops the lease if, and only if, the token owns it.
   *
   * @param id a usable id
   * @param token the token of the claim
   * @return whether the lease was still ours
   * @throws Exception if the store cannot tell
   */
  Hold release(String id, String token) throws Exception;
}
