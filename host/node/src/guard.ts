/** One delivery, from the decision to the settling. */
import { Driver, isThenable } from './driver.js';
import { describe, GuardError } from './errors.js';
import type { Decision, Ticket } from './instance.js';
import { Renewal } from './renewal.js';
import { whole } from './settings.js';
import { utf8Length } from './text.js';
import type {
  Awaitable,
  Body,
  ClaimingStore,
  Delivery,
  DeliveryHeaders,
  FailOpen,
  Result,
  Store,
} from './types.js';

/** Set on a message that is replayed on purpose (contract, section 6). */
const REPLAY_HEADER = 'bq-replay-bypass';

const MIB = 1 << 20;

/** Settings of a guard. */
export interface GuardOptions {
  /** Claims an id before its handler runs, so that copies of it park (contract, section 3). */
  claim?: boolean | undefined;
  /** The largest body in bytes, 16 MiB unless set. A larger one is a {@link GuardError}. */
  bodyLimit?: number | undefined;
}

/** Makes the effect of deliveries happen once, by a store that remembers their ids. */
export class Guard {
  readonly #driver: Driver;
  readonly #bodyLimit: number;

  constructor(store: ClaimingStore, options: GuardOptions);
  constructor(store: Store, options?: GuardOptions & { claim?: false | undefined });
  constructor(store: Store, { claim = false, bodyLimit = 16 * MIB }: GuardOptions = {}) {
    this.#bodyLimit = whole('bodyLimit', bodyLimit, 'bytes', 1024 * MIB);
    this.#driver = new Driver(store, claim);
  }

  /**
   * Decides on a delivery, calls the handler if it is to run, and settles.
   *
   * What the handler throws or rejects with comes out unchanged, and the id
   * stays unmarked. A handler that has returned, or whose promise has been
   * fulfilled, has succeeded: work that it left running is not waited for.
   *
   * @throws {StoreError} the store could not be asked: do not acknowledge.
   * @throws {GuardError} the body is over the limit, or the component failed:
   *   do not acknowledge.
   */
  async process<T>(
    delivery: Delivery,
    handler: (context: Context) => Awaitable<T>,
  ): Promise<Result<T>> {
    const message = isBody(delivery) ? { body: delivery } : parse(delivery);
    const asked = performance.now();
    const decided =
      'body' in message ? this.#decide(message.body) : this.#driver.decideId(message.id);
    const decision = isThenable(decided) ? await decided : decided;
    switch (decision.kind) {
      case 'skip':
        return { status: 'skipped', id: decision.id };
      case 'park':
        return { status: 'parked', id: decision.id, leftMs: decision.leftMs };
      case 'run':
        return this.#run(decision.ticket, handler, isReplay(message.headers), asked);
    }
  }

  /**
   * Removes the mark of an id, so that its next delivery runs. A live lease is
   * not touched.
   *
   * @throws {StoreError} `StoreRejected` also for an id that is not usable.
   */
  async forget(id: string): Promise<void> {
    await this.#driver.forget(id);
  }

  #decide(body: Body): Awaitable<Decision> {
    const size = typeof body === 'string' ? utf8Length(body, this.#bodyLimit) : body.length;
    if (size > this.#bodyLimit) {
      throw new GuardError(
        `the body is larger than ${String(this.#bodyLimit)} bytes: raise bodyLimit, or send less`,
      );
    }
    return this.#driver.decide(body);
  }

  async #run<T>(
    ticket: Ticket,
    handler: (context: Context) => Awaitable<T>,
    replay: boolean,
    asked: number,
  ): Promise<Result<T>> {
    const lost = new LeaseLoss();
    const renewal =
      ticket.kind === 'leased' ? new Renewal(this.#driver, ticket, asked, lost.tell) : null;
    const context = new Context(this.#driver, ticket, replay, lost);
    let value: T;
    try {
      const returned = handler(context);
      value = isThenable(returned) ? await returned : returned;
    } catch (thrown) {
      renewal?.stop();
      await this.#settleFailed(ticket);
      throw thrown;
    }
    renewal?.stop();
    return { status: 'ran', value, ...(await this.#settleSucceeded(ticket)) };
  }

  async #settleFailed(ticket: Ticket): Promise<void> {
    try {
      await this.#driver.settle(ticket, 'failed');
    } catch {
      // A lease that cannot be given back lapses; the handler's own failure counts.
    }
  }

  async #settleSucceeded(ticket: Ticket) {
    const id = idOf(ticket);
    const failOpen = reasonOf(ticket);
    try {
      const settling = this.#driver.settle(ticket, 'succeeded');
      const settled = isThenable(settling) ? await settling : settling;
      const late = settled === 'marked-late';
      return { id, failOpen, marked: late || settled === 'marked', markError: null, late };
    } catch (thrown) {
      return { id, failOpen, marked: false, markError: thrown as Error, late: false };
    }
  }
}

/** Tells once that a lease is lost; the signal is made only if it is asked for. */
class LeaseLoss {
  #controller: AbortController | undefined;
  #lost = false;

  readonly tell = (): void => {
    this.#lost = true;
    this.#controller?.abort(LeaseLoss.#reason());
  };

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#lost) this.#controller.abort(LeaseLoss.#reason());
    return this.#controller.signal;
  }

  static #reason(): DOMException {
    return new DOMException('the lease on this delivery is lost', 'AbortError');
  }
}

/** What a handler may know of its delivery. */
export class Context {
  readonly #driver: Driver;
  readonly #ticket: Ticket;
  readonly #lost: LeaseLoss;
  /** Whether this is a deliberate replay, whose external effects may have happened already. */
  readonly replay: boolean;

  /** @internal */
  constructor(driver: Driver, ticket: Ticket, replay: boolean, lost: LeaseLoss) {
    this.#driver = driver;
    this.#ticket = ticket;
    this.#lost = lost;
    this.replay = replay;
  }

  /** The delivery's id; null where it failed open. */
  get id(): string | null {
    return idOf(this.#ticket);
  }

  /** Why there is no usable id; null where there is one. */
  get failOpen(): FailOpen | null {
    return reasonOf(this.#ticket);
  }

  /** Aborted when the lease is lost: another delivery of the same id may be running. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Whether the named step is to run now; true once for each id and step. Its
   * mark is set before the effect and not taken back: a step is rather lost
   * than repeated (contract, section 4). True without a usable id.
   *
   * @param step 1 to 40 of a-z, 0-9 and _.
   * @throws {StoreError} do not run the step. A store that keeps its marks for
   *   ever rejects every step.
   */
  async once(step: string): Promise<boolean> {
    return this.#driver.once(this.#ticket, step);
  }
}

/**
 * A handler, guarded: a function that takes a delivery and calls
 * `handler(delivery, context)` if it is to run.
 */
export function wrap<D extends Delivery, T>(
  store: ClaimingStore,
  handler: (delivery: D, context: Context) => Awaitable<T>,
  options: GuardOptions,
): (delivery: D) => Promise<Result<T>>;
export function wrap<D extends Delivery, T>(
  store: Store,
  handler: (delivery: D, context: Context) => Awaitable<T>,
  options?: GuardOptions & { claim?: false | undefined },
): (delivery: D) => Promise<Result<T>>;
export function wrap<D extends Delivery, T>(
  store: Store,
  handler: (delivery: D, context: Context) => Awaitable<T>,
  options: GuardOptions = {},
): (delivery: D) => Promise<Result<T>> {
  // A guard checks at once whether its store has what the options want.
  const guard = new Guard(store as ClaimingStore, options);
  return (delivery) => guard.process(delivery, (context) => handler(delivery, context));
}

function idOf(ticket: Ticket): string | null {
  return ticket.kind === 'open' ? null : ticket.id;
}

function reasonOf(ticket: Ticket): FailOpen | null {
  return ticket.kind === 'open' ? ticket.reason : null;
}

type Message = { headers?: DeliveryHeaders | undefined } & ({ body: Body } | { id: unknown });

function parse(delivery: Exclude<Delivery, Body>): Message {
  if (delivery !== null && typeof delivery === 'object') {
    if ('body' in delivery && isBody(delivery.body)) return delivery;
    if ('id' in delivery && !('body' in delivery)) return delivery;
  }
  throw new TypeError(
    `a delivery is a string, a Uint8Array, { body } with one of these, or { id }, not ${describe(delivery)}`,
  );
}

function isBody(value: unknown): value is Body {
  if (typeof value === 'string') return true;
  // Unlike `instanceof`, this knows the arrays of other realms, as test runners make them.
  return ArrayBuffer.isView(value) && tagOf(value) === 'Uint8Array';
}

function tagOf(value: object): unknown {
  return (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
}

function isReplay(headers: DeliveryHeaders | undefined): boolean {
  if (headers === undefined || headers === null) return false;
  if (typeof headers.has === 'function')
    return (headers as { has(name: string): boolean }).has(REPLAY_HEADER);
  return Object.hasOwn(headers, REPLAY_HEADER);
}
