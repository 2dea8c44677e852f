// Times functions against each other: turn and turn about, the best slice of each.
const SLICES = 30;

/** Nanoseconds a call for each of the functions, which answer `count` calls at a time. */
export async function race(functions, sliceMs = 15) {
  const entries = Object.entries(functions).map(([name, many]) => ({
    name,
    many,
    count: 16,
    best: Infinity,
  }));
  for (const entry of entries) {
    // Warmed up, and as many calls a slice as fit into its time.
    for (let elapsed = 0; elapsed < sliceMs; entry.count *= 2) {
      const start = performance.now();
      await entry.many(entry.count);
      elapsed = performance.now() - start;
    }
    entry.count /= 2;
  }
  for (let slice = 0; slice < SLICES; slice++) {
    for (const entry of entries) {
      const start = process.hrtime.bigint();
      await entry.many(entry.count);
      const each = Number(process.hrtime.bigint() - start) / entry.count;
      entry.best = Math.min(entry.best, each);
    }
  }
  return entries.map(({ name, best }) => ({ name, ns: best }));
}

/** Prints them, each as a ratio to the first. */
export function print(title, results) {
  console.log(`\n${title}`);
  for (const { name, ns } of results) {
    const ratio = (ns / results[0].ns).toFixed(2);
    console.log(
      `  ${name.padEnd(42)}${(ns / 1000).toFixed(2).padStart(9)} µs ${ratio.padStart(7)}`,
    );
  }
}

export const sync = (call) => (count) => {
  for (let i = 0; i < count; i++) call();
};

export const awaited = (call) => async (count) => {
  for (let i = 0; i < count; i++) await call();
};
