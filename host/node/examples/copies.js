// Two consumers get copies of one message at the same moment: one runs, the other parks.
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryStore, wrap } from 'babelqueue-guard';

const store = new MemoryStore({ leaseMs: 2000 });
const mail = 'urn:babel:mails:wanted';
const message = JSON.stringify({ job: mail, data: { to: 'ada' }, meta: { id: 'mail-7' } });

const consume = wrap(
  store,
  async (body, context) => {
    // A step that is rather lost than repeated.
    if (await context.once('count')) console.log('counted');
    await sleep(50);
    console.log(`mailed to ${JSON.parse(body).data.to}`);
  },
  { claim: true },
);

const results = await Promise.all([consume(message), consume(message)]);
console.log(results.map(({ status }) => status).join(', '));
console.log((await consume(message)).status);
