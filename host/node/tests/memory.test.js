// What is particular to the memory store: its bounds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryStore, StoreRejected } from 'babelqueue-guard';

test('the mark that was set longest ago is forgotten first', () => {
  const store = new MemoryStore({ maxEntries: 3 });
  for (const id of ['a', 'b', 'c', 'a', 'd']) store.remember(id);
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].filter((id) => store.seen(id)),
    ['a', 'c', 'd'],
  );
  store.forget('c');
  store.remember('e');
  assert.deepEqual(
    ['a', 'c', 'd', 'e'].filter((id) => store.seen(id)),
    ['a', 'd', 'e'],
  );
});

test('the bound holds for any order of marks and removals', () => {
  const store = new MemoryStore({ maxEntries: 10 });
  const model = [];
  let random = 1;
  for (let i = 0; i < 20_000; i++) {
    random = (random * 48271) % 2147483647;
    const id = String(random % 40);
    const at = model.indexOf(id);
    if (at >= 0) model.splice(at, 1);
    if (random % 3 === 0) store.forget(id);
    else {
      store.remember(id);
      model.push(id);
      if (model.length > 10) model.shift();
    }
    assert.equal(store.seen(id), model.includes(id));
    assert.equal(
      store.seen(String((random >> 8) % 40)),
      model.includes(String((random >> 8) % 40)),
    );
  }
});

test('a full store takes no longer for a mark than an empty one', () => {
  const time = (store, from) => {
    const start = performance.now();
    for (let i = from; i < from + 20_000; i++) store.remember(`id-${i}`);
    return performance.now() - start;
  };
  const full = new MemoryStore({ maxEntries: 200_000 });
  for (let i = 0; i < 200_000; i++) full.remember(`id-${i}`);
  // A scan for each mark would make it thousands of times as long.
  assert(time(full, 200_000) < 100 * time(new MemoryStore(), 0));
});

test('expired entries are dropped, steps and leases too', async () => {
  const store = new MemoryStore({ retentionMs: 20, leaseMs: 20 });
  for (let i = 0; i < 100; i++) {
    store.remember(`${i}`);
    store.setOnce(`${i}`, 'step');
    store.claim(`lease-${i}`);
  }
  await sleep(30);
  assert.equal(store.seen('5'), false);
  assert.equal(store.setOnce('5', 'step'), true);
  assert.equal(store.claim('lease-5').outcome, 'won');
});

test('steps need a retention', () => {
  const store = new MemoryStore({ retentionMs: 'forever' });
  store.remember('a');
  assert.equal(store.seen('a'), true);
  assert.throws(
    () => store.setOnce('a', 'step'),
    (error) =>
      error instanceof StoreRejected && /^memory: steps need a retention/.test(error.message),
  );
});

test('settings are checked by name', () => {
  for (const value of [0, -1, 0.5, NaN, Infinity, 2 ** 60, '5', null]) {
    for (const setting of ['retentionMs', 'leaseMs', 'maxEntries']) {
      assert.throws(
        () => new MemoryStore({ [setting]: value }),
        new RegExp(`^RangeError: ${setting} `),
      );
    }
  }
  assert.equal(new MemoryStore({ retentionMs: 'forever' }).seen('a'), false);
});
