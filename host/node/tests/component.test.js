// The component as ordinary tooling runs it: transpiled by jco, its store linked straight to the
// imports. Each verdict and sequence comes out as the guard's own.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { transpile } from '@bytecodealliance/jco-transpile';
import { MemoryStore } from 'babelqueue-guard';

const root = new URL('../../../', import.meta.url);
const read = (name) => readFile(new URL(name, root));
const json = async (name) => JSON.parse(await read(name));

/** The imports of a world, over a store that a test can exchange. */
const STORE = `
  let store;
  export const use = (given) => void (store = given);
  export const seen = (id) => store.seen(id);
  export const remember = (id) => store.remember(id);
  export const forget = (id) => store.forget(id);
  export const setOnce = (id, step) => store.setOnce(id, step);
  export const renew = (id, token) => store.renew(id, token);
  export const complete = (id, token) => store.complete(id, token);
  export const release = (id, token) => store.release(id, token);
  export const claim = (id) => {
    const { outcome: tag, token, lengthMs, leftMs } = store.claim(id);
    if (tag === 'won') return { tag, val: { token, lengthMs: BigInt(lengthMs) } };
    return tag === 'busy' ? { tag, val: BigInt(leftMs) } : { tag };
  };
`;

for (const world of ['plain', 'claiming']) {
  describe(`the component ${world} by jco`, () => {
    let folder, guard, steps, use;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'babelqueue-guard-'));
      const store = './store.js';
      const { files } = await transpile(
        fileURLToPath(new URL(`guest/artifacts/${world}.component.wasm`, root)),
        {
          name: 'guard',
          map: Object.fromEntries(
            ['store', 'claims', 'marker'].map((name) => [`babelqueue:guard/${name}`, store]),
          ),
        },
      );
      Object.assign(files, { 'store.js': STORE, 'package.json': '{"type":"module"}' });
      for (const [name, content] of Object.entries(files)) {
        await mkdir(dirname(join(folder, name)), { recursive: true });
        await writeFile(join(folder, name), content);
      }
      const load = (name) => import(pathToFileURL(join(folder, name)).href);
      ({ guard, steps } = await load('guard.js'));
      ({ use } = await load('store.js'));
    });
    after(() => rm(folder, { recursive: true }));

    // What jco generates drops a U+FEFF at the start of any text, as a TextDecoder does unless told
    // otherwise; this package's own host keeps it.
    const asLifted = (id) => id?.replace(/^\ufeff/, '') ?? null;

    const verdict = (decision) => {
      assert.equal(decision.tag, 'run');
      const { tag, val } = decision.val;
      if (tag === 'open') return { id: null, reason: val };
      return { id: tag === 'seen' ? val : val.id, reason: null };
    };

    test('gives every body its verdict', async () => {
      for (const { file, id, reason } of await json('tests/cases/bodies/manifest.json')) {
        const expected = { id: asLifted(id), reason };
        use(new MemoryStore());
        const bytes = await read(`tests/cases/bodies/${file}`);
        assert.deepEqual(verdict(guard.decide(new Uint8Array(bytes))), expected, file);
        const text = bytes.toString();
        if (!bytes.equals(Buffer.from(text))) continue;
        use(new MemoryStore());
        assert.deepEqual(verdict(guard.decideText(text)), expected, file);
      }
    });

    test('passes the sequences', async () => {
      const { idempotency } = await json('tests/cases/conformance/manifest.json');
      for (const { name, deliveries, expected_effects: expected } of idempotency.sequences.cases) {
        use(new MemoryStore());
        let effects = 0;
        for (const { meta_id: id, outcome, expect_effect, forget_before } of deliveries) {
          if (forget_before) guard.forget(id);
          const decision = guard.decideText(JSON.stringify({ meta: { id } }));
          assert.equal(decision.tag, expect_effect, name);
          if (decision.tag === 'skip') continue;
          effects += 1;
          guard.settle(decision.val, outcome === 'ok' ? 'succeeded' : 'failed');
        }
        assert.equal(effects, expected, name);
      }
    });

    test('passes a store’s error on unchanged', () => {
      for (const tag of ['unavailable', 'rejected']) {
        const fail = () => {
          throw { tag, val: `it is ${tag}` };
        };
        use({ seen: fail, claim: fail });
        assert.throws(
          () => guard.decideId('a'),
          (thrown) => {
            assert.deepEqual(thrown, { tag, val: `it is ${tag}` });
            return true;
          },
        );
      }
    });

    if (world === 'claiming') {
      test('claims, parks, completes, and runs a step once', () => {
        use(new MemoryStore());
        const { val: ticket } = guard.decideId('a');
        assert.equal(ticket.tag, 'leased');
        assert.equal(guard.decideId('a').tag, 'park');
        assert.equal(guard.renew(ticket), 'held');
        assert.deepEqual([steps.once(ticket, 'mail'), steps.once(ticket, 'mail')], [true, false]);
        assert.equal(guard.settle(ticket, 'succeeded'), 'marked');
        assert.equal(guard.settle(ticket, 'succeeded'), 'marked-late');
        assert.equal(guard.decideId('a').tag, 'skip');
      });
    }
  });
}
