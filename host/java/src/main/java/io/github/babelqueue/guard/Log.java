package io.github.babelqueue.guard;

/**
 * Where failures go that have no caller. Apart, since finding a logger is slow and seldom needed.
 */
final class Log {
  private static final System.Logger LOGGER = System.getLogger(Log.class.getPackageName());

  private Log() {}

  static void warn(String what, Throwable failure) {
    LOGGER.log(System.Logger.Level.WARNING, what, failure);
  }
}
