// The store on a real server: what it writes, what it refuses, and a server that fails.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard, StoreRejected, StoreUnavailable } from 'babelqueue-guard';
import { RedisStore } from 'babelqueue-guard/redis';
import { Redis } from 'ioredis';
import { createClient, createClientPool, createCluster } from 'redis';
import { describeWith } from './programs.js';
import { freePort, REDIS_SERVER, RedisServer } from './redis-server.js';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Clients of both packages, which do not print what they are expected to meet. */
const CLIENTS = {
  'node-redis': (url) => {
    const client = createClient({ url });
    client.on('error', () => undefined);
    return { client, ready: client.connect(), close: () => client.destroy() };
  },
  ioredis: (url) => {
    const client = new Redis(url, { retryStrategy: () => 50 });
    client.on('error', () => undefined);
    const ready = new Promise((resolve) => client.once('ready', resolve));
    return { client, ready, close: () => client.disconnect() };
  },
};

for (const [name, open] of Object.entries(CLIENTS)) {
  describeWith(REDIS_SERVER, `Redis by ${name}`, () => {
    let server, opened, client;
    const stores = [];
    const store = (settings) => {
      stores.push(new RedisStore(client, { timeoutMs: 300, ...settings }));
      return stores.at(-1);
    };

    before(async () => {
      server = await RedisServer.start();
      opened = open(server.url);
      client = opened.client;
      await opened.ready;
    });
    after(async () => {
      for (const each of stores) each.close();
      opened?.close();
      await server?.stop();
    });
    beforeEach(async () => {
      await server.command('FLUSHALL');
    });

    test('keys, values and times are those that other languages share', async () => {
      const guard = new Guard(store(), { claim: true });
      await guard.process({ id: 'é \u{1f4e6}\ufeff' }, async (context) => {
        await context.once('charge');
        assert.deepEqual(await server.keys(), ['bq:lease:é 📦\ufeff', 'bq:once:charge:é 📦\ufeff']);
        assert.match(await server.command('GET', 'bq:lease:é 📦\ufeff'), /^[0-9a-f]{32}$/);
        const left = await server.command('PTTL', 'bq:lease:é 📦\ufeff');
        assert(left > 50_000 && left <= 60_000);
      });
      assert.deepEqual(await server.keys(), ['bq:idemp:é 📦\ufeff', 'bq:once:charge:é 📦\ufeff']);
      for (const key of await server.keys()) {
        assert.equal(await server.command('GET', key), '1');
        const left = await server.command('PTTL', key);
        assert(left > 14 * DAY_MS - 10_000 && left <= 14 * DAY_MS);
      }
    });

    test('a mark of another program counts, whatever its value', async () => {
      await server.command('SET', 'bq:idemp:a', '');
      await server.command('SET', 'bq:idemp:b', 'anything', 'PX', 5000);
      for (const claim of [false, true]) {
        const guard = new Guard(store(), { claim });
        assert.equal((await guard.process({ id: 'a' }, assert.fail)).status, 'skipped');
        assert.equal((await guard.process({ id: 'b' }, assert.fail)).status, 'skipped');
      }
      assert.deepEqual(await server.keys(), ['bq:idemp:a', 'bq:idemp:b']);
    });

    test('consumers and prefixes keep their own keys', async () => {
      const settings = [{}, { consumer: 'mail' }, { consumer: 'stock' }, { prefix: 'app:' }];
      for (const setting of settings) {
        const guard = new Guard(store(setting));
        assert.equal((await guard.process({ id: 'a' }, () => 1)).status, 'ran');
        assert.equal((await guard.process({ id: 'a' }, () => 1)).status, 'skipped');
      }
      assert.deepEqual(await server.keys(), [
        'app:idemp:a',
        'bq:idemp:a',
        'bq:idemp@mail:a',
        'bq:idemp@stock:a',
      ]);
      const named = store({ consumer: 'mail' });
      await named.setOnce('b', 'step');
      await named.claim('b');
      assert.deepEqual(
        (await server.keys()).filter((key) => key.endsWith(':b')),
        ['bq:lease@mail:b', 'bq:once@mail:step:b'],
      );
    });

    test('kept for ever, a mark has no expiry, and a step is rejected', async () => {
      const forever = store({ retentionMs: 'forever' });
      await forever.remember('a');
      await forever.complete('b', 'nobody');
      await assert.rejects(
        forever.setOnce('a', 'step'),
        (error) =>
          error instanceof StoreRejected && /^redis: steps need a retention/.test(error.message),
      );
      assert.deepEqual(await server.keys(), ['bq:idemp:a', 'bq:idemp:b']);
      for (const key of await server.keys()) assert.equal(await server.command('PTTL', key), -1);
    });

    test('something of another type is refused by name, and left alone', async () => {
      for (const kind of ['idemp', 'lease', 'once:step'])
        await server.command('LPUSH', `bq:${kind}:a`, 'x');
      const plain = store();
      const rejected = (key) => (error) => {
        assert(error instanceof StoreRejected);
        assert.match(error.message, new RegExp(`${key}.*WRONGTYPE`));
        return true;
      };
      await assert.rejects(plain.seen('a'), rejected('bq:idemp:a'));
      await assert.rejects(plain.remember('a'), rejected('bq:idemp:a'));
      await assert.rejects(plain.forget('a'), rejected('bq:idemp:a'));
      await assert.rejects(plain.claim('a'), rejected('bq:lease:a'));
      await assert.rejects(plain.renew('a', 't'), rejected('bq:lease:a'));
      await assert.rejects(plain.release('a', 't'), rejected('bq:lease:a'));
      await assert.rejects(plain.complete('a', 't'), rejected('bq:idemp:a'));
      await assert.rejects(plain.setOnce('a', 'step'), rejected('bq:once:step:a'));
      assert.deepEqual((await server.keys()).length, 3);
      // A claim that cannot look for the mark gives back what it has taken.
      await server.command('DEL', 'bq:lease:a');
      await assert.rejects(plain.claim('a'), rejected('bq:idemp:a'));
      assert.equal(await server.command('EXISTS', 'bq:lease:a'), 0);
      // The mark counts although the lease cannot be dropped.
      await server.command('LPUSH', 'bq:lease:b', 'x');
      assert.equal(await plain.complete('b', 't'), 'held');
      assert.equal(await plain.seen('b'), true);
    });

    test('text that is not well-formed never becomes a key', async () => {
      for (const call of [
        (s) => s.seen('\ud800'),
        (s) => s.remember('\ud800'),
        (s) => s.claim('\ud800'),
      ]) {
        await assert.rejects(call(store()), StoreRejected);
      }
      assert.deepEqual(await server.keys(), []);
    });

    test('a claim that got through is known by its token, when it is sent again', async () => {
      const plain = store();
      const paused = server.command('CLIENT', 'PAUSE', 450, 'ALL');
      await paused;
      // No answer to the first try; its commands run later, or never, and the second finds the outcome.
      const claim = await plain.claim('a');
      assert.equal(claim.outcome, 'won');
      assert.equal(await server.command('GET', 'bq:lease:a'), claim.token);
    });

    test('scripts may be flushed', async () => {
      const plain = store();
      const { token } = await plain.claim('a');
      await server.command('SCRIPT', 'FLUSH');
      assert.equal(await plain.renew('a', token), 'held');
      await server.command('SCRIPT', 'FLUSH');
      assert.equal(await plain.release('a', token), 'held');
    });

    test('many at once, and each has its own answer', async () => {
      const guard = new Guard(store({ timeoutMs: 5000 }), { claim: true });
      const ids = Array.from({ length: 500 }, (_, i) => `id-${i % 250}`);
      let effects = 0;
      const results = await Promise.all(
        ids.map((id) =>
          guard.process({ id }, async (context) => {
            effects += 1;
            await sleep(20);
            return context.id;
          }),
        ),
      );
      assert.equal(effects, 250);
      assert.deepEqual(
        results.map(({ id }) => id),
        ids,
      );
      for (const result of results)
        if (result.status === 'ran') assert.equal(result.value, result.id);
    });

    test('a stopped server is unavailable within the time set, and back by itself', async () => {
      for (const claim of [false, true]) {
        const guard = new Guard(store(), { claim });
        server.signal('SIGSTOP');
        const start = performance.now();
        try {
          await assert.rejects(guard.process({ id: `s-${claim}` }, assert.fail), StoreUnavailable);
          assert(performance.now() - start < 3000);
        } finally {
          server.signal('SIGCONT');
        }
        await eventually(() => guard.process({ id: `after-${claim}` }, () => 1));
      }
    });

    test('a stopped server makes the mark missing, not the delivery fail', async () => {
      const guard = new Guard(store());
      try {
        const result = await guard.process({ id: 'm' }, () => {
          server.signal('SIGSTOP');
          return 'effect';
        });
        assert.deepEqual([result.status, result.value, result.marked], ['ran', 'effect', false]);
        assert(result.markError instanceof StoreUnavailable);
      } finally {
        server.signal('SIGCONT');
      }
      await eventually(() => guard.process({ id: 'after' }, () => 1));
    });

    test('a server that has died is unavailable, and used again when it is back', async () => {
      const guard = new Guard(store());
      await server.stop();
      await assert.rejects(guard.process({ id: 'd' }, assert.fail), StoreUnavailable);
      await server.up();
      await eventually(() => guard.process({ id: 'd' }, () => 1));
      assert.deepEqual(await server.keys(), ['bq:idemp:d']);
    });

    test('a step is sent once, also when the connection breaks under it', async () => {
      const plain = store({ timeoutMs: 2000 });
      assert.equal(await plain.setOnce('warm', 'step'), true);
      await server.command('CLIENT', 'PAUSE', 60_000, 'WRITE');
      const outcome = plain.setOnce('a', 'step').catch((error) => error);
      await sleep(100);
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      assert((await outcome) instanceof StoreUnavailable);
      await server.command('CLIENT', 'UNPAUSE');
      await sleep(300);
      assert.equal(await server.command('EXISTS', 'bq:once:step:a'), 0);
    });

    test('a server that has become read-only is unavailable, and its connection dropped', async () => {
      const plain = store();
      const id = async () =>
        String(await (client.call?.('CLIENT', 'ID') ?? client.sendCommand(['CLIENT', 'ID'])));
      await eventually(() => plain.seen('r'));
      const before = await id();
      await server.command('REPLICAOF', '127.0.0.1', String(await freePort()));
      try {
        await assert.rejects(
          plain.remember('r'),
          (error) => error instanceof StoreUnavailable && /READONLY/.test(error.message),
        );
        await eventually(async () => assert.notEqual(await id(), before));
        await assert.rejects(plain.claim('r'), StoreUnavailable);
      } finally {
        await server.command('REPLICAOF', 'NO', 'ONE');
      }
      await eventually(() => plain.remember('r'));
    });

    test('a server without memory, or without replicas that it must have, is unavailable', async () => {
      const plain = store();
      await eventually(() => plain.seen('o'));
      await server.command('CONFIG', 'SET', 'maxmemory', 1);
      try {
        await assert.rejects(
          plain.remember('o'),
          (error) => error instanceof StoreUnavailable && /OOM/.test(error.message),
        );
      } finally {
        await server.command('CONFIG', 'SET', 'maxmemory', 0);
      }
      await server.command('CONFIG', 'SET', 'min-replicas-to-write', 1);
      try {
        await assert.rejects(
          plain.claim('o'),
          (error) => error instanceof StoreUnavailable && /NOREPLICAS/.test(error.message),
        );
      } finally {
        await server.command('CONFIG', 'SET', 'min-replicas-to-write', 0);
      }
    });

    test('an eviction policy is a concern', async () => {
      assert.deepEqual(await store().concerns(), []);
      await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
      try {
        const [concern, ...others] = await store().concerns();
        assert.match(concern, /^maxmemory-policy is allkeys-lru: /);
        assert.deepEqual(others, []);
      } finally {
        await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
      }
    });

    test('a user without permission is rejected', async () => {
      await server.command(
        'ACL',
        'SETUSER',
        'reader',
        'on',
        '>word',
        '~*',
        '+get',
        '+info',
        '+client',
        '+hello',
        '+ping',
      );
      const other = open(server.url.replace('://', '://reader:word@'));
      await other.ready;
      const reader = new RedisStore(other.client, { timeoutMs: 1000 });
      try {
        assert.equal(await reader.seen('p'), false);
        await assert.rejects(
          reader.remember('p'),
          (error) => error instanceof StoreRejected && /NOPERM/.test(error.message),
        );
        await assert.rejects(reader.claim('p'), StoreRejected);
      } finally {
        other.close();
      }
    });
  });
}

/** Until the client has found its server again. */
async function eventually(attempt) {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 100) throw error;
      await sleep(50);
    }
  }
}

describeWith(REDIS_SERVER, 'a connection of our own', () => {
  let server;
  before(async () => {
    server = await RedisServer.start('--requirepass', 'secret word');
  });
  after(() => server?.stop());

  test('opens, works, and is closed', async () => {
    const url = server.url.replace('redis://', 'valkey://:secret%20word@');
    const store = await RedisStore.connect(url);
    assert.equal((await new Guard(store).process({ id: 'a' }, () => 1)).marked, true);
    store.close();
    await assert.rejects(store.seen('a'), StoreUnavailable);
  });

  test('says what is wrong, never the password', async () => {
    const attempts = [
      [server.url, StoreRejected],
      [server.url.replace('://', '://:hidden@'), StoreRejected],
      [`redis://:hidden@127.0.0.1:${await freePort()}`, StoreUnavailable],
      ['http://:hidden@127.0.0.1', TypeError],
      ['redis://:hidden@host name', TypeError],
    ];
    for (const [url, kind] of attempts) {
      await assert.rejects(RedisStore.connect(url, { timeoutMs: 500 }), (error) => {
        assert(error instanceof kind, String(error));
        for (let it = error; it !== undefined; it = it.cause) {
          assert.doesNotMatch(`${it.message}${JSON.stringify(it)}`, /hidden|secret/);
        }
        return true;
      });
    }
  });
});

test('settings are checked by name, before anything is sent', () => {
  const client = {
    isReady: false,
    sendCommand: assert.fail,
    connect: assert.fail,
    destroy: assert.fail,
  };
  for (const value of [0, -1, 0.5, NaN, Infinity, 2 ** 60, '5', null]) {
    for (const setting of ['retentionMs', 'leaseMs', 'timeoutMs']) {
      assert.throws(
        () => new RedisStore(client, { [setting]: value }),
        new RegExp(`^RangeError: ${setting} `),
      );
    }
  }
  for (const consumer of ['', 'A', 'a:b', 'a@b', 'x'.repeat(25), null, 7]) {
    assert.throws(() => new RedisStore(client, { consumer }), /^RangeError: consumer /);
  }
  for (const prefix of ['\ud800', null, 7]) {
    assert.throws(() => new RedisStore(client, { prefix }), /^TypeError: prefix /);
  }
});

test('clients that do not keep the order of commands are refused', () => {
  const cluster = new Redis.Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
  for (const client of [
    createClientPool(),
    createCluster({ rootNodes: [{}] }),
    cluster,
    {},
    null,
    undefined,
  ]) {
    assert.throws(() => new RedisStore(client), /one client/);
  }
});
