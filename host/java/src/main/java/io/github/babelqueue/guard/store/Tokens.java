package io.github.babelqueue.guard.store;

import java.security.SecureRandom;
import java.util.HexFormat;

/** Names for leases: 128 random bits in hexadecimal, new for each claim. */
final class Tokens {
  private static final SecureRandom RANDOM = new SecureRandom();

  private Tokens() {}

  static String next() {
    byte[] bits = new byte[16];
    RANDOM.nextBytes(bits);
    return HexFormat.of().formatHex(bits);
  }
}
