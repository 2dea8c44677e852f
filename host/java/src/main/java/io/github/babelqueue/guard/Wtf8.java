package io.github.babelqueue.guard;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Text as bytes, without a replacement character. An unpaired surrogate becomes the three bytes
 * that UTF-8 would give it, which no UTF-8 contains: the component refuses them in an id, and lets
 * them be elsewhere.
 */
final class Wtf8 {
  private Wtf8() {}

  static byte[] encode(String text) {
    return isWellFormed(text) ? text.getBytes(StandardCharsets.UTF_8) : encodeIllFormed(text);
  }

  static boolean isWellFormed(String text) {
    for (int i = 0; i < text.length(); i++) {
      char unit = text.charAt(i);
      if (Character.isSurrogate(unit)) {
        boolean pair =
            Character.isHighSurrogate(unit)
                && i + 1 < text.length()
                && Character.isLowSurrogate(text.charAt(i + 1));
        if (!pair) {
          return false;
        }
        i++;
      }
    }
    return true;
  }

  private static byte[] encodeIllFormed(String text) {
    var bytes = new ByteArrayOutputStream(text.length() + 16);
    text.codePoints()
        .forEach(
            point -> {
              if (Character.MIN_SURROGATE <= point && point <= Character.MAX_SURROGATE) {
                bytes.write(0xE0 | point >> 12);
                bytes.write(0x80 | point >> 6 & 0x3F);
                bytes.write(0x80 | point & 0x3F);
              } else {
                bytes.writeBytes(Character.toString(point).getBytes(StandardCharsets.UTF_8));
              }
            });
    return bytes.toByteArray();
  }
}
