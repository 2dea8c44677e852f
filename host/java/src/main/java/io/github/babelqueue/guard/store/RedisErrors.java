package io.github.babelqueue.guard.store;

import io.github.babelqueue.guard.GuardException;
import io.github.babelqueue.guard.StoreRejectedException;
import io.github.babelqueue.guard.StoreUnavailableException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import redis.clients.jedis.exceptions.JedisDataException;

/** What Redis and its client report, in the contract's words (section 7). */
final class RedisErrors {
  private static final String TRANSIENT =
      "LOADING|READONLY|MOVED|ASK|CLUSTERDOWN|TRYAGAIN|BUSY|MASTERDOWN|OOM|NOREPLICAS|MISCONF";

  private static final Pattern UNAVAILABLE =
      Pattern.compile(
          "^-?(?:"
              + TRANSIENT
              + ")\\b|^ERR max number of clients"
              // Before version 7, an error within a script comes wrapped in another one.
              + "|^ERR Error running script.*\\b(?:"
              + TRANSIENT
              + ")\\b");

  private RedisErrors() {}

  /** The server's own words, or null if the server did not speak. */
  static String reply(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof JedisDataException said && said.getMessage() != null) {
        return said.getMessage();
      }
    }
    return null;
  }

  static boolean isReply(Throwable failure, String code) {
    String reply = reply(failure);
    return reply != null && reply.contains(code);
  }

  static boolean isCausedBy(Throwable failure, Class<? extends Throwable> kind) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (kind.isInstance(cause)) {
        return true;
      }
    }
    return false;
  }

  static GuardException classify(String command, byte[] key, RuntimeException failure) {
    String what = "Redis, " + command + " " + new String(key, StandardCharsets.UTF_8) + ": ";
    String reply = reply(failure);
    if (reply == null) {
      return new StoreUnavailableException(what + failure.getMessage(), failure);
    }
    return UNAVAILABLE.matcher(reply).find()
        ? new StoreUnavailableException(what + reply, failure)
        : new StoreRejectedException(what + reply, failure);
  }
}
