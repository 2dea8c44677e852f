/** Text in and out of the component's memory, without ever replacing a character. */

/** Both keep a leading U+FEFF, and the decoder refuses what is not UTF-8. */
export const encoder = new TextEncoder();
export const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** UTF-8 takes at most this many bytes for a UTF-16 unit. */
export const MOST_BYTES = 3;

/**
 * How many bytes a text takes, unpaired surrogates as `illFormedToBytes` has
 * them. Counted only where its length does not tell whether that is over the limit.
 */
export function utf8Length(text: string, limit: number): number {
  if (text.length > limit || text.length * MOST_BYTES <= limit) return text.length;
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const point = text.codePointAt(i)!;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (point > 0xffff) i += 1;
  }
  return bytes;
}

/**
 * The bytes of a text that is not well-formed: an unpaired surrogate becomes
 * the three bytes that UTF-8 would have for it, so that the component sees it
 * and refuses it where it counts. A `TextEncoder` would make U+FFFD of it, and
 * two different ids equal.
 */
export function illFormedToBytes(text: string): Uint8Array {
  // With the flag `u`, only unpaired surrogates match.
  const parts = text.split(/(\p{Surrogate})/u).map((part, i) => {
    if (i % 2 === 0) return encoder.encode(part);
    const unit = part.charCodeAt(0);
    return Uint8Array.of(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  });
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let end = 0;
  for (const part of parts) {
    bytes.set(part, end);
    end += part.length;
  }
  return bytes;
}
