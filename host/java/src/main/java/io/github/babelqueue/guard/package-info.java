/**
 * Makes the effect of a message happen once, though its queue delivers it at least once.
 *
 * <p>A {@link io.github.babelqueue.guard.Guard} reads the id in a delivery's envelope, asks a
 * {@link io.github.babelqueue.guard.Store} whether it was processed, calls the handler or not, and
 * records how that ended. What it decides, and why, is the contract in {@code docs/contract.md},
 * which all languages share.
 */
package io.github.babelqueue.guard;
