/** Checks of what a store or a guard is built with. */
import { describe, StoreRejected } from './errors.js';

const DAY_MS = 24 * 60 * 60 * 1000;

/** The longest that common brokers keep a message. */
export const RETENTION_MS = 14 * DAY_MS;
export const LEASE_MS = 60_000;

/** Some 31,000 years: what a clock of milliseconds and Redis's `PX` both take. */
const MOST_MS = 1e15;

/** Longer timers fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * How long a mark is kept: whole milliseconds, or for ever, with which steps
 * are rejected (contract, section 4).
 */
export type Retention = number | 'forever';

/** A whole, positive number of milliseconds that every store can add to its clock. */
export function duration(setting: string, value: unknown, most = MOST_MS): number {
  return whole(setting, value, 'milliseconds', most);
}

export function retention(value: unknown): Retention {
  return value === 'forever' ? value : duration('retentionMs', value);
}

/** The retention of a step's mark, which is never for ever (contract, section 4). */
export function stepRetention(store: string, kept: Retention): number {
  if (kept !== 'forever') return kept;
  throw new StoreRejected(
    `${store}: steps need a retention, and this store keeps its marks for ever: give it one to use steps`,
  );
}

export function whole(setting: string, value: unknown, unit: string, most: number): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) {
    return value as number;
  }
  throw new RangeError(
    `${setting} must be a whole number of ${unit} from 1 to ${String(most)}, not ${describe(value)}`,
  );
}
