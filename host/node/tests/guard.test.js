// The contract's situations, over stores that fail, and handlers of every kind.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runInNewContext } from 'node:vm';
import {
  Guard,
  GuardError,
  MemoryStore,
  StoreRejected,
  StoreUnavailable,
  wrap,
} from 'babelqueue-guard';
import { asynchronous } from './stores.js';

const envelope = (id) => JSON.stringify({ job: 'urn:a', data: {}, meta: { id } });

/** A store whose functions are those given, and otherwise a memory store's. */
function storeWith(functions) {
  const memory = new MemoryStore();
  const store = { memory };
  for (const name of [
    'seen',
    'remember',
    'forget',
    'claim',
    'renew',
    'complete',
    'release',
    'setOnce',
  ]) {
    store[name] = functions[name] ?? ((...parameters) => memory[name](...parameters));
  }
  return store;
}

const THROWN = [
  new Error('an error'),
  'text',
  0,
  undefined,
  null,
  Object.create(null),
  Symbol('s'),
];

describe('a result', () => {
  test('tells of a handler that ran', async () => {
    const guard = new Guard(new MemoryStore());
    assert.deepEqual(await guard.process(envelope('a'), async () => 'done'), {
      status: 'ran',
      id: 'a',
      failOpen: null,
      value: 'done',
      marked: true,
      markError: null,
      late: false,
    });
    assert.deepEqual(await guard.process(envelope('a'), assert.fail), {
      status: 'skipped',
      id: 'a',
    });
  });

  test('tells why a delivery failed open, and the store is asked nothing', async () => {
    const fail = () => assert.fail('asked');
    const guard = new Guard({ seen: fail, remember: fail, forget: fail });
    let context;
    const result = await guard.process('{}', (given) => void (context = given));
    assert.deepEqual(
      [result.status, result.id, result.failOpen, result.marked],
      ['ran', null, 'absent', false],
    );
    assert.deepEqual([context.id, context.failOpen], [null, 'absent']);
  });
});

describe('a handler', () => {
  for (const thrown of THROWN) {
    for (const how of ['throws', 'rejects with']) {
      test(`that ${how} ${String(thrown?.toString ? thrown.toString() : typeof thrown)} leaves the id unmarked`, async () => {
        for (const claim of [false, true]) {
          const store = new MemoryStore();
          const guard = new Guard(store, { claim });
          const handler =
            how === 'throws'
              ? () => {
                  throw thrown;
                }
              : () => Promise.reject(thrown);
          let caught = 'nothing';
          await guard.process(envelope('a'), handler).catch((error) => (caught = error));
          assert.equal(caught, thrown);
          assert.equal(store.seen('a'), false);
          assert.equal((await guard.process(envelope('a'), () => 1)).status, 'ran');
        }
      });
    }
  }

  test('may return a thenable, which is awaited', async () => {
    const store = new MemoryStore();
    const guard = new Guard(store);
    const thenable = {
      then(done) {
        setTimeout(() => {
          assert.equal(store.seen('a'), false);
          done('later');
        }, 5);
      },
    };
    assert.equal((await guard.process(envelope('a'), () => thenable)).value, 'later');
    assert.equal(store.seen('a'), true);
  });

  test('that returns has succeeded, whatever it left running', async () => {
    const store = new MemoryStore();
    let finished = false;
    await new Guard(store).process(envelope('a'), () => {
      setTimeout(() => (finished = true), 5);
    });
    assert.deepEqual([finished, store.seen('a')], [false, true]);
  });

  test('may use the guard again, also for its own id', async () => {
    const guard = new Guard(new MemoryStore());
    const result = await guard.process(envelope('a'), async () => [
      await guard.process(envelope('b'), () => 'inner'),
      await guard.process(envelope('a'), () => 'same'),
    ]);
    assert.deepEqual(
      result.value.map((inner) => [inner.id, inner.value]),
      [
        ['b', 'inner'],
        ['a', 'same'],
      ],
    );
  });

  test('is told of a replay, which the header alone does not make run', async () => {
    const guard = new Guard(new MemoryStore());
    const body = envelope('a');
    const replay = (headers) => guard.process({ body, headers }, (context) => context.replay);
    const name = 'bq-replay-bypass';
    assert.equal((await replay(undefined)).value, false);
    assert.equal((await replay({ [name]: '1' })).status, 'skipped');
    for (const headers of [
      { [name]: '1' },
      { [name]: Buffer.of(0) },
      new Map([[name, '']]),
      new Headers({ [name]: '' }),
    ]) {
      await guard.forget('a');
      assert.equal((await replay(headers)).value, true);
    }
    for (const headers of [{}, null, new Map(), new Headers(), { other: '1' }]) {
      await guard.forget('a');
      assert.equal((await replay(headers)).value, false);
    }
  });

  test('is wrapped with its store', async () => {
    const handle = wrap(new MemoryStore(), async (body, context) => [body, context.id]);
    assert.deepEqual((await handle(envelope('a'))).value, [envelope('a'), 'a']);
    assert.equal((await handle(envelope('a'))).status, 'skipped');
  });
});

describe('a store', () => {
  for (const thrown of THROWN) {
    test(`that throws ${typeof thrown} is unavailable, and the guard stays usable`, async () => {
      for (const fail of [
        () => {
          throw thrown;
        },
        () => Promise.reject(thrown),
        () => ({
          get then() {
            throw thrown;
          },
        }),
      ]) {
        let failing = true;
        const store = storeWith({
          seen: (id) => (failing ? fail() : store.memory.seen(id)),
          claim: (id) => (failing ? fail() : store.memory.claim(id)),
        });
        for (const claim of [false, true]) {
          const guard = new Guard(store, { claim });
          failing = true;
          await assert.rejects(guard.process(envelope('a'), assert.fail), (error) => {
            assert(error instanceof StoreUnavailable);
            assert.equal(error.cause, thrown);
            return true;
          });
          failing = false;
          assert.equal((await guard.process(envelope(`a${claim}`), () => 1)).status, 'ran');
        }
      }
    });
  }

  for (const error of [new StoreUnavailable('down'), new StoreRejected('no such table')]) {
    test(`that throws ${error.name} has it come out unchanged`, async () => {
      const guard = new Guard(
        storeWith({
          seen: () => Promise.reject(error),
          forget: () => {
            throw error;
          },
        }),
      );
      await assert.rejects(guard.process(envelope('a'), assert.fail), error);
      await assert.rejects(guard.forget('a'), error);
    });
  }

  test('that fails to remember does not fail the delivery', async () => {
    const down = new StoreUnavailable('down');
    for (const [remember, markError] of [
      [() => Promise.reject(down), down],
      [
        () => {
          throw null;
        },
        new StoreUnavailable('the store failed: null', { cause: null }),
      ],
    ]) {
      const result = await new Guard(storeWith({ remember })).process(envelope('a'), () => 1);
      assert.deepEqual([result.status, result.value, result.marked], ['ran', 1, false]);
      assert.deepEqual(result.markError, markError);
    }
  });

  test('must give an answer: nothing is guessed', async () => {
    for (const answer of [undefined, null, 0, 1, '', 'false', {}]) {
      for (const seen of [() => answer, async () => answer]) {
        await assert.rejects(
          new Guard(storeWith({ seen })).process(envelope('a'), assert.fail),
          StoreRejected,
        );
      }
    }
    for (const claim of [
      undefined,
      true,
      'won',
      {},
      { outcome: 'won' },
      { outcome: 'won', token: 't', lengthMs: NaN },
      { outcome: 'busy', leftMs: -1 },
      { outcome: 'busy', leftMs: 1.5 },
    ]) {
      const guard = new Guard(storeWith({ claim: () => claim }), { claim: true });
      await assert.rejects(guard.process(envelope('a'), assert.fail), StoreRejected);
    }
  });

  test('may use a guard of its own', async () => {
    const inner = new Guard(new MemoryStore());
    const store = storeWith({
      seen: async (id) => {
        assert.equal((await inner.process({ id: `inner-${id}` }, () => 1)).id, `inner-${id}`);
        return false;
      },
    });
    const guard = new Guard(store);
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        guard.process(envelope(`id-${i}`), (context) => context.id),
      ),
    );
    assert.deepEqual(
      results.map(({ id, value }) => [id, value]),
      results.map((_, i) => [`id-${i}`, `id-${i}`]),
    );
  });

  test('is refused without its functions', () => {
    assert.throws(() => new Guard({ seen() {} }), /lacks remember, forget/);
    assert.throws(
      () => new Guard({ seen() {}, remember() {}, forget() {} }, { claim: true }),
      /lacks claim/,
    );
    assert.throws(() => new Guard(undefined), TypeError);
  });
});

describe('a delivery', () => {
  test('of another kind is refused', async () => {
    const guard = new Guard(new MemoryStore());
    for (const delivery of [
      undefined,
      null,
      7,
      {},
      [],
      { body: {} },
      { body: null, id: 'a' },
      { meta: { id: 'a' } },
      new ArrayBuffer(2),
      new Uint16Array(2),
      Object.create(null),
    ]) {
      await assert.rejects(guard.process(delivery, assert.fail), TypeError);
    }
  });

  test('over the limit is refused before the component sees it', async () => {
    const guard = new Guard(new MemoryStore(), { bodyLimit: 100 });
    const sized = (characters, fill) => envelope('a').padEnd(characters, fill);
    for (const body of [sized(100, ' '), Buffer.from(sized(100, ' '))]) {
      assert.equal((await guard.process(body, () => 1)).id, 'a');
    }
    // 99 bytes, and 101 though they are fewer characters.
    assert.equal((await guard.process(sized(71, 'é'), () => 1)).failOpen, 'malformed');
    for (const over of [
      sized(101, ' '),
      sized(72, 'é'),
      sized(63, '€'),
      sized(73, '\u{1f4e6}'),
      sized(63, '\ud800'),
    ]) {
      for (const body of [over, { body: over }, Buffer.from(over)]) {
        await assert.rejects(guard.process(body, assert.fail), GuardError);
      }
    }
    assert.equal((await guard.process(envelope('next'), () => 1)).status, 'ran');
    for (const bodyLimit of [0, -1, 1.5, NaN, Infinity, '1', 2 ** 40]) {
      assert.throws(() => new Guard(new MemoryStore(), { bodyLimit }), /bodyLimit/);
    }
  });

  test('may come from another realm', async () => {
    const bytes = runInNewContext('Uint8Array.from(text, (c) => c.charCodeAt(0))', {
      text: envelope('a'),
    });
    assert.equal(bytes instanceof Uint8Array, false);
    assert.equal((await new Guard(new MemoryStore()).process(bytes, () => 1)).id, 'a');
  });

  test('may be part of a larger buffer', async () => {
    const bytes = Buffer.from(`###${envelope('a')}###`).subarray(3, -3);
    assert.equal((await new Guard(new MemoryStore()).process(bytes, () => 1)).id, 'a');
  });
});

describe('steps', () => {
  for (const [mode, claim] of [
    ['plain', false],
    ['claiming', true],
  ]) {
    test(`run once, ${mode}`, async () => {
      for (const store of [new MemoryStore(), asynchronous(new MemoryStore())]) {
        const guard = new Guard(store, { claim });
        const steps = [];
        const handler = async (context) => {
          for (const step of ['charge', 'mail', 'charge']) steps.push(await context.once(step));
          throw new Error('later');
        };
        await assert.rejects(guard.process(envelope('a'), handler));
        await assert.rejects(guard.process(envelope('a'), handler));
        await assert.rejects(guard.process('{}', handler));
        assert.deepEqual(steps, [true, true, false, false, false, false, true, true, true]);
      }
    });
  }

  test('have names that every store can hold', async () => {
    const guard = new Guard(new MemoryStore());
    for (const step of ['', 'A', 'a-b', 'é', '\ud800', 'x'.repeat(41), undefined, null, 1]) {
      await assert.rejects(
        guard.process(envelope('a'), (context) => context.once(step)),
        StoreRejected,
      );
    }
    await guard.process(envelope('a'), (context) => context.once('x'.repeat(40)));
  });

  test('need a store that can mark them', async () => {
    const { seen, remember, forget } = storeWith({});
    const guard = new Guard({ seen, remember, forget });
    await assert.rejects(
      guard.process(envelope('a'), (context) => context.once('a')),
      /setOnce/,
    );
  });
});
