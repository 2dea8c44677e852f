/**
 * Every queue delivers at least once; this makes the effect happen once.
 *
 * @packageDocumentation
 */
export { GuardError, StoreError, StoreRejected, StoreUnavailable } from './errors.js';
export { Guard, wrap } from './guard.js';
export type { Context, GuardOptions } from './guard.js';
export { MemoryStore } from './memory.js';
export type { MemoryStoreOptions } from './memory.js';
export type { Retention } from './settings.js';
export type * from './types.js';
