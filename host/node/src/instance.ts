/**
 * One instance of a core module, called through the canonical ABI.
 *
 * Offsets and flat forms are those that the component model's canonical ABI
 * gives the types of the package `babelqueue:guard`.
 */
import { StoreRejected, StoreUnavailable } from './errors.js';
import { decoder, encoder, illFormedToBytes, MOST_BYTES } from './text.js';
import type { Body, Claim, FailOpen, Hold } from './types.js';

/** What settling has to know of a decision. */
export type Ticket =
  | { kind: 'open'; reason: FailOpen }
  | { kind: 'seen'; id: string }
  | { kind: 'leased'; id: string; token: string; lengthMs: number };

/** What to do with a delivery. */
export type Decision =
  | { kind: 'run'; ticket: Ticket }
  | { kind: 'skip'; id: string }
  | { kind: 'park'; id: string; leftMs: number };

/** How a handler ended. */
export type Outcome = 'succeeded' | 'failed';

/** What settling did. */
export type Settled = 'nothing' | 'marked' | 'marked-late' | 'released' | 'lease-lost';

/** What the component asks of its store. */
export type Question =
  | { ask: 'seen' | 'remember' | 'forget' | 'claim'; id: string }
  | { ask: 'renew' | 'complete' | 'release'; id: string; token: string }
  | { ask: 'setOnce'; id: string; step: string };

/** A store's answer: to `seen` and `setOnce`, to `claim`, to the other three about leases. */
export type Answer = boolean | Claim | Hold | undefined;

const OUTCOMES: Outcome[] = ['succeeded', 'failed'];
const REASONS: FailOpen[] = ['malformed', 'absent', 'unusable'];
const SETTLED: Settled[] = ['nothing', 'marked', 'marked-late', 'released', 'lease-lost'];
const HOLDS: Hold[] = ['held', 'lost'];

/** An error that the component itself made. */
export class Rejection {
  constructor(
    readonly unavailable: boolean,
    readonly message: string,
  ) {}

  error() {
    return this.unavailable ? new StoreUnavailable(this.message) : new StoreRejected(this.message);
  }
}

type Realloc = (old: number, size: number, align: number, wanted: number) => number;
type Exported = (...parameters: (number | bigint)[]) => number;

/** The flat form of the variant `ticket`: its case, then id, token and length, or zeros. */
type FlatTicket = [number, number, number, number, number, bigint];

/** The exports of a core module as functions of this language. One call at a time. */
export class Instance {
  answer: Answer;
  question: Question | null = null;
  readonly #memory: WebAssembly.Memory;
  readonly #realloc: Realloc;
  readonly #exports: Record<string, [call: Exported, post: Exported]> = {};
  #bytes = new Uint8Array();
  #view = new DataView(new ArrayBuffer(0));

  constructor(module: WebAssembly.Module) {
    const { exports } = new WebAssembly.Instance(module, this.#imports());
    this.#memory = exports.memory as WebAssembly.Memory;
    this.#realloc = exports.cabi_realloc as Realloc;
    for (const name of Object.keys(exports)) {
      const [, item] = /^babelqueue:guard\/.*#(.*)$/.exec(name) ?? [];
      if (item === undefined) continue;
      this.#exports[item] = [exports[name] as Exported, exports[`cabi_post_${name}`] as Exported];
    }
    this.#refresh();
  }

  get size(): number {
    return this.#memory.buffer.byteLength;
  }

  decide(body: Body): Decision | Rejection {
    return this.#call('decide', this.#lower(body), this.#decision);
  }

  decideId(id: string): Decision | Rejection {
    return this.#call('decide-id', this.#lower(id), this.#decision);
  }

  settle(ticket: Ticket, outcome: Outcome): Settled | Rejection {
    const parameters = [...this.#lowerTicket(ticket), OUTCOMES.indexOf(outcome)];
    return this.#call('settle', parameters, (at) => this.#case(at + 4, SETTLED));
  }

  renew(ticket: Ticket): Hold | Rejection {
    return this.#call('renew', this.#lowerTicket(ticket), (at) => this.#case(at + 4, HOLDS));
  }

  forget(id: string): undefined | Rejection {
    return this.#call('forget', this.#lower(id), () => undefined);
  }

  once(ticket: Ticket, step: string): boolean | Rejection {
    const parameters = [...this.#lowerTicket(ticket), ...this.#lower(step)];
    return this.#call('once', parameters, (at) => this.#bytes[at + 4] === 1);
  }

  /** Calls, reads the result, and has the component free it. */
  #call<T>(name: string, parameters: (number | bigint)[], read: (at: number) => T): T | Rejection {
    const [call, post] = this.#exports[name]!;
    const at = call(...parameters);
    this.#refresh();
    const failed = this.#bytes[at] === 1;
    // A decision holds 64-bit numbers, which place what follows at eight.
    const result = failed ? this.#rejection(at + (read === this.#decision ? 8 : 4)) : read(at);
    post(at);
    return result;
  }

  #rejection(at: number): Rejection {
    return new Rejection(this.#bytes[at] === 0, this.#lift(at + 4));
  }

  readonly #decision = (at: number): Decision => {
    switch (this.#bytes[at + 8]) {
      case 0:
        return { kind: 'run', ticket: this.#ticket(at + 16) };
      case 1:
        return { kind: 'skip', id: this.#id(at + 16) };
      default:
        return { kind: 'park', id: this.#id(at + 16), leftMs: this.#milliseconds(at + 24) };
    }
  };

  #ticket(at: number): Ticket {
    switch (this.#bytes[at]) {
      case 0:
        return { kind: 'open', reason: this.#case(at + 8, REASONS) };
      case 1:
        return { kind: 'seen', id: this.#id(at + 8) };
      default: {
        const id = this.#id(at + 8);
        return {
          kind: 'leased',
          id,
          token: this.#lift(at + 16),
          lengthMs: this.#milliseconds(at + 24),
        };
      }
    }
  }

  /** The id of a decision is the one that was asked for, and need not be read again. */
  #id(at: number): string {
    return this.question?.id ?? this.#lift(at);
  }

  #case<T>(at: number, names: T[]): T {
    return names[this.#bytes[at]!]!;
  }

  #milliseconds(at: number): number {
    return Number(this.#view.getBigUint64(at, true));
  }

  #lift(at: number): string {
    return this.#text(this.#view.getUint32(at, true), this.#view.getUint32(at + 4, true));
  }

  #text(start: number, length: number): string {
    this.#refresh();
    return decoder.decode(this.#bytes.subarray(start, start + length));
  }

  #lower(value: Body): [number, number] {
    if (typeof value !== 'string') return this.#lowerBytes(value);
    if (!value.isWellFormed()) return this.#lowerBytes(illFormedToBytes(value));
    // As ASCII takes: nearly every envelope does.
    let size = value.length;
    let start = this.#allocate(size);
    const { read, written } = encoder.encodeInto(value, this.#bytes.subarray(start, start + size));
    if (read === value.length) return [start, written];
    const most = written + (value.length - read) * MOST_BYTES;
    start = this.#reallocate(start, size, most);
    const rest = this.#bytes.subarray(start + written, start + most);
    size = written + encoder.encodeInto(value.slice(read), rest).written;
    return [this.#reallocate(start, most, size), size];
  }

  #lowerBytes(bytes: Uint8Array): [number, number] {
    const start = this.#allocate(bytes.length);
    this.#bytes.set(bytes, start);
    return [start, bytes.length];
  }

  #lowerTicket(ticket: Ticket): FlatTicket {
    switch (ticket.kind) {
      case 'open':
        return [0, REASONS.indexOf(ticket.reason), 0, 0, 0, 0n];
      case 'seen':
        return [1, ...this.#lower(ticket.id), 0, 0, 0n];
      case 'leased':
        return [
          2,
          ...this.#lower(ticket.id),
          ...this.#lower(ticket.token),
          BigInt(ticket.lengthMs),
        ];
    }
  }

  #allocate(size: number): number {
    return this.#reallocate(0, 0, size);
  }

  #reallocate(start: number, size: number, wanted: number): number {
    const moved = this.#realloc(start, size, 1, wanted) >>> 0;
    this.#refresh();
    if (moved + wanted > this.#bytes.length) throw new RangeError('no such place in the memory');
    return moved;
  }

  /** A memory that has grown has a new buffer. */
  #refresh(): void {
    if (this.#bytes.buffer === this.#memory.buffer) return;
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }

  /** The store's functions: each notes its question and gives the supposed answer. */
  #imports(): WebAssembly.Imports {
    const ok = (at: number, value = 0) => {
      this.#bytes[at] = 0;
      this.#bytes[at + 4] = value;
    };
    const plain =
      (ask: 'seen' | 'remember' | 'forget') => (id: number, size: number, at: number) => {
        this.question = { ask, id: this.#text(id, size) };
        ok(at, Number(this.answer === true));
      };
    const ofLease =
      (ask: 'renew' | 'complete' | 'release') =>
      (id: number, size: number, token: number, tokenSize: number, at: number) => {
        this.question = { ask, id: this.#text(id, size), token: this.#text(token, tokenSize) };
        ok(at, HOLDS.indexOf(this.answer as Hold));
      };
    return {
      'babelqueue:guard/store@0.1.0': {
        seen: plain('seen'),
        remember: plain('remember'),
        forget: plain('forget'),
      },
      'babelqueue:guard/claims@0.1.0': {
        claim: (id: number, size: number, at: number) => {
          this.question = { ask: 'claim', id: this.#text(id, size) };
          this.#writeClaim(at, this.answer as Claim);
        },
        renew: ofLease('renew'),
        complete: ofLease('complete'),
        release: ofLease('release'),
      },
      'babelqueue:guard/marker@0.1.0': {
        'set-once': (id: number, size: number, step: number, stepSize: number, at: number) => {
          this.question = {
            ask: 'setOnce',
            id: this.#text(id, size),
            step: this.#text(step, stepSize),
          };
          ok(at, Number(this.answer === true));
        },
      },
    };
  }

  #writeClaim(at: number, claim: Claim): void {
    // First, since it may grow the memory.
    const [token, size] = claim.outcome === 'won' ? this.#lower(claim.token) : [0, 0];
    const view = this.#view;
    view.setUint8(at, 0);
    switch (claim.outcome) {
      case 'won':
        view.setUint8(at + 8, 0);
        view.setUint32(at + 16, token, true);
        view.setUint32(at + 20, size, true);
        view.setBigUint64(at + 24, BigInt(claim.lengthMs), true);
        return;
      case 'busy':
        view.setUint8(at + 8, 1);
        view.setBigUint64(at + 16, BigInt(claim.leftMs), true);
        return;
      case 'done':
        view.setUint8(at + 8, 2);
    }
  }
}
