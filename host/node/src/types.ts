/** The values that a guard, its stores and its callers exchange. */

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

/**
 * Why a delivery has no usable id and runs without being deduplicated
 * (contract, section 1).
 *
 * - `malformed`: the body is not one well-formed JSON object.
 * - `absent`: there is no `meta`, or a `meta` object without `id`.
 * - `unusable`: everything else.
 */
export type FailOpen = 'malformed' | 'absent' | 'unusable';

/** Whether a lease was still the caller's own when the store was asked. */
export type Hold = 'held' | 'lost';

/** What a store answers to a claim (contract, section 3). */
export type Claim =
  /** The lease is now ours, for `lengthMs`. `token` names this one acquisition. */
  | { outcome: 'won'; token: string; lengthMs: number }
  /** Another delivery holds a live lease, which has `leftMs` left. */
  | { outcome: 'busy'; leftMs: number }
  /** The id has a mark. */
  | { outcome: 'done' };

/**
 * A seen-set: the three questions that every store answers, at once or by a
 * promise.
 *
 * A store keeps ids apart character for character. One that cannot tell
 * throws (or rejects with) {@link StoreUnavailable} or {@link StoreRejected};
 * anything else that it throws counts as `StoreUnavailable`.
 */
export interface Store {
  /** Whether the id has a mark that has not expired. False for an id that is only leased. */
  seen(id: string): Awaitable<boolean>;
  /** Sets the mark and restarts its retention. Called only after a success. */
  remember(id: string): Awaitable<unknown>;
  /** Removes the mark. No mark is no error; a live lease is not touched. */
  forget(id: string): Awaitable<unknown>;
}

/**
 * A store with atomic claims (contract, section 3). All times are the store's
 * own.
 */
export interface ClaimingStore extends Store {
  /** Takes the lease if the id is absent or its lease has lapsed; a fresh token each time. */
  claim(id: string): Awaitable<Claim>;
  /** Extends our own live lease to its full length, and never revives a lapsed one. */
  renew(id: string, token: string): Awaitable<Hold>;
  /** Sets the mark, whoever holds the lease; drops the lease if the token owns it. */
  complete(id: string, token: string): Awaitable<Hold>;
  /** Drops the lease if the token owns it. */
  release(id: string, token: string): Awaitable<Hold>;
}

/** A store that can mark one step before its effect (contract, section 4). */
export interface MarkingStore extends Store {
  /**
   * Sets the step's own mark, in one atomic step together with its retention,
   * and says whether this call set it. Never sent twice by itself.
   *
   * Steps need a retention: a store that keeps its marks for ever throws
   * {@link StoreRejected}, and sends nothing.
   */
  setOnce(id: string, step: string): Awaitable<boolean>;
}

/** A delivery's body: the envelope's bytes (a `Buffer` is one) or its text. */
export type Body = string | Uint8Array;

/** Transport headers. Only the presence of `bq-replay-bypass` matters here. */
export type DeliveryHeaders = Readonly<Record<string, unknown>> | { has(name: string): boolean };

/**
 * One hand-over of a message: its body; or its body with the transport's
 * headers; or an id that is known already, in place of the body.
 */
export type Delivery =
  | Body
  | { body: Body; headers?: DeliveryHeaders | undefined }
  | { id: string; headers?: DeliveryHeaders | undefined };

/** What became of a delivery. Anything but `parked` is to be acknowledged. */
export type Result<T = unknown> =
  | {
      /** The handler ran and succeeded. */
      status: 'ran';
      /** The delivery's id; null where it failed open. */
      id: string | null;
      /** Why there is no usable id; null where there is one. */
      failOpen: FailOpen | null;
      /** What the handler returned. */
      value: T;
      /** Whether the mark has been set. */
      marked: boolean;
      /**
       * Why the mark is missing although the handler succeeded; null unless it
       * is. A redelivery may run again. Never thrown: the effect has happened.
       */
      markError: Error | null;
      /** The lease had been lost before the end, so another delivery may have run meanwhile. */
      late: boolean;
    }
  /** The id is marked: the handler was not called. */
  | { status: 'skipped'; id: string }
  /**
   * Another delivery holds the id: the handler was not called. Do not
   * acknowledge, deliver again later (`leftMs` is what its lease has left), and
   * do not count it as a failed attempt.
   */
  | { status: 'parked'; id: string; leftMs: number };
