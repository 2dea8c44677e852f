package io.github.babelqueue.guard;

import io.github.babelqueue.guard.Answer.Claimed;
import io.github.babelqueue.guard.Answer.Done;
import io.github.babelqueue.guard.Answer.Held;
import io.github.babelqueue.guard.Answer.Yes;

/**
 * What the component asks of its store.
 *
 * @param argument the token or the step; null where there is none
 */
record Question(Kind kind, String id, String argument) {

  /**
   * A function that the component imports.
   *
   * <p>Each has an answer that the component is given while the true one is not known yet. It is
   * the one that is most often true where there is a choice, for then the first run stands.
   */
  enum Kind {
    SEEN("store", "seen", false, new Yes(false)),
    REMEMBER("store", "remember", false, new Done()),
    FORGET("store", "forget", false, new Done()),
    CLAIM("claims", "claim", false, new Claimed(new ClaimOutcome.Busy(0))),
    RENEW("claims", "renew", true, new Held(Hold.HELD)),
    COMPLETE("claims", "complete", true, new Held(Hold.HELD)),
    RELEASE("claims", "release", true, new Held(Hold.HELD)),
    SET_ONCE("marker", "set-once", true, new Yes(true));

    final String module;
    final String function;
    final boolean hasArgument;
    final Answer supposed;

    Kind(String module, String function, boolean hasArgument, Answer supposed) {
      this.module = "babelqueue:guard/" + module + "@0.1.0";
      this.function = function;
      this.hasArgument = hasArgument;
      this.supposed = supposed;
    }
  }
}
