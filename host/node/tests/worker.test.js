// The program that the tests across languages drive.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const program = fileURLToPath(new URL('../worker', import.meta.url));
const body = (name) =>
  fileURLToPath(new URL(`../../../tests/cases/bodies/${name}`, import.meta.url));

async function answers(...requests) {
  const worker = spawn(program, { stdio: ['pipe', 'pipe', 'ignore'] });
  worker.stdin.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
  const lines = [];
  for await (const line of createInterface({ input: worker.stdout })) lines.push(JSON.parse(line));
  return lines;
}

const ran = {
  decision: 'run',
  id: 'a',
  reason: null,
  outcome: 'succeeded',
  marked: true,
  error: null,
  left_ms: null,
  replay: false,
  step: null,
};
const skipped = { ...ran, decision: 'skip', outcome: null, marked: false, replay: null };

test('verdicts', async () => {
  const id = '8d1f6a52-0c7b-4e39-9a64-2b5e7d90c3f1';
  assert.deepEqual(
    await answers(
      { op: 'verdict', file: body('around-space.json') },
      { op: 'verdict', file: body('absent-id.json') },
      { op: 'verdict', file: body('around-space.json') },
    ),
    [
      { id, reason: null },
      { id: null, reason: 'absent' },
      { id, reason: null },
    ],
  );
});

test('a plain guard over memory, before anything is opened', async () => {
  assert.deepEqual(
    await answers(
      { op: 'process', id: 'a', outcome: 'throw' },
      {
        op: 'process',
        body: '{"meta":{"id":"a"}}',
        step: 'mail',
        headers: { 'bq-replay-bypass': '1' },
      },
      { op: 'process', id: 'a' },
      { op: 'seen', id: 'a' },
      { op: 'forget', id: 'a' },
      { op: 'seen', id: 'a' },
      { op: 'remember', id: 'a' },
      { op: 'process', id: 'a' },
      { op: 'process', file: body('absent-id.json') },
    ),
    [
      { ...ran, outcome: 'failed', marked: false },
      { ...ran, replay: true, step: true },
      skipped,
      { seen: true },
      { ok: true },
      { seen: false },
      { ok: true },
      skipped,
      { ...ran, id: null, reason: 'absent', marked: false },
    ],
  );
});

test('claims, and what it cannot do', async () => {
  const [opened, first, second, url, op, line] = await answers(
    { op: 'open', store: 'memory:', claim: true, lease_ms: 1000, retention_ms: 1000 },
    { op: 'process', id: 'a', hold_ms: 10 },
    { op: 'process', id: 'a' },
    { op: 'open', store: 'nowhere:' },
    { op: 'dance' },
    null,
  );
  assert.deepEqual([opened, first, second], [{ ok: true }, ran, skipped]);
  for (const { error, detail } of [url, op, line]) {
    assert.equal(error, 'unsupported');
    assert.equal(typeof detail, 'string');
  }
});
