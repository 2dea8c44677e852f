// A broker that redelivers, a handler that fails once, and one charge all the same.
import { Guard, MemoryStore } from 'babelqueue-guard';

const guard = new Guard(new MemoryStore());
const order = JSON.stringify({
  job: 'urn:babel:orders:created',
  data: { order: 1042, amount: 99.9 },
  meta: { id: 'order-1042' },
});

let attempts = 0;
async function charge() {
  attempts += 1;
  if (attempts === 1) throw new Error('the card service is down');
  console.log('charged 99.9');
}

for (let delivery = 1; delivery <= 4; delivery++) {
  try {
    const { status } = await guard.process(order, charge);
    console.log(`delivery ${delivery}: ${status}, acknowledged`);
  } catch (error) {
    console.log(`delivery ${delivery}: ${error.message}, delivered again later`);
  }
}
