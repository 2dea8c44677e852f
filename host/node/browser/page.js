import { Guard, MemoryStore } from '../dist/index.js';

const guard = new Guard(new MemoryStore());
const element = (id) => document.getElementById(id);

async function deliver() {
  const line = document.createElement('li');
  element('log').append(line);
  const result = await guard.process(element('envelope').value, () => 'charged');
  line.textContent =
    result.status === 'ran'
      ? `ran: ${result.value}, id ${result.id ?? `none (${result.failOpen})`}`
      : `${result.status}: id ${result.id}`;
}

element('deliver').addEventListener('click', deliver);
// A broker that hands out the first message twice.
await deliver();
await deliver();
