/** What is thrown when the guard cannot decide (contract, section 7). */

/**
 * The store gave no answer. The handler did not run, and the delivery must not
 * be acknowledged.
 */
export abstract class StoreError extends Error {
  abstract readonly kind: 'unavailable' | 'rejected';
}

/**
 * The store cannot be reached, timed out, is loading, read-only or failing
 * over. Retrying the delivery later is right.
 */
export class StoreUnavailable extends StoreError {
  override readonly name = 'StoreUnavailable';
  readonly kind = 'unavailable';
}

/**
 * The store was reached and refused, for a reason that time does not mend. An
 * operator has to act; the message says on what.
 */
export class StoreRejected extends StoreError {
  override readonly name = 'StoreRejected';
  readonly kind = 'rejected';
}

/**
 * The guard itself could not decide: the body is over the limit, or the
 * component trapped. Neither run nor skipped; the next delivery is decided
 * normally.
 */
export class GuardError extends Error {
  override readonly name = 'GuardError';
  readonly kind = 'guard';
}

/** What a store threw, as an error of the store. */
export function storeError(thrown: unknown): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const text = thrown instanceof Error ? thrown.message : describe(thrown);
  return new StoreUnavailable(`the store failed: ${text}`, { cause: thrown });
}

/** A value in a message. Not every value can be turned into text. */
export function describe(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}
