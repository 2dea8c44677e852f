// A decision next to what JSON.parse takes to find the id, in one run.
import { Guard, MemoryStore } from 'babelqueue-guard';
import { Driver } from '../dist/driver.js';
import { awaited, print, race, sync } from './timing.js';

const id = '3e9b51c4-77d0-4f1a-8c26-90ad4be1f305';
const nothing = { remember() {}, forget() {} };

/** An envelope of so many bytes, its data many small members. */
function envelope(size) {
  const data = {};
  const whole = () =>
    JSON.stringify({
      job: 'urn:babel:parcels:weighed',
      trace_id: '5a6f0c9e-41c3-4f0e-9d53-0b1c3c5d7e91',
      data,
      meta: { id, queue: 'parcels', lang: 'js', schema_version: 1, created_at: 1749132727000 },
      attempts: 0,
    });
  for (let i = 0; whole().length < size - 24; i++) data[`field_${i}`] = i * 7919;
  return whole();
}

for (const size of [250, 10_240]) {
  const text = envelope(size);
  const bytes = Buffer.from(text);
  const ids = new Set();
  const seen = new MemoryStore();
  seen.remember(id);
  const unseen = new Driver(new MemoryStore(), false);
  const duplicate = new Driver(seen, false);
  const ready = new Driver({ seen: async () => false, ...nothing }, false);
  const guard = new Guard({ seen: () => false, ...nothing });
  print(
    `${bytes.length} bytes, Node ${process.versions.node}`,
    await race({
      'JSON.parse of the bytes and a Set': sync(() =>
        ids.has(JSON.parse(bytes.toString()).meta.id),
      ),
      'JSON.parse of the text and a Set': sync(() => ids.has(JSON.parse(text).meta.id)),
      'decide on the bytes': sync(() => unseen.decide(bytes)),
      'decide on the text': sync(() => unseen.decide(text)),
      'decide on the bytes, seen already': sync(() => duplicate.decide(bytes)),
      'decide on the bytes, a store by promises': awaited(() => ready.decide(bytes)),
      'process: decide, an empty handler, settle': awaited(() => guard.process(bytes, () => 1)),
    }),
  );
}
