/**
 * A store in Redis (6.2 and later) or Valkey, over node-redis or ioredis.
 *
 * It writes the keys of the contract's section 8, so that consumers in other
 * languages share it.
 *
 * @packageDocumentation
 */
import { release, renew } from './embedded.js';
import { describe, StoreRejected } from './errors.js';
import { connect, connectionOf, createClient, isReply, redisError } from './redis-client.js';
import type { Command, Connection, Deadline, RedisClient } from './redis-client.js';
import {
  duration,
  LEASE_MS,
  LONGEST_TIMER_MS,
  RETENTION_MS,
  retention,
  stepRetention,
} from './settings.js';
import type { Retention } from './settings.js';
import type { Claim, ClaimingStore, Hold, MarkingStore } from './types.js';

export type { IoRedisClient, NodeRedisClient, RedisClient } from './redis-client.js';

/** Settings of a {@link RedisStore}. */
export interface RedisStoreOptions {
  /** What all keys begin with; `bq:` unless set. */
  prefix?: string | undefined;
  /**
   * The consumer's name, `[a-z0-9_]{1,24}`. Two consumers that each have to
   * handle a message need two names, or the mark of one makes the other skip.
   */
  consumer?: string | undefined;
  /**
   * How long marks and steps are kept, in milliseconds; 14 days unless set.
   * With `'forever'`, steps are rejected.
   */
  retentionMs?: Retention | undefined;
  /** How long a lease lasts, in milliseconds; 60,000 unless set. */
  leaseMs?: number | undefined;
  /** How long to wait for an answer, in milliseconds; 5,000 unless set. */
  timeoutMs?: number | undefined;
}

const NAME = /^[a-z0-9_]{1,24}$/;

/** What a key stands for. */
type Kind = 'idemp' | 'lease' | 'once';

/** A reply, or the error in its place. */
type Reply = { value: unknown } | { error: unknown };

/**
 * Keeps marks, leases and steps in Redis or Valkey.
 *
 * Nothing waits longer than `timeoutMs`; an answer that has not come by then,
 * and a server that has become read-only, also drop the client's connection.
 */
export class RedisStore implements ClaimingStore, MarkingStore {
  readonly #connection: Connection;
  readonly #before: (kind: Kind) => string;
  readonly #kept: Retention;
  readonly #leaseMs: number;
  readonly #timeoutMs: number;
  #own: { destroy(): void } | undefined;

  /**
   * @param client a connected client of `redis` or `ioredis`, which stays the
   *   caller's to configure and to close.
   */
  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    const { prefix = 'bq:', consumer, timeoutMs = 5000 } = options;
    const { retentionMs = RETENTION_MS, leaseMs = LEASE_MS } = options;
    if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
      throw new TypeError(`prefix must be well-formed text, not ${describe(prefix)}`);
    }
    if (consumer !== undefined && !(typeof consumer === 'string' && NAME.test(consumer))) {
      throw new RangeError(`consumer must be 1 to 24 of a-z, 0-9 and _, not ${describe(consumer)}`);
    }
    this.#before = (kind) => `${prefix}${kind}${consumer === undefined ? '' : `@${consumer}`}:`;
    this.#kept = retention(retentionMs);
    this.#leaseMs = duration('leaseMs', leaseMs);
    this.#timeoutMs = duration('timeoutMs', timeoutMs, LONGEST_TIMER_MS);
    this.#connection = connectionOf(client);
  }

  /**
   * A store with a client of its own, of the package `redis`, which reconnects
   * by itself and is closed by {@link close}.
   *
   * @throws {StoreError} there is no connection within `timeoutMs`.
   */
  static async connect(url: string, options?: RedisStoreOptions): Promise<RedisStore> {
    const client = await createClient(url);
    const store = new RedisStore(client, options);
    await connect(client, store.#timeoutMs);
    store.#own = client;
    return store;
  }

  /** Closes what the store has opened; not a client that it was given. */
  close(): void {
    this.#connection.close();
    this.#own?.destroy();
    this.#own = undefined;
  }

  /**
   * What an operator should know of the server's settings: with an eviction
   * policy, it forgets marks when it runs short of memory. Worth asking for
   * when a consumer starts.
   */
  async concerns(): Promise<string[]> {
    const info = text(await this.#value(['INFO', 'memory'])) ?? '';
    const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
    if (policy === 'noeviction') return [];
    return [
      `maxmemory-policy is ${policy}: short of memory, the server forgets which messages were ` +
        'processed, and they run again; noeviction is right',
    ];
  }

  async seen(id: string): Promise<boolean> {
    return (await this.#value(['GET', this.#mark(id)])) !== null;
  }

  async remember(id: string): Promise<void> {
    await this.#value(this.#setMark(id));
  }

  async forget(id: string): Promise<void> {
    // Unlike `DEL`, it does not remove what is not a mark.
    await this.#value(['GETDEL', this.#mark(id)]);
  }

  async claim(id: string): Promise<Claim> {
    const lease = this.#lease(id);
    const token = randomToken();
    // The lease is taken first and the mark looked for second, whoever holds the lease.
    const commands = [
      ['SET', lease, token, 'NX', 'PX', String(this.#leaseMs)],
      ['GET', lease],
      ['PTTL', lease],
      ['GET', this.#mark(id)],
    ];
    let replies = await this.#exchange(commands);
    // Once more with the same token: finding it means that the claim got through.
    if (replies.some(isLost)) replies = await this.#exchange(commands);
    try {
      const [set, holder, left, mark] = commands.map((command, i) => valueOf(command, replies[i]!));
      if (mark !== null) {
        if (set !== null || text(holder) === token) await this.#giveBack(id, token);
        return { outcome: 'done' };
      }
      if (set !== null || text(holder) === token) {
        return { outcome: 'won', token, lengthMs: this.#leaseMs };
      }
      // No time is left of a lease that has ended between the commands.
      return { outcome: 'busy', leftMs: Math.max(1, Number(left)) };
    } catch (error) {
      await this.#giveBack(id, token);
      throw error;
    }
  }

  async renew(id: string, token: string): Promise<Hold> {
    return hold(
      await this.#value(['EVAL', renew, '1', this.#lease(id), token, String(this.#leaseMs)]),
    );
  }

  async complete(id: string, token: string): Promise<Hold> {
    const commands = [this.#setMark(id), this.#drop(id, token)] as const;
    const [mark, lease] = await this.#exchange(commands);
    valueOf(commands[0], mark!);
    // The mark counts. A lease that could not be dropped lapses.
    return 'error' in lease! ? 'held' : hold(lease!.value);
  }

  async release(id: string, token: string): Promise<Hold> {
    return hold(await this.#value(this.#drop(id, token)));
  }

  /** @throws {StoreRejected} marks are kept for ever; nothing is sent. */
  async setOnce(id: string, step: string): Promise<boolean> {
    const kept = stepRetention('redis', this.#kept);
    const key = this.#key('once', `${step}:${id}`);
    const command = ['SET', key, '1', 'NX', 'PX', String(kept)];
    const [reply] = await this.#exchange([command], 'once');
    if (valueOf(command, reply!) !== null) return true;
    // Refuses a key of another type.
    await this.#value(['GET', key]);
    return false;
  }

  #mark(id: string): string {
    return this.#key('idemp', id);
  }

  #lease(id: string): string {
    return this.#key('lease', id);
  }

  #key(kind: Kind, name: string): string {
    // The client would replace what UTF-8 cannot hold, and make two ids one.
    if (!name.isWellFormed()) throw new StoreRejected('redis: a key must be well-formed text');
    return this.#before(kind) + name;
  }

  #setMark(id: string): Command {
    // `GET` makes it refuse, rather than overwrite, a key of another type.
    const expiry = this.#kept === 'forever' ? [] : ['PX', String(this.#kept)];
    return ['SET', this.#mark(id), '1', ...expiry, 'GET'];
  }

  #drop(id: string, token: string): Command {
    return ['EVAL', release, '1', this.#lease(id), token];
  }

  /** As well as can be: what is not given back lapses. */
  async #giveBack(id: string, token: string): Promise<void> {
    await this.#exchange([this.#drop(id, token)]);
  }

  async #value(command: Command): Promise<unknown> {
    const [reply] = await this.#exchange([command]);
    return valueOf(command, reply!);
  }

  /** Sends commands in one go, in their order, and waits no longer than is set. */
  async #exchange(commands: readonly Command[], how: 'again' | 'once' = 'again'): Promise<Reply[]> {
    const deadline = new Timeout();
    const late = new Promise<Reply[]>((resolve) => {
      deadline.start(this.#timeoutMs, (error) => {
        this.#connection.reconnect();
        resolve(commands.map(() => ({ error })));
      });
    });
    const replies = Promise.all(commands.map((command) => this.#send(command, how, deadline)));
    try {
      return await Promise.race([replies, late]);
    } finally {
      deadline.stop();
    }
  }

  async #send(command: Command, how: 'again' | 'once', deadline: Timeout): Promise<Reply> {
    const connection = this.#connection;
    try {
      const sent =
        how === 'once'
          ? connection.sendOnce(command, deadline)
          : connection.send(command, deadline);
      return { value: await sent };
    } catch (error) {
      // The server has been demoted; another one may have its name by now.
      if (isReply(error) && error.message.startsWith('READONLY')) connection.reconnect();
      return { error };
    }
  }
}

class Timeout implements Deadline {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;

  start(ms: number, late: (error: Error) => void): void {
    this.#timer = setTimeout(() => {
      const error = new Error(`no answer within ${String(ms)} ms`);
      this.#abort?.abort(error);
      late(error);
    }, ms);
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    return this.#abort.signal;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Whether nobody knows if the command got through. */
function isLost(reply: Reply): boolean {
  return 'error' in reply && !isReply(reply.error);
}

function valueOf(command: Command, reply: Reply): unknown {
  if (!('error' in reply)) return reply.value;
  const key = command[0] === 'EVAL' ? command[3] : command[1];
  throw redisError(`${command[0]!} ${key!}`, reply.error);
}

function hold(reply: unknown): Hold {
  return Number(reply) === 1 ? 'held' : 'lost';
}

/** A client may be set to give bytes. */
function text(reply: unknown): string | null {
  return reply === null ? null : describe(reply);
}

function randomToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
