// Claiming mode: what leases allow, over every store that has them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard, MemoryStore, StoreUnavailable } from 'babelqueue-guard';
import { forEveryStore } from './stores.js';

const claiming = (store) => new Guard(store, { claim: true });

/** A handler that runs until it is told to end. */
function held(guard, id) {
  const started = Promise.withResolvers();
  const end = Promise.withResolvers();
  const result = guard.process({ id }, (context) => {
    started.resolve(context);
    return end.promise;
  });
  const unstarted = () => started.reject(new Error('the handler did not start'));
  result.then(unstarted, unstarted);
  return { started: started.promise, end: end.resolve, fail: end.reject, result };
}

// Promise.withResolvers came with Node 22.
Promise.withResolvers ??= () => {
  const deferred = {};
  deferred.promise = new Promise((resolve, reject) => Object.assign(deferred, { resolve, reject }));
  return deferred;
};

forEveryStore('claims', (open) => {
  test('of many copies at once, one runs', async () => {
    const guard = claiming(open());
    const first = held(guard, 'a');
    const context = await first.started;
    const copies = await Promise.all(
      Array.from({ length: 7 }, () => guard.process({ id: 'a' }, assert.fail)),
    );
    for (const copy of copies) {
      assert.equal(copy.status, 'parked');
      assert(copy.leftMs > 50_000 && copy.leftMs <= 60_000);
    }
    assert.equal(context.signal.aborted, false);
    first.end();
    assert.equal((await first.result).marked, true);
    assert.equal((await guard.process({ id: 'a' }, assert.fail)).status, 'skipped');
  });

  test('a lease is not a mark', async () => {
    const store = open();
    const guard = claiming(store);
    const first = held(guard, 'b');
    await first.started;
    assert.equal(await store.seen('b'), false);
    await guard.forget('b');
    assert.equal((await guard.process({ id: 'b' }, assert.fail)).status, 'parked');
    // A plain consumer knows nothing of leases.
    assert.equal((await new Guard(store).process({ id: 'b' }, () => 1)).status, 'ran');
    first.end();
    assert.deepEqual([(await first.result).marked, (await first.result).late], [true, false]);
  });

  test('a failure gives the lease back', async () => {
    const guard = claiming(open());
    const first = held(guard, 'a');
    await first.started;
    first.fail(new Error('failed'));
    await assert.rejects(first.result, /failed/);
    assert.equal((await guard.process({ id: 'a' }, () => 1)).status, 'ran');
  });

  test('a lease lapses, and its late owner neither loses the mark nor harms the next', async () => {
    const store = open({ leaseMs: 60 });
    const late = await store.claim('a');
    await sleep(90);
    const next = await store.claim('a');
    assert.deepEqual([late.outcome, next.outcome], ['won', 'won']);
    assert.notEqual(late.token, next.token);
    assert.equal(await store.renew('a', late.token), 'lost');
    assert.equal(await store.release('a', late.token), 'lost');
    assert.equal((await store.claim('a')).outcome, 'busy');
    assert.equal(await store.complete('a', late.token), 'lost');
    assert.equal(await store.seen('a'), true);
    assert.equal(await store.renew('a', next.token), 'held');
    assert.equal(await store.complete('a', next.token), 'held');
    assert.equal((await store.claim('a')).outcome, 'done');
  });

  test('a lapsed lease is not revived', async () => {
    const store = open({ leaseMs: 40 });
    const { token } = await store.claim('a');
    await sleep(60);
    assert.equal(await store.renew('a', token), 'lost');
    assert.equal((await store.claim('a')).outcome, 'won');
  });

  test('a lease is renewed while the handler runs', async () => {
    const store = open({ leaseMs: 150 });
    const guard = claiming(store);
    const first = held(guard, 'a');
    const context = await first.started;
    for (let waits = 0; waits < 5; waits++) {
      await sleep(90);
      assert.equal((await guard.process({ id: 'a' }, assert.fail)).status, 'parked');
    }
    assert.equal(context.signal.aborted, false);
    first.end();
    assert.equal((await first.result).late, false);
  });

  test('a handler whose loop was blocked is told that its lease is lost', async () => {
    const store = open({ leaseMs: 150 });
    const guard = claiming(store);
    const first = held(guard, 'a');
    const context = await first.started;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
    if (!context.signal.aborted) {
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    }
    const second = held(guard, 'a');
    await second.started;
    first.end();
    assert.deepEqual([(await first.result).marked, (await first.result).late], [true, true]);
    second.end();
    assert.equal((await second.result).late, false);
  });

  test('a mark counts before a lease, and a mark before a claim', async () => {
    const store = open();
    const guard = claiming(store);
    await store.remember('a');
    assert.equal((await guard.process({ id: 'a' }, assert.fail)).status, 'skipped');
    await guard.forget('a');
    assert.equal((await guard.process({ id: 'a' }, () => 1)).status, 'ran');
  });

  test('marks and steps expire after their retention, leases after theirs', async () => {
    const store = open({ retentionMs: 60, leaseMs: 10_000 });
    const { token } = await store.claim('a');
    assert.equal(await store.complete('a', token), 'held');
    assert.equal(await store.setOnce('a', 'step'), true);
    assert.equal(await store.seen('a'), true);
    await sleep(40);
    await store.remember('a');
    await sleep(40);
    // Remembering again has restarted the retention.
    assert.equal(await store.seen('a'), true);
    assert.equal(await store.setOnce('a', 'step'), true);
    await sleep(50);
    assert.equal(await store.seen('a'), false);
  });
});

describe('a lease is lost', () => {
  const leaseMs = 60;
  const storeWith = (functions) => Object.assign(new MemoryStore({ leaseMs }), functions);
  const aborted = ({ signal }) =>
    new Promise((resolve) => signal.addEventListener('abort', resolve));

  test('when the store says so', async () => {
    const first = held(claiming(storeWith({ renew: () => 'lost' })), 'a');
    await aborted(await first.started);
    first.end();
    assert.equal((await first.result).marked, true);
  });

  for (const [why, renew] of [
    ['fails', () => Promise.reject(new StoreUnavailable('down'))],
    ['does not answer', () => new Promise(() => undefined)],
  ]) {
    test(`when the store ${why} for its whole length`, async () => {
      const start = performance.now();
      const first = held(claiming(storeWith({ renew })), 'a');
      const { signal } = await first.started;
      await aborted({ signal });
      assert(performance.now() - start >= leaseMs - 5);
      assert.match(signal.reason.message, /lease/);
      first.end();
      await first.result;
    });
  }

  test('not when the store was away for a moment', async () => {
    let calls = 0;
    const store = storeWith({});
    const { renew } = MemoryStore.prototype;
    store.renew = (...parameters) => {
      calls += 1;
      if (calls % 2 === 1) throw new Error('away');
      return renew.apply(store, parameters);
    };
    const first = held(claiming(store), 'a');
    const context = await first.started;
    await sleep(3 * leaseMs);
    assert.equal(context.signal.aborted, false);
    first.end();
    assert.deepEqual([(await first.result).late, calls >= 4], [false, true]);
  });

  test('and nothing goes on after the handler has ended', async () => {
    let calls = 0;
    const store = storeWith({ renew: () => ((calls += 1), 'held') });
    await claiming(store).process({ id: 'a' }, () => 1);
    await assert.rejects(
      claiming(store).process({ id: 'b' }, () => Promise.reject(new Error('b'))),
    );
    await sleep(2 * leaseMs);
    assert.equal(calls, 0);
  });

  test('never by a timer that is too long for the platform', async () => {
    const store = new MemoryStore({ leaseMs: 2 ** 40 });
    const first = held(claiming(store), 'a');
    const { signal } = await first.started;
    await sleep(20);
    assert.equal(signal.aborted, false);
    first.end();
    await first.result;
  });

  test('and one that could not be given back does not hide the handler’s failure', async () => {
    const failure = new Error('failed');
    const store = storeWith({ release: () => Promise.reject(new StoreUnavailable('down')) });
    await assert.rejects(
      claiming(store).process({ id: 'a' }, () => {
        throw failure;
      }),
      failure,
    );
  });
});
