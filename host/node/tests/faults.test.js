// The component fails, the stack runs out, and nothing is left behind.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Guard, GuardError, MemoryStore } from 'babelqueue-guard';
import { Component, component } from '../dist/component.js';

const envelope = (id, size = 0) => JSON.stringify({ data: 'x'.repeat(size), meta: { id } });

/** A module that exports `memory`, `cabi_realloc` and `decide`, the latter two with these bodies. */
function moduleOf(realloc, decide) {
  const name = (text) => [text.length, ...Buffer.from(text)];
  const section = (id, ...items) => [id, items.flat().length + 1, items.length, ...items.flat()];
  const code = (body) => [body.length + 2, 0, ...body, 0x0b];
  const i32 = 0x7f;
  return new WebAssembly.Module(
    Uint8Array.from([
      ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(1, [0x60, 4, i32, i32, i32, i32, 1, i32], [0x60, 2, i32, i32, 1, i32]),
      ...section(3, [0], [1]),
      ...section(5, [1, 1, 1]),
      ...section(
        7,
        [...name('memory'), 2, 0],
        [...name('cabi_realloc'), 0, 0],
        [...name('babelqueue:guard/guard@0.1.0#decide'), 0, 1],
        [...name('cabi_post_babelqueue:guard/guard@0.1.0#decide'), 0, 1],
      ),
      ...section(10, code(realloc), code(decide)),
    ]),
  );
}

describe('a component that', () => {
  const UNREACHABLE = [0x00];
  const ZERO = [0x41, 0];
  const RECURSE = [0x41, 0, 0x41, 0, 0x10, 1];
  const LOOP_OUT_OF_BOUNDS = [0x41, 0x7f, 0x28, 2, 0];
  const FAR = [0x41, 0x80, 0x80, 0x80, 0x80, 0x04];
  for (const [what, realloc, decide] of [
    ['traps', ZERO, UNREACHABLE],
    ['traps while it allocates', UNREACHABLE, ZERO],
    ['overflows the stack', ZERO, RECURSE],
    ['reads out of bounds', ZERO, LOOP_OUT_OF_BOUNDS],
    ['gives a place out of its memory', FAR, ZERO],
    ['gives a result out of its memory', ZERO, FAR],
  ]) {
    test(`${what} is an error of the guard`, () => {
      const component = new Component(moduleOf(realloc, decide));
      for (let times = 0; times < 3; times++) {
        for (const body of [envelope('a'), Buffer.from(envelope('a'))]) {
          assert.throws(() => component.decide(body, false), GuardError);
        }
      }
    });
  }
});

test('a claim of which the component can make nothing is given back', async () => {
  const store = new MemoryStore();
  const token = 'not well-formed \ud800';
  const released = [];
  store.claim = () => ({ outcome: 'won', token, lengthMs: 1000 });
  store.release = (...parameters) => void released.push(parameters);
  const guard = new Guard(store, { claim: true });
  await assert.rejects(guard.process({ id: 'a' }, assert.fail), GuardError);
  assert.deepEqual(released, [['a', token]]);
});

test('where the stack runs out, it is the guard’s error, and the next delivery is decided', async () => {
  const errors = new Set();
  const decided = [];
  // From the bottom up: first there is no room for a call, then for a part of one, then for all of it.
  const dive = () => {
    try {
      dive();
    } catch (error) {
      if (decided.length === 0) {
        try {
          decided.push(component('plain').decide(envelope('deep'), false).question.id);
        } catch (failure) {
          errors.add(failure.constructor);
        }
      }
      throw error;
    }
  };
  for (let times = 0; times < 20; times++) {
    decided.length = 0;
    assert.throws(dive, RangeError);
    assert.deepEqual(decided, ['deep']);
  }
  assert(errors.has(GuardError));
  const guard = new Guard(new MemoryStore());
  for (let i = 0; i < 100; i++) {
    const id = `id-${i}`;
    assert.equal((await guard.process(envelope(id), (context) => context.id)).value, id);
  }
});

test('a nesting that is as deep as a body allows does no harm', async () => {
  const guard = new Guard(new MemoryStore());
  const depth = 8_000_000;
  const body = `{"x":${'['.repeat(depth)}${']'.repeat(depth)},"meta":{"id":"deep"}}`;
  assert.equal((await guard.process(body, () => 1)).id, 'deep');
  assert.equal((await guard.process('['.repeat(depth), () => 1)).failOpen, 'malformed');
});

test('a large body leaves no large memory behind', async (t) => {
  const guard = new Guard(new MemoryStore());
  const { Instance } = WebAssembly;
  const memories = [];
  WebAssembly.Instance = function (...parameters) {
    const instance = new Instance(...parameters);
    memories.push(new WeakRef(instance.exports.memory));
    return instance;
  };
  t.after(() => (WebAssembly.Instance = Instance));
  for (let i = 0; i < 4; i++) {
    await guard.process(envelope(`large-${i}`, 15 << 20), () => 1);
    await guard.process(envelope(`small-${i}`), () => 1);
  }
  // What a weak reference has given out stays until the task is over.
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc();
  assert(memories.length >= 4);
  for (const memory of memories) {
    const size = memory.deref()?.buffer.byteLength ?? 0;
    assert(size < 2 << 20, `an instance with ${size} bytes is kept`);
  }
});

for (const claim of [false, true]) {
  test(`a great many deliveries leave nothing behind, ${claim ? 'claiming' : 'plain'}`, async () => {
    const guard = new Guard(new MemoryStore({ maxEntries: 100 }), { claim });
    const failure = new Error('failed');
    const run = async (count) => {
      for (let i = 0; i < count; i++) {
        const id = `id-${Math.floor(i / 2)}`;
        const outcome = await guard
          .process(envelope(id, i % 50), () => {
            if (i % 10 === 8) throw failure;
          })
          .catch((error) => error);
        if (i % 10 === 8) assert.equal(outcome, failure);
        else assert.equal(outcome.status, i % 2 === 0 || i % 10 === 9 ? 'ran' : 'skipped');
      }
      globalThis.gc();
      return process.memoryUsage();
    };
    const before = await run(20_000);
    const after = await run(claim ? 200_000 : 1_000_000);
    assert(after.heapUsed - before.heapUsed < 20 << 20);
    assert(after.arrayBuffers - before.arrayBuffers < 1 << 20);
  });
}

test('threads have guards of their own', async () => {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    import('babelqueue-guard').then(async ({ Guard, MemoryStore }) => {
      const guard = new Guard(new MemoryStore(), { claim: true });
      let right = 0;
      for (let i = 0; i < 5000; i++) {
        const id = workerData + '-' + i;
        const result = await guard.process(JSON.stringify({ meta: { id } }), (context) => context.id);
        right += Number(result.value === id && result.id === id);
      }
      parentPort.postMessage(right);
    });`;
  const rights = await Promise.all(
    Array.from({ length: 4 }, (_, i) => {
      const worker = new Worker(source, { eval: true, workerData: `thread-${i}` });
      return new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject));
    }),
  );
  assert.deepEqual(rights, [5000, 5000, 5000, 5000]);
});
