// Charges what comes on its queue, and ends when DELIVERIES (a variable of the environment) are
// acknowledged. The consumer in Go does the same at the same time.
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard } from 'babelqueue-guard';
import { RedisStore } from 'babelqueue-guard/redis';
import { createClient } from 'redis';

const queue = 'payments.node';
const processing = `${queue}:processing`;
const deliveries = Number(process.env.DELIVERIES);
const patienceSeconds = 60;

const redis = await createClient({ url: process.env.REDIS_URL }).connect();
// One consumer in two languages: one name, and so the same marks and leases.
const store = new RedisStore(redis, { consumer: 'billing' });
const guard = new Guard(store, { claim: true });

async function charge(envelope) {
  const { order, cents } = JSON.parse(envelope).data;
  await sleep(10); // the card service takes its time
  await redis.rPush('payments.ledger', JSON.stringify({ order, cents }));
}

let acknowledged = 0;
let parked = 0;
console.error('node: ready');
while (acknowledged < deliveries) {
  const envelope = await redis.blMove(queue, processing, 'LEFT', 'RIGHT', patienceSeconds);
  if (envelope === null) throw new Error(`nothing came for ${patienceSeconds} s`);
  const { status } = await guard.process(envelope, () => charge(envelope));
  const settle = redis.multi().lRem(processing, 1, envelope);
  if (status === 'parked') {
    parked += 1;
    await sleep(5);
    settle.rPush(queue, envelope); // the other holds it: to be delivered again later
  } else {
    acknowledged += 1;
  }
  await settle.exec();
}
console.log(`node: ${acknowledged} deliveries acknowledged`);
console.error(`node: ${parked} times a payment was in the other's hands`);
redis.destroy();
