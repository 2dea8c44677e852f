package io.github.babelqueue.guard;

import java.util.Map;
import java.util.Objects;

/** One hand-over of a message to a consumer: its body or its id, and its transport headers. */
public final class Delivery {
  private static final String REPLAY = "bq-replay-bypass";

  private final byte[] body;
  private final String id;
  private final boolean replay;

  private Delivery(byte[] body, String id, boolean replay) {
    this.body = body;
    this.id = id;
    this.replay = replay;
  }

  /**
   * A delivery of which the body is known.
   *
   * @param body the envelope, any bytes; not copied, and not to be changed while it is decided on
   * @return the delivery
   */
  public static Delivery of(byte[] body) {
    return new Delivery(Objects.requireNonNull(body, "body"), null, false);
  }

  /**
   * A delivery of which the body is known, as text. An unpaired surrogate in it stays one: it makes
   * an id unusable, and does not matter elsewhere.
   *
   * @param body the envelope
   * @return the delivery
   */
  public static Delivery of(String body) {
    return of(Wtf8.encode(Objects.requireNonNull(body, "body")));
  }

  /**
   * A delivery of which the id is known already. The rules for a usable id apply to it as they do
   * to one read from a body (contract, section 1).
   *
   * @param id the message's id
   * @return the delivery
   */
  public static Delivery ofId(String id) {
    return new Delivery(null, Objects.requireNonNull(id, "id"), false);
  }

  /**
   * The same delivery, with its transport headers. Of these the guard looks for {@code
   * bq-replay-bypass}, and at no value.
   *
   * @param headers the headers, by their exact names
   * @return the delivery with these headers alone
   */
  public Delivery withHeaders(Map<String, ?> headers) {
    return new Delivery(body, id, headers.containsKey(REPLAY));
  }

  /** Null if the id is known. */
  byte[] body() {
    return body;
  }

  /** Null if the body is known. */
  String id() {
    return id;
  }

  boolean isReplay() {
    return replay;
  }
}
