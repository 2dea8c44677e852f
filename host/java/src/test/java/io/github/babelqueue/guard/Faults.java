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

  /** What claims say of the lease's length; zero for the truth. */
  volatile long leaseMillis;

  private volatile String lastToken;

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
    ClaimOutcome outcome = inner.claim(id);
    if (outcome instanceof ClaimOutcome.Won won) {
      lastToken = won.token();
      return leaseMillis == 0 ? won : new ClaimOutcome.Won(won.token(), leaseMillis);
    }
    return outcome;
  }

  String lastToken() {
    return lastToken;
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
