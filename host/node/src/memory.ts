/** A store in this process's memory. */
import { duration, LEASE_MS, RETENTION_MS, retention, stepRetention, whole } from './settings.js';
import type { Retention } from './settings.js';
import type { Claim, ClaimingStore, Hold, MarkingStore } from './types.js';

/** Settings of a {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /**
   * How long marks and steps are kept, in milliseconds; 14 days unless set.
   * With `'forever'`, steps are rejected.
   */
  retentionMs?: Retention | undefined;
  /** How long a lease lasts, in milliseconds; 60,000 unless set. */
  leaseMs?: number | undefined;
  /** How many marks, and how many steps, are kept; a million of each unless set. */
  maxEntries?: number | undefined;
}

/**
 * Remembers ids for this process alone, and answers at once.
 *
 * Bounded by the retention and by a number of entries: where there is no more
 * room, the mark that was set longest ago is forgotten first, and a delivery
 * of its id would run again. Live leases are never dropped; there are as many
 * as deliveries in progress. The clock is a monotonic one.
 */
export class MemoryStore implements ClaimingStore, MarkingStore {
  readonly #kept: Retention;
  readonly #leaseMs: number;
  readonly #marks: Expiring<true>;
  readonly #steps: Expiring<true>;
  readonly #leases: Expiring<string>;

  constructor({
    retentionMs = RETENTION_MS,
    leaseMs = LEASE_MS,
    maxEntries = 1_000_000,
  }: MemoryStoreOptions = {}) {
    this.#kept = retention(retentionMs);
    const keptMs = this.#kept === 'forever' ? Infinity : this.#kept;
    const most = whole('maxEntries', maxEntries, 'entries', 2 ** 24);
    this.#leaseMs = duration('leaseMs', leaseMs);
    this.#marks = new Expiring(keptMs, most);
    this.#steps = new Expiring(keptMs, most);
    this.#leases = new Expiring(this.#leaseMs, Infinity);
  }

  seen(id: string): boolean {
    return this.#marks.get(id) === true;
  }

  remember(id: string): void {
    this.#marks.set(id, true);
  }

  forget(id: string): void {
    this.#marks.delete(id);
  }

  claim(id: string): Claim {
    if (this.seen(id)) return { outcome: 'done' };
    const left = this.#leases.left(id);
    if (left > 0) return { outcome: 'busy', leftMs: Math.ceil(left) };
    const token = crypto.randomUUID();
    this.#leases.set(id, token);
    return { outcome: 'won', token, lengthMs: this.#leaseMs };
  }

  renew(id: string, token: string): Hold {
    if (this.#leases.get(id) !== token) return 'lost';
    this.#leases.set(id, token);
    return 'held';
  }

  complete(id: string, token: string): Hold {
    this.remember(id);
    return this.release(id, token);
  }

  release(id: string, token: string): Hold {
    if (this.#leases.get(id) !== token) return 'lost';
    this.#leases.delete(id);
    return 'held';
  }

  /** @throws {StoreRejected} marks are kept for ever. */
  setOnce(id: string, step: string): boolean {
    stepRetention('memory', this.#kept);
    const key = `${step}:${id}`;
    if (this.#steps.get(key) === true) return false;
    this.#steps.set(key, true);
    return true;
  }
}

interface Entry<V> {
  value: V;
  until: number;
}

/**
 * A map whose entries expire, all after the same time. So they expire in the
 * order in which they were set, which is the order that a `Map` keeps.
 */
class Expiring<V> {
  readonly #lengthMs: number;
  readonly #most: number;
  readonly #entries = new Map<string, Entry<V>>();
  // Kept between calls: a new iterator would pass the places of all entries
  // that have been deleted since the map was last compacted.
  #walk = this.#entries.entries();
  #oldest: [string, Entry<V>] | undefined;

  constructor(lengthMs: number, most: number) {
    this.#lengthMs = lengthMs;
    this.#most = most;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.until > performance.now() ? entry.value : undefined;
  }

  /** The time that an entry has left, in milliseconds; not positive if there is none. */
  left(key: string): number {
    return (this.#entries.get(key)?.until ?? -Infinity) - performance.now();
  }

  set(key: string, value: V): void {
    const now = performance.now();
    // Deleted first, since a key that is there would keep its place.
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: now + this.#lengthMs });
    this.#dropOldest(now);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  #dropOldest(now: number): void {
    for (;;) {
      this.#oldest ??= this.#next();
      const [key, entry] = this.#oldest;
      if (this.#entries.get(key) === entry) {
        if (entry.until > now && this.#entries.size <= this.#most) return;
        this.#entries.delete(key);
      }
      this.#oldest = undefined;
    }
  }

  /** The next entry of a map that is not empty. */
  #next(): [string, Entry<V>] {
    for (;;) {
      const { value } = this.#walk.next();
      if (value !== undefined) return value;
      this.#walk = this.#entries.entries();
    }
  }
}
