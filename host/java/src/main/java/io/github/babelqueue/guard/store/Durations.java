package io.github.babelqueue.guard.store;

import java.time.Duration;

/** Durations as stores take them (contract, section 7): whole milliseconds, at least one. */
final class Durations {
  static final Duration DEFAULT_RETENTION = Duration.ofDays(14);
  static final Duration DEFAULT_LEASE = Duration.ofSeconds(60);

  /** So long that no clock of a store overflows when it is added to the present time. */
  private static final long LONGEST_MILLIS = Long.MAX_VALUE / 2;

  private Durations() {}

  /**
   * Checks a setting.
   *
   * @return the duration in milliseconds
   * @throws IllegalArgumentException naming the setting
   */
  static long millis(String setting, Duration duration) {
    if (duration == null) {
      throw new IllegalArgumentException(setting + " must be a duration, not null");
    }
    if (duration.isZero() || duration.isNegative()) {
      throw new IllegalArgumentException(setting + " must be longer than zero: " + duration);
    }
    if (duration.getNano() % 1_000_000 != 0) {
      throw new IllegalArgumentException(setting + " must be whole milliseconds: " + duration);
    }
    if (duration.compareTo(Duration.ofMillis(LONGEST_MILLIS)) > 0) {
      throw new IllegalArgumentException(setting + " is too long for any store: " + duration);
    }
    return duration.toMillis();
  }
}
