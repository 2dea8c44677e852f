// Writes src/embedded.ts: the core modules and the Redis scripts as text, so
// that the package needs neither a file system nor `fetch` to find them, in
// Node, in a browser and in a bundle alike.
import { readFile, writeFile } from 'node:fs/promises';

const artifact = (name) => readFile(new URL(`../artifacts/${name}`, import.meta.url));
const constant = (name, text) => `export const ${name}: string = ${JSON.stringify(text)};\n`;

let source = '// Made by scripts/embed.js.\n';
for (const world of ['plain', 'claiming']) {
  source += constant(world, (await artifact(`${world}.core.wasm`)).toString('base64'));
}
for (const script of ['renew', 'release']) {
  source += constant(script, (await artifact(`${script}.lua`)).toString());
}
await writeFile(new URL('../src/embedded.ts', import.meta.url), source);
