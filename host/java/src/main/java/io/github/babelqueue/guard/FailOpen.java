package io.github.babelqueue.guard;

/** Why a delivery has no usable id, and runs without being deduplicated (contract, section 1). */
public enum FailOpen {
  /** The body is not one well-formed JSON object. */
  MALFORMED,
  /** The object has no member {@code meta}, or a {@code meta} object without {@code id}. */
  ABSENT,
  /**
   * Everything else: {@code meta} is no object, {@code id} is no string, or it is a string that is
   * empty, longer than 2,048 bytes of UTF-8, contains U+0000, or is not well-formed Unicode.
   */
  UNUSABLE
}
