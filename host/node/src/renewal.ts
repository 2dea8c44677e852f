/** Keeps a lease alive while a handler runs (contract, section 3). */
import type { Driver } from './driver.js';
import type { Ticket } from './instance.js';
import { LONGEST_TIMER_MS } from './settings.js';

/**
 * Renews at a third of the lease's length. The lease counts as lost when the
 * store says so, or when no renewal has got through for its whole length.
 */
export class Renewal {
  readonly #driver: Driver;
  readonly #ticket: Ticket;
  readonly #lengthMs: number;
  readonly #onLost: () => void;
  #heldSince: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #expiry: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  /** @param claimedAt when the claim was sent, by `performance.now()`. */
  constructor(
    driver: Driver,
    ticket: Ticket & { lengthMs: number },
    claimedAt: number,
    onLost: () => void,
  ) {
    this.#driver = driver;
    this.#ticket = ticket;
    this.#lengthMs = ticket.lengthMs;
    this.#heldSince = claimedAt;
    this.#onLost = onLost;
    this.#expireLater();
    this.#renewLater();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#expiry);
  }

  #renewLater(): void {
    this.#timer = setTimeout(
      () => void this.#renew(),
      Math.min(this.#lengthMs / 3, LONGEST_TIMER_MS),
    );
  }

  #expireLater(): void {
    clearTimeout(this.#expiry);
    const left = this.#heldSince + this.#lengthMs - performance.now();
    this.#expiry = setTimeout(
      () => {
        this.#lose();
      },
      Math.min(left, LONGEST_TIMER_MS),
    );
  }

  async #renew(): Promise<void> {
    const sent = performance.now();
    try {
      const hold = await this.#driver.renew(this.#ticket);
      if (this.#stopped) return;
      if (hold === 'lost') {
        this.#lose();
        return;
      }
      this.#heldSince = sent;
      this.#expireLater();
    } catch {
      // The store may be back before the lease ends.
    }
    if (!this.#stopped) this.#renewLater();
  }

  #lose(): void {
    this.stop();
    this.#onLost();
  }
}
