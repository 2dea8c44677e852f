/** The stores that come with the guard: in memory, and on Redis or Valkey. */
package io.github.babelqueue.guard.store;
