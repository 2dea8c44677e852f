// Compiled, not run: the types as a consumer meets them.
import { Guard, MemoryStore, StoreUnavailable, wrap } from 'babelqueue-guard';
import type { ClaimingStore, Result, Store } from 'babelqueue-guard';
import { RedisStore } from 'babelqueue-guard/redis';

const synchronous: Store = { seen: (id) => id === 'a', remember: () => 1, forget: () => undefined };
const asynchronous: Store = {
  seen: async (id) => id === 'a',
  remember: async () => 'OK',
  forget: async () => 1,
};
const claiming: ClaimingStore = new MemoryStore({ retentionMs: 'forever' });

const result: Result<number> = await new Guard(synchronous).process('{}', () => 1);
if (result.status === 'ran') result.value.toFixed();
if (result.status === 'parked') result.leftMs.toFixed();

new Guard(claiming, { claim: true });
// @ts-expect-error -- a store without claims cannot claim
new Guard(asynchronous, { claim: true });
// @ts-expect-error -- an envelope that has been parsed is no delivery
void new Guard(asynchronous).process({ meta: { id: 'a' } }, () => 1);

const consume = wrap(asynchronous, async (body: Uint8Array, context) => {
  const { id, failOpen, replay, signal } = context;
  if (await context.once('step'))
    return [id, failOpen, replay, signal.aborted, body.length] as const;
  return null;
});
void consume(new Uint8Array());

const store: ClaimingStore = await RedisStore.connect('redis://localhost', { consumer: 'mail' });
void new Guard(store, { claim: true }).forget('a').catch((error: unknown) => {
  if (error instanceof StoreUnavailable) console.log(error.kind satisfies 'unavailable');
});
