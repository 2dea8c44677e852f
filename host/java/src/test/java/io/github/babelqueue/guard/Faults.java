package io.github.babelqueue.guard;

import io.github.babelqueue.guard.store.MemoryStore;

/** A memory store that counts its calls, and in which chosen ones fail. */
class Faults implements Store, Claims, Marker {
  /** Runs before a call; what it throws, the store throws. */
  interface Fault {
    void strike() throws Exception;
  }

  final MemoryStore inner = new MemoryStore();
  volatile Fault onSeen = () -> {};
  volatile Fault onRemember = () -> {};
  volatile Fault onClaim = () -> {};
  volatile Fault onRenew = () -> {};
  volatile Fault onComplete = () -> {};
  volatile Fault onRelease = () -> {};
  volatile int calls;

  private void before(Fault fault) throws Exception {
    calls++;
    fault.strike();
  }

  @Override
  public boolean seen(String id) throws Exception {
    before(onSeen);
    return inner.seen(id);
  }

  @Override
  public void remember(String id) throws Exception {
    before(onRemember);
    inner.remember(id);
  }

  @Override
  public void forget(String id) throws Exception {
    before(() -> {});
    inner.forget(id);
  }

  @Override
  public ClaimOutcome claim(String id) throws Exception {
    before(onClaim);
    return inner.claim(id);
  }

  @Override
  public Hold renew(String id, String token) throws Exception {
    before(onRenew);
    return inner.renew(id, token);
  }

  @Override
  public Hold complete(String id, String token) throws Exception {
    before(onComplete);
    return inner.complete(id, token);
  }

  @Override
  public Hold release(String id, String token) throws Exception {
    before(onRelease);
    return inner.release(id, token);
  }

  @Override
  public boolean setOnce(String id, String step) throws Exception {
    before(() -> {});
    return inner.setOnce(id, step);
  }
}
