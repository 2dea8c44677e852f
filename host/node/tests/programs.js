// Programs that some tests need. Where one is missing, its tests are skipped and counted; CI has to have it.
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';

/** Why tests that need the program are skipped; false where they are not. */
export function skipWithout(program) {
  const missing = spawnSync(program, ['--version']).error !== undefined;
  return missing && process.env.CI !== 'true' && `${program} is not installed`;
}

/** A suite that needs a program. Unlike a skipped suite, a skipped test is counted. */
export function describeWith(program, name, tests) {
  const skip = skipWithout(program);
  if (skip) test(name, { skip }, () => undefined);
  else describe(name, tests);
}
