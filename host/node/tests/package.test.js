// The package as npm makes it, installed into an empty place: its examples, its README, its types.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { after, before, describe, test } from 'node:test';
import { skipWithout } from './programs.js';
import { REDIS_SERVER, RedisServer } from './redis-server.js';

const here = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

describe('the package', () => {
  let place;

  before(async () => {
    place = await mkdtemp(join(tmpdir(), 'babelqueue-guard-'));
    // `npm test` has built it already, and other tests are using what it built.
    const packed = await run(
      'npm',
      ['pack', '--ignore-scripts', '--json', '--pack-destination', place],
      { cwd: here },
    );
    const [{ filename }] = JSON.parse(packed.stdout);
    await writeFile(join(place, 'package.json'), '{"type":"module"}');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', join(place, filename)], {
      cwd: place,
    });
  });
  after(() => rm(place, { recursive: true, force: true }));

  const node = async (file) => (await run(process.execPath, [file], { cwd: place })).stdout;

  test('brings no other package', async () => {
    const packages = (await readdir(join(place, 'node_modules'))).filter(
      (name) => !name.startsWith('.'),
    );
    assert.deepEqual(packages, ['babelqueue-guard']);
  });

  for (const name of ['redelivery', 'copies']) {
    test(`runs the example ${name}`, async () => {
      await copyFile(join(here, `examples/${name}.js`), join(place, `${name}.js`));
      assert.equal(
        await node(`${name}.js`),
        await readFile(join(here, `examples/${name}.out`), 'utf8'),
      );
    });
  }

  test('says that the package redis is missing', async () => {
    await writeFile(
      join(place, 'missing.js'),
      `import { RedisStore } from 'babelqueue-guard/redis';
       await RedisStore.connect('redis://localhost').catch((error) => console.log(error.message));`,
    );
    assert.match(await node('missing.js'), /npm install redis/);
  });

  /** The programs of the README, each with the output that follows it. */
  async function programs() {
    const readme = await readFile(join(here, 'README.md'), 'utf8');
    return [...readme.matchAll(/```js\n(.*?)```\n\n```text\n(.*?)```/gs)].map(
      ([, program, output]) => ({ program, output }),
    );
  }

  test('does what its README says', async () => {
    const [{ program, output }, ...others] = await programs();
    assert.equal(others.length, 1);
    await writeFile(join(place, 'readme.js'), program);
    assert.equal(await node('readme.js'), output);
  });

  const compile = async (...parameters) => {
    const tsc = join(here, 'node_modules/typescript/bin/tsc');
    const strict = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022'];
    const all = [tsc, ...strict, '--lib', 'es2022,dom', ...parameters];
    await run(process.execPath, all, { cwd: place }).catch(({ stdout }) => assert.fail(stdout));
  };

  /** From here on, the packages of both clients are there too. */
  const withClients = async () => {
    for (const name of ['redis', '@redis', 'ioredis', '@types']) {
      const link = join(place, 'node_modules', name);
      await symlink(join(here, 'node_modules', name), link).catch((error) =>
        assert.equal(error.code, 'EEXIST'),
      );
    }
  };

  test('has types that a strict consumer compiles with', async () => {
    await copyFile(join(here, 'tests/types.ts'), join(place, 'types.ts'));
    await compile('types.ts');
  });

  test('has types that take the clients of both packages', async () => {
    await withClients();
    await copyFile(join(here, 'tests/types-redis.ts'), join(place, 'types-redis.ts'));
    await compile('--types', 'node', '--skipLibCheck', 'types-redis.ts');
  });

  test('does what its README says, on Redis', { skip: skipWithout(REDIS_SERVER) }, async () => {
    const server = await RedisServer.start();
    try {
      const [, { program, output }] = await programs();
      await writeFile(
        join(place, 'readme-redis.js'),
        program.replace('redis://localhost:6379', server.url),
      );
      await withClients();
      assert.equal(await node('readme-redis.js'), output);
    } finally {
      await server.stop();
    }
  });
});

test('what the package copies has the bytes of its source', async () => {
  const copies = {
    'artifacts/plain.core.wasm': 'guest/artifacts/plain.core.wasm',
    'artifacts/claiming.core.wasm': 'guest/artifacts/claiming.core.wasm',
    'artifacts/renew.lua': 'stores/redis/renew.lua',
    'artifacts/release.lua': 'stores/redis/release.lua',
    'LICENSE-MIT': 'LICENSE-MIT',
    'LICENSE-APACHE': 'LICENSE-APACHE',
  };
  for (const [copy, source] of Object.entries(copies)) {
    const original = await readFile(join(here, '../..', source));
    assert(original.equals(await readFile(join(here, copy))), copy);
  }
});
