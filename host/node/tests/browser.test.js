// The guard in a browser: the page of browser/, and every body of the shared cases.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { describeWith } from './programs.js';

const CHROMIUM = process.env.CHROMIUM ?? 'chromium';
const root = new URL('../../../', import.meta.url);
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json' };

/** Runs every body through a guard, in the page, and puts the verdicts into it. */
const CASES = `<!doctype html><pre id="verdicts"></pre><script type="module">
  import { Guard, MemoryStore } from '/host/node/dist/index.js';
  const folder = '/tests/cases/bodies/';
  const verdicts = [];
  for (const { file } of await (await fetch(folder + 'manifest.json')).json()) {
    const body = new Uint8Array(await (await fetch(folder + file)).arrayBuffer());
    const { id, failOpen } = await new Guard(new MemoryStore()).process(body, () => 1);
    verdicts.push({ file, id, reason: failOpen });
  }
  document.getElementById('verdicts').textContent = encodeURIComponent(JSON.stringify(verdicts));
</script>`;

describeWith(CHROMIUM, 'in Chromium', () => {
  let server, origin, profile;

  before(async () => {
    profile = await mkdtemp(join(tmpdir(), 'babelqueue-guard-'));
    server = createServer(async ({ url }, response) => {
      const type = TYPES[extname(url)] ?? 'application/octet-stream';
      try {
        const content = url === '/cases.html' ? CASES : await readFile(new URL(`.${url}`, root));
        response.writeHead(200, { 'Content-Type': type }).end(content);
      } catch {
        response.writeHead(404).end();
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${server.address().port}`;
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });

  /** The page's elements when all that it has begun is done. */
  async function render(path) {
    const browser = spawn(
      CHROMIUM,
      [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        `--user-data-dir=${profile}`,
        '--virtual-time-budget=60000',
        '--dump-dom',
        origin + path,
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    const [chunks] = await Promise.all([browser.stdout.toArray(), once(browser, 'exit')]);
    return Buffer.concat(chunks).toString();
  }

  test('the page runs the first message once', async () => {
    const page = await render('/host/node/browser/index.html');
    const lines = [...page.matchAll(/<li>(.*?)<\/li>/g)].map(([, line]) => line);
    assert.deepEqual(lines, ['ran: charged, id order-1042', 'skipped: id order-1042']);
  });

  test('every body has its verdict', async () => {
    const page = await render('/cases.html');
    const [, encoded] = /<pre id="verdicts">(.*?)<\/pre>/.exec(page);
    const manifest = await readFile(new URL('tests/cases/bodies/manifest.json', root));
    assert.deepEqual(
      JSON.parse(decodeURIComponent(encoded)),
      JSON.parse(manifest).map(({ file, id, reason }) => ({ file, id, reason })),
    );
  });
});
