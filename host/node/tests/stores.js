// Every store, for tests that all of them have to pass.
import { after, before, describe } from 'node:test';
import { MemoryStore } from 'babelqueue-guard';
import { RedisStore } from 'babelqueue-guard/redis';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describeWith } from './programs.js';
import { REDIS_SERVER, RedisServer } from './redis-server.js';

/** The three functions of a store, each answering by a promise. */
export function asynchronous(store) {
  return new Proxy(store, {
    get: (target, name) =>
      typeof target[name] === 'function'
        ? async (...parameters) => target[name](...parameters)
        : target[name],
  });
}

/**
 * Describes the same tests for every store; `open(settings)` makes one that holds
 * nothing yet.
 */
export function forEveryStore(name, tests) {
  describe(`${name}, memory`, () => tests((settings) => new MemoryStore(settings)));
  describe(`${name}, memory by promises`, () =>
    tests((settings) => asynchronous(new MemoryStore(settings))));
  describeWith(REDIS_SERVER, `${name}, Redis`, () => {
    let server;
    const clients = [];
    const stores = [];
    const open = (client, settings) => {
      const prefix = `test-${stores.length}:`;
      const store = new RedisStore(client, { prefix, ...settings });
      stores.push(store);
      return store;
    };
    before(async () => {
      server = await RedisServer.start();
      clients.push(await createClient({ url: server.url }).connect(), new Redis(server.url));
    });
    after(async () => {
      for (const store of stores) store.close();
      clients[0]?.destroy();
      clients[1]?.disconnect();
      await server?.stop();
    });
    describe('by node-redis', () => tests((settings) => open(clients[0], settings)));
    describe('by ioredis', () => tests((settings) => open(clients[1], settings)));
  });
}
