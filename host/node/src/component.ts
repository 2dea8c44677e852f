/**
 * The decision: the WebAssembly core module, called through the canonical ABI.
 *
 * One call of it asks the store at most one question. The imports only note
 * the question and give the answer that the caller supposes; the real store is
 * asked after the call has returned, and where it answers otherwise, a second
 * call is made with the true answer. So nothing waits, throws or calls back
 * inside a call.
 */
import * as embedded from './embedded.js';
import { GuardError } from './errors.js';
import { Instance, Rejection } from './instance.js';
import type { Answer, Decision, Outcome, Question, Settled, Ticket } from './instance.js';
import type { Body, Hold } from './types.js';

/** What a call returned, and the question it asked, if any. */
export interface Call<T> {
  result: T;
  question: Question | null;
}

/**
 * Without a type checker, anything can be handed over as an id. It is never
 * turned into a string; the component judges something of the same kind.
 */
const NO_ID = '{"meta":{}}';
const NOT_A_STRING = '{"meta":{"id":null}}';
const UNUSABLE = '';

/** An instance whose memory has grown beyond this, by a large body, is not kept. */
const KEPT_BYTES = 1 << 20;

/** The component of one world, as a pool of instances of its core module. */
export class Component {
  readonly #module: WebAssembly.Module;
  readonly #idle: Instance[] = [];

  constructor(module: WebAssembly.Module) {
    this.#module = module;
  }

  decide(body: Body, answer: Answer): Call<Decision> {
    return this.#call('decide', answer, (it) => it.decide(body));
  }

  decideId(id: unknown, answer: Answer): Call<Decision> {
    if (typeof id !== 'string') return this.decide(id === undefined ? NO_ID : NOT_A_STRING, answer);
    return this.#call('decide-id', answer, (it) => it.decideId(id));
  }

  settle(ticket: Ticket, outcome: Outcome, answer: Answer): Call<Settled> {
    return this.#call('settle', answer, (it) => it.settle(ticket, outcome));
  }

  renew(ticket: Ticket, answer: Answer): Call<Hold> {
    return this.#call('renew', answer, (it) => it.renew(ticket));
  }

  forget(id: unknown, answer: Answer): Call<undefined> {
    // The component takes the well-formedness of these two on trust.
    const key = isText(id) ? id : UNUSABLE;
    return this.#call('forget', answer, (it) => it.forget(key));
  }

  /** Only in the world `claiming`. */
  once(ticket: Ticket, step: unknown, answer: Answer): Call<boolean> {
    const name = isText(step) ? step : UNUSABLE;
    return this.#call('once', answer, (it) => it.once(ticket, name));
  }

  /**
   * Makes one call in an instance of its own. A trap breaks the instance, some
   * of them without a trace, so it comes back only after a whole call.
   */
  #call<T>(name: string, answer: Answer, call: (instance: Instance) => T | Rejection): Call<T> {
    let result, question, instance;
    try {
      instance = this.#idle.pop() ?? new Instance(this.#module);
      instance.answer = answer;
      instance.question = null;
      result = call(instance);
      question = instance.question;
    } catch (cause) {
      throw new GuardError(`the guard's component failed in ${name}: ${String(cause)}`, { cause });
    }
    if (instance.size <= KEPT_BYTES) this.#idle.push(instance);
    if (result instanceof Rejection) throw result.error();
    return { result, question };
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed();
}

const components: Partial<Record<World, Component>> = {};

/** The worlds that a component is made for. */
export type World = 'plain' | 'claiming';

/** The component of a world: compiled once, shared by every guard of this thread. */
export function component(world: World): Component {
  return (components[world] ??= new Component(
    new WebAssembly.Module(Uint8Array.from(atob(embedded[world]), (c) => c.charCodeAt(0))),
  ));
}
