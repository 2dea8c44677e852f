// The worker protocol of tests/README.md at the root: a JSON object a line in, one a line out.
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard, MemoryStore, StoreError } from 'babelqueue-guard';
import { RedisStore } from 'babelqueue-guard/redis';

class HandlerFailure extends Error {}

let store = new MemoryStore();
let guard = new Guard(store);

async function open({ store: url, prefix, name, retention_ms, claim, lease_ms }) {
  const settings = { retentionMs: retention_ms, leaseMs: lease_ms };
  await store.close?.();
  if (url === 'memory:') store = new MemoryStore(settings);
  else if (/^(redis|valkey)s?:/.test(url)) {
    store = await RedisStore.connect(url, { ...settings, prefix, consumer: name });
  } else throw new Unsupported(`no store ${url}`);
  guard = new Guard(store, { claim: claim ?? false });
  return { ok: true };
}

async function verdict({ file }) {
  try {
    const result = await new Guard(new MemoryStore()).process(
      await readFile(file),
      () => undefined,
    );
    return { id: result.id, reason: result.failOpen };
  } catch (error) {
    return failure(error);
  }
}

async function process_({ body, file, id, outcome = 'ok', hold_ms, headers, step }) {
  const answer = {
    decision: null,
    id: null,
    reason: null,
    outcome: null,
    marked: false,
    error: null,
    left_ms: null,
    replay: null,
    step: null,
  };
  const handler = async (context) => {
    Object.assign(answer, { decision: 'run', id: context.id, reason: context.failOpen });
    answer.replay = context.replay;
    if (step !== undefined) answer.step = await context.once(step);
    if (hold_ms !== undefined) await sleep(hold_ms);
    if (outcome === 'throw') throw new HandlerFailure();
  };
  const message = id === undefined ? { body: body ?? (await readFile(file)) } : { id };
  try {
    const result = await guard.process({ ...message, headers }, handler);
    answer.id = result.id;
    if (result.status === 'skipped') answer.decision = 'skip';
    if (result.status === 'parked')
      Object.assign(answer, { decision: 'park', left_ms: result.leftMs });
    if (result.status === 'ran') {
      Object.assign(answer, { outcome: 'succeeded', marked: result.marked });
      answer.error = result.markError?.kind ?? null;
    }
  } catch (error) {
    if (answer.decision === 'run') answer.outcome = 'failed';
    else answer.decision = 'error';
    if (!(error instanceof HandlerFailure)) answer.error = failure(error).error;
  }
  return answer;
}

class Unsupported extends Error {
  kind = 'unsupported';
}

function failure(error) {
  return { error: error.kind ?? 'unsupported', detail: String(error.message) };
}

const operations = {
  open,
  verdict,
  process: process_,
  seen: async ({ id }) => ({ seen: await store.seen(id) }),
  remember: async ({ id }) => (await store.remember(id), { ok: true }),
  forget: async ({ id }) => (await guard.forget(id), { ok: true }),
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const request = JSON.parse(line);
    const operation = operations[request.op];
    if (operation === undefined) throw new Unsupported(`no operation ${request.op}`);
    answer = await operation(request);
  } catch (error) {
    if (!(error instanceof StoreError)) console.error(error);
    answer = failure(error);
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await store.close?.();
