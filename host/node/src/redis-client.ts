/** What the Redis store needs of a client, over node-redis and ioredis alike. */
import { StoreRejected, StoreUnavailable } from './errors.js';

/** A client of the package `redis`, made by its `createClient`. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  sendCommand(command: string[], options?: { abortSignal?: AbortSignal }): Promise<unknown>;
  connect(): Promise<unknown>;
  destroy(): void;
}

/** A client of the package `ioredis`, made by `new Redis()`. */
export interface IoRedisClient {
  readonly status: string;
  call(command: string, ...parameters: string[]): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  duplicate(options: {
    autoResendUnfulfilledCommands: false;
    maxRetriesPerRequest: 0;
  }): IoRedisClient & { on(event: 'error', listener: () => void): unknown };
}

export type RedisClient = NodeRedisClient | IoRedisClient;

/** A command and its parameters. */
export type Command = string[];

/** When an answer is too late. The signal is made only if it is asked for: it is not cheap. */
export interface Deadline {
  readonly signal: AbortSignal;
}

export interface Connection {
  /** Sends a command; one that has not left at the deadline does not leave later, if the client can do that. */
  send(command: Command, deadline: Deadline): Promise<unknown>;
  /** The same, but neither we nor the client ever send it again. */
  sendOnce(command: Command, deadline: Deadline): Promise<unknown>;
  /** Drops a connection that works no longer, and makes a new one. */
  reconnect(): void;
  close(): void;
}

/** Which client it is, told by its functions: the store depends on neither package. */
export function connectionOf(client: unknown): Connection {
  const has = (name: string) => typeof (client as Record<string, unknown>)[name] === 'function';
  if (client !== null && typeof client === 'object') {
    // Neither sends what is sent together in order over one connection.
    const one =
      !('isCluster' in client && client.isCluster === true) &&
      !has('execute') &&
      !has('nodeClient') &&
      !has('acquire');
    if (one && has('call') && has('duplicate')) return new IoRedis(client as IoRedisClient);
    if (one && has('sendCommand') && has('destroy'))
      return new NodeRedis(client as NodeRedisClient);
  }
  throw new TypeError(
    'a Redis store takes one client, of createClient in redis or of new Redis in ioredis; a cluster, pool or sentinel of theirs does not keep the order of commands',
  );
}

class NodeRedis implements Connection {
  readonly #client: NodeRedisClient;

  constructor(client: NodeRedisClient) {
    this.#client = client;
  }

  send(command: Command, deadline: Deadline): Promise<unknown> {
    if (this.#client.isReady) return this.#client.sendCommand(command);
    // It waits for a connection.
    return this.#client.sendCommand(command, { abortSignal: deadline.signal });
  }

  // This client never repeats what it has begun to write.
  readonly sendOnce = this.send.bind(this);

  reconnect(): void {
    if (!this.#client.isReady) return;
    this.#client.destroy();
    // It goes on trying by itself, and tells its own listeners of failures.
    this.#client.connect().catch(() => undefined);
  }

  close(): void {
    this.#client.destroy();
  }
}

class IoRedis implements Connection {
  readonly #client: IoRedisClient;
  #once: IoRedisClient | undefined;

  constructor(client: IoRedisClient) {
    this.#client = client;
  }

  send([name, ...parameters]: Command): Promise<unknown> {
    return this.#client.call(name!, ...parameters);
  }

  /**
   * By a connection of its own: unless told otherwise, ioredis repeats what was
   * under way when a connection broke.
   */
  sendOnce([name, ...parameters]: Command): Promise<unknown> {
    if (this.#once === undefined) {
      const settings = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 } as const;
      const once = this.#client.duplicate(settings);
      // Told by the command that fails; without a listener, ioredis prints it.
      once.on('error', () => undefined);
      this.#once = once;
    }
    return this.#once.call(name!, ...parameters);
  }

  reconnect(): void {
    for (const client of [this.#client, this.#once]) {
      if (client?.status === 'ready') client.disconnect(true);
    }
  }

  close(): void {
    this.#once?.disconnect();
  }
}

const CONNECT_MS = 2000;
const LONGEST_PAUSE_MS = 1000;

/** A client of our own: declared here, since a consumer need not have the types of `redis`. */
export interface OwnClient extends NodeRedisClient {
  on(event: 'error', listener: (error: unknown) => void): unknown;
}

/** A client of the package `redis`, not yet connected. */
export async function createClient(url: string): Promise<OwnClient> {
  // The client's own message, and its cause, would show a password.
  if (!URL.canParse(url) || !/^(redis|valkey)s?:$/.test(new URL(url).protocol)) {
    throw new TypeError(
      'the URL of a Redis store is redis://host:port/db or rediss://host:port/db',
    );
  }
  const redis = await import('redis').catch((cause: unknown) => {
    throw new Error('RedisStore.connect needs the package redis: npm install redis', { cause });
  });
  return redis.createClient({
    url: url.replace(/^valkey/i, 'redis'),
    socket: {
      connectTimeout: CONNECT_MS,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, LONGEST_PAUSE_MS),
    },
  });
}

/** Connects it, which it would by itself try for ever. */
export async function connect(client: OwnClient, timeoutMs: number): Promise<void> {
  let latest: unknown = new Error(`no answer within ${String(timeoutMs)} ms`);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const failed = new Promise<never>((_, reject) => {
    client.on('error', (error) => {
      latest = error;
      if (isReply(error) && !isPassing(error)) reject(error);
    });
    timer = setTimeout(() => {
      reject(latest);
    }, timeoutMs);
  });
  try {
    await Promise.race([client.connect(), failed]);
  } catch (error) {
    client.destroy();
    throw redisError('connecting', error);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether it is an error that the server has sent. Its first word is a code in capitals. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && /^[A-Z]{2,}( |$)/.test(error.message);
}

/** Errors of a server that is starting, failing over, resharding or overloaded. */
const PASSING =
  /^(LOADING|READONLY|MOVED|ASK|CLUSTERDOWN|TRYAGAIN|BUSY|MASTERDOWN|OOM|NOREPLICAS|MISCONF|ERR max number of clients)( |$)/;

function isPassing(error: Error): boolean {
  return PASSING.test(error.message);
}

/** What a client failed with, as an error of the store. */
export function redisError(tried: string, error: unknown): StoreRejected | StoreUnavailable {
  const { message, code } = error as { message?: string; code?: string };
  // Some errors of a connection have no message.
  const what = [message, code].find((part) => part !== undefined && part !== '');
  const refused = isReply(error) && !isPassing(error);
  return new (refused ? StoreRejected : StoreUnavailable)(
    `redis: ${tried}: ${what ?? 'the client failed'}`,
    { cause: error },
  );
}
