// A whole delivery over Redis next to the same commands sent bare, in one run.
import { Guard } from 'babelqueue-guard';
import { RedisStore } from 'babelqueue-guard/redis';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { skipWithout } from '../tests/programs.js';
import { REDIS_SERVER, RedisServer } from '../tests/redis-server.js';
import { awaited, print, race } from './timing.js';

const skip = skipWithout(REDIS_SERVER);
if (skip) {
  console.log(`\nskipped: ${skip}`);
  process.exit();
}

const server = await RedisServer.start();
const client = await createClient({ url: server.url }).connect();
const ioredis = new Redis(server.url);
let count = 0;
const body = () => `{"job":"urn:a","data":{},"meta":{"id":"3e9b51c4-77d0-4f1a-8c26-${count++}"}}`;

for (const [name, each, send] of [
  ['node-redis', client, (...command) => client.sendCommand(command)],
  ['ioredis', ioredis, (...command) => ioredis.call(...command)],
]) {
  const store = new RedisStore(each, { retentionMs: 60_000 });
  const plain = new Guard(store);
  const claiming = new Guard(store, { claim: true });
  print(
    `a delivery over Redis by ${name}`,
    await race({
      'bare GET and SET': awaited(async () => {
        const key = `bq:idemp:bare-${count++}`;
        await send('GET', key);
        await send('SET', key, '1', 'PX', '60000');
      }),
      'process, plain': awaited(() => plain.process(body(), () => 1)),
      'process, claiming': awaited(() => claiming.process(body(), () => 1)),
    }),
  );
  store.close();
}

client.destroy();
ioredis.disconnect();
await server.stop();
