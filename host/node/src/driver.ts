/**
 * Asks the real store what the component wants to know.
 *
 * The component is called supposing an answer; its question then goes to the
 * store, awaited only if the store answers by a promise. Where the true answer
 * is another than the supposed one, the component is called again with it.
 */
import { component } from './component.js';
import type { Call, Component } from './component.js';
import { describe, storeError, StoreRejected } from './errors.js';
import type { Answer, Decision, Outcome, Question, Settled, Ticket } from './instance.js';
import type { Awaitable, Body, Claim, ClaimingStore, Hold, MarkingStore, Store } from './types.js';

const BUSY: Claim = { outcome: 'busy', leftMs: 0 };

/** The component of one guard together with its store. */
export class Driver {
  readonly #store: Store & Partial<ClaimingStore & MarkingStore>;
  readonly #claims: boolean;
  readonly #component: Component;

  constructor(store: Store, claims: boolean, of = component(claims ? 'claiming' : 'plain')) {
    const functions: (keyof ClaimingStore)[] = ['seen', 'remember', 'forget'];
    if (claims) functions.push('claim', 'renew', 'complete', 'release');
    this.#store = store;
    const missing = functions.filter((name) => typeof this.#store[name] !== 'function');
    if (missing.length > 0) {
      throw new TypeError(
        `a store ${claims ? 'for claims ' : ''}has the functions ${functions.join(', ')}; ` +
          `this one lacks ${missing.join(', ')}`,
      );
    }
    this.#claims = claims;
    this.#component = of;
  }

  decide(body: Body): Awaitable<Decision> {
    return this.#decide((answer) => this.#component.decide(body, answer));
  }

  decideId(id: unknown): Awaitable<Decision> {
    return this.#decide((answer) => this.#component.decideId(id, answer));
  }

  settle(ticket: Ticket, outcome: Outcome): Awaitable<Settled> {
    const supposed = ticket.kind === 'leased' ? 'held' : undefined;
    return this.#drive(supposed, (answer) => this.#component.settle(ticket, outcome, answer));
  }

  renew(ticket: Ticket): Awaitable<Hold> {
    return this.#drive('held', (answer) => this.#component.renew(ticket, answer));
  }

  forget(id: string): Awaitable<undefined> {
    return this.#drive(undefined, (answer) => this.#component.forget(id, answer));
  }

  /** Steps need no claims of their own: any ticket will do. */
  once(ticket: Ticket, step: string): Awaitable<boolean> {
    return this.#drive(false, (answer) => component('claiming').once(ticket, step, answer));
  }

  #decide(call: (answer: Answer) => Call<Decision>): Awaitable<Decision> {
    return this.#drive(this.#claims ? BUSY : false, call, (answer, { id }) => {
      try {
        return this.#component.decideId(id, answer);
      } catch (error) {
        this.#giveBack(id, answer as Claim);
        throw error;
      }
    });
  }

  /** A claim that was won, and of which the component can make nothing, must not block others. */
  #giveBack(id: string, claim: Claim): void {
    if (!this.#claims || claim.outcome !== 'won') return;
    const { token } = claim;
    // As well as can be: a lease that is not given back lapses.
    new Promise((resolve) => {
      resolve(this.#store.release!(id, token));
    }).catch(() => undefined);
  }

  #drive<T>(
    supposed: Answer,
    call: (answer: Answer) => Call<T>,
    again: (answer: Answer, question: Question) => Call<T> = call,
  ): Awaitable<T> {
    const { result, question } = call(supposed);
    if (question === null) return result;
    const finish = (answer: Answer) =>
      answer === supposed ? result : again(answer, question).result;
    const answer = this.#ask(question);
    return isThenable(answer) ? answer.then(finish) : finish(answer);
  }

  /** The store's answer, checked; its failure as a {@link StoreError}. */
  #ask(question: Question): Awaitable<Answer> {
    let answer: unknown;
    try {
      answer = this.#call(question);
      if (isThenable(answer)) {
        return Promise.resolve(answer).then(
          (settled) => checked(question, settled),
          (thrown: unknown) => {
            throw storeError(thrown);
          },
        );
      }
    } catch (thrown) {
      throw storeError(thrown);
    }
    return checked(question, answer);
  }

  #call(question: Question): unknown {
    const store = this.#store;
    switch (question.ask) {
      case 'renew':
      case 'complete':
      case 'release':
        return store[question.ask]!(question.id, question.token);
      case 'setOnce':
        if (typeof store.setOnce !== 'function') {
          throw new StoreRejected('a step needs a store with the function setOnce');
        }
        return store.setOnce(question.id, question.step);
      case 'claim':
        return store.claim!(question.id);
      default:
        return store[question.ask](question.id);
    }
  }
}

/** Whether a value is to be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

/** Nothing is guessed from an answer that is none. */
function checked({ ask }: Question, answer: unknown): Answer {
  switch (ask) {
    case 'remember':
    case 'forget':
      return undefined;
    case 'claim':
      return isClaim(answer)
        ? answer
        : refuse(ask, "{ outcome: 'won' | 'busy' | 'done', … }", answer);
    case 'seen':
    case 'setOnce':
      return typeof answer === 'boolean' ? answer : refuse(ask, 'true or false', answer);
    default:
      return answer === 'held' || answer === 'lost'
        ? answer
        : refuse(ask, "'held' or 'lost'", answer);
  }
}

function isClaim(answer: unknown): answer is Claim {
  if (answer === null || typeof answer !== 'object') return false;
  const claim = answer as Partial<Record<string, unknown>>;
  switch (claim.outcome) {
    case 'won':
      return typeof claim.token === 'string' && isMilliseconds(claim.lengthMs);
    case 'busy':
      return isMilliseconds(claim.leftMs);
    default:
      return claim.outcome === 'done';
  }
}

function isMilliseconds(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function refuse(ask: string, wanted: string, answer: unknown): never {
  throw new StoreRejected(
    `the store's function ${ask} must answer ${wanted}, not ${describe(answer)}`,
  );
}
