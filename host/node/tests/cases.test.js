// The table of cases that all languages share: tests/cases at the root.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { Guard, MemoryStore } from 'babelqueue-guard';
import { forEveryStore } from './stores.js';

const read = (name) => readFile(new URL(`../../../tests/cases/${name}`, import.meta.url));
const json = async (name) => JSON.parse(await read(name));

const worlds = { plain: {}, claiming: { claim: true } };

async function verdict(delivery, options) {
  const { id, failOpen, marked } = await new Guard(new MemoryStore(), options).process(
    delivery,
    () => undefined,
  );
  assert.equal(marked, id !== null);
  return { id, reason: failOpen };
}

for (const [world, options] of Object.entries(worlds)) {
  describe(`verdicts, ${world}`, async () => {
    for (const { file, id, reason, why } of await json('bodies/manifest.json')) {
      test(`${file}: ${why}`, async () => {
        const bytes = await read(`bodies/${file}`);
        assert.deepEqual(await verdict(bytes, options), { id, reason });
        assert.deepEqual(await verdict(new Uint8Array(bytes), options), { id, reason });
        const text = bytes.toString();
        if (bytes.equals(Buffer.from(text))) {
          assert.deepEqual(await verdict(text, options), { id, reason });
        }
      });
    }

    for (const { id, usable, why } of await json('ids.json')) {
      test(`id given: ${why}`, async () => {
        const expected = usable ? { id, reason: null } : { id: null, reason: 'unusable' };
        assert.deepEqual(await verdict({ id }, options), expected);
      });
    }

    for (const { utf16, why } of await json('ids-ill-formed.json')) {
      const id = String.fromCharCode(...utf16.map((unit) => parseInt(unit, 16)));
      const expected = { id: null, reason: 'unusable' };
      test(`ill-formed id: ${why}`, async () => {
        assert.deepEqual(await verdict({ id }, options), expected);
        assert.deepEqual(await verdict(`{"meta":{"id":"${id}"}}`, options), expected);
        await assert.rejects(new Guard(new MemoryStore(), options).forget(id), {
          name: 'StoreRejected',
        });
      });
      test(`ill-formed text elsewhere: ${why}`, async () => {
        const body = `{"${id}":"é${id}€","meta":{"${id}":[],"id":"a\u{1f4e6}"}}`;
        assert.deepEqual(await verdict(body, options), { id: 'a\u{1f4e6}', reason: null });
      });
    }

    test('what is no string is not made one', async () => {
      for (const id of [null, 0, 42, true, [], ['a'], {}, { toJSON: () => 'a' }, 1n, Symbol('a')]) {
        assert.deepEqual(await verdict({ id }, options), { id: null, reason: 'unusable' });
      }
      assert.deepEqual(await verdict({ id: undefined }, options), { id: null, reason: 'absent' });
    });
  });
}

const { idempotency } = await json('conformance/manifest.json');

test('the key is meta.id', async () => {
  const { envelope_file: file, expected_key: id } = idempotency.dedup_key;
  assert.deepEqual(await verdict(await read(`conformance/${file}`)), { id, reason: null });
});

for (const [world, options] of Object.entries(worlds)) {
  forEveryStore(`sequences, ${world}`, (open) => {
    for (const { name, deliveries, expected_effects: expected } of idempotency.sequences.cases) {
      test(name, async () => {
        const guard = new Guard(open(), options);
        let effects = 0;
        for (const delivery of deliveries) {
          if (delivery.forget_before) await guard.forget(delivery.meta_id);
          const body = JSON.stringify({ job: 'a', meta: { id: delivery.meta_id } });
          const before = effects;
          const failure = new Error('the handler failed');
          const handled = guard.process(body, () => {
            effects += 1;
            if (delivery.outcome === 'throw') throw failure;
          });
          if (delivery.outcome === 'throw') await assert.rejects(handled, failure);
          else await handled;
          assert.equal(effects > before ? 'run' : 'skip', delivery.expect_effect);
        }
        assert.equal(effects, expected);
      });
    }
  });
}
