package io.github.babelqueue.guard.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.babelqueue.guard.Claims;
import io.github.babelqueue.guard.Context;
import io.github.babelqueue.guard.Delivery;
import io.github.babelqueue.guard.FailOpen;
import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.GuardException;
import io.github.babelqueue.guard.Result;
import io.github.babelqueue.guard.Store;
import io.github.babelqueue.guard.StoreRejectedException;
import io.github.babelqueue.guard.StoreUnavailableException;
import io.github.babelqueue.guard.UndecidedException;
import io.github.babelqueue.guard.store.MemoryStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/** Answers the requests that {@code tests/README.md} describes, one line of JSON each. */
public final class Worker {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** What a handler throws that is told to. */
  private static final class HandlerFailed extends Exception {
    private static final long serialVersionUID = 1L;
  }

  private final Guard verdicts = Guard.plain(new MemoryStore());
  private Store store = new MemoryStore();
  private Guard guard = Guard.plain(store);

  private Worker() {}

  /**
   * Serves standard input until it ends.
   *
   * @param arguments none
   * @throws IOException if standard input cannot be read
   */
  public static void main(String[] arguments) throws IOException {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Worker worker = new Worker();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(worker.answer(line));
    }
  }

  private ObjectNode answer(String line) {
    try {
      JsonNode request = JSON.readTree(line);
      return switch (request.path("op").asText()) {
        case "open" -> open(request);
        case "verdict" -> verdict(request);
        case "process" -> process(request);
        case "seen" -> object().put("seen", store.seen(request.get("id").asText()));
        case "remember" -> {
          store.remember(request.get("id").asText());
          yield object().put("ok", true);
        }
        case "forget" -> {
          guard.forget(request.get("id").asText());
          yield object().put("ok", true);
        }
        default -> object().put("error", "unsupported").put("detail", "no such op");
      };
    } catch (GuardException failure) {
      return object().put("error", kind(failure)).put("detail", failure.getMessage());
    } catch (Exception failure) {
      return object().put("error", "unsupported").put("detail", failure.toString());
    }
  }

  // ---- requests -------------------------------------------------------------------------------

  private ObjectNode open(JsonNode request) throws Exception {
    Store opened = Stores.open(request);
    if (store instanceof AutoCloseable closeable) {
      closeable.close();
    }
    guard.close();
    store = opened;
    guard = request.path("claim").asBoolean() ? claiming(store) : Guard.plain(store);
    return object().put("ok", true);
  }

  private static <S extends Store & Claims> Guard claiming(Store store) {
    @SuppressWarnings("unchecked") // Both stores of this package have claims.
    S claims = (S) store;
    return Guard.claiming(claims);
  }

  private ObjectNode verdict(JsonNode request) throws IOException {
    try {
      var seen = new Observed();
      Result result = verdicts.process(file(request), seen::run);
      String id = result instanceof Result.Skipped skipped ? skipped.id() : seen.id;
      return object().put("id", id).put("reason", seen.reason);
    } catch (UndecidedException undecided) {
      return object().put("error", kind(undecided));
    }
  }

  private ObjectNode process(JsonNode request) throws IOException {
    var seen = new Observed();
    ObjectNode answer = object();
    String decision = "run";
    String outcome = null;
    GuardException error = null;
    boolean marked = false;
    Long left = null;
    try {
      Result result = guard.process(delivery(request), context -> seen.run(context, request));
      if (result instanceof Result.Ran ran) {
        outcome = "succeeded";
        marked = ran.marked();
        error = ran.markError().orElse(null);
      } else if (result instanceof Result.Skipped skipped) {
        decision = "skip";
        seen.id = skipped.id();
      } else if (result instanceof Result.Parked parked) {
        decision = "park";
        seen.id = parked.id();
        left = parked.left().toMillis();
      }
    } catch (HandlerFailed failed) {
      outcome = "failed";
    } catch (GuardException failure) {
      // Thrown by a step within the handler, or without the handler having been called.
      decision = seen.ran ? "run" : "error";
      outcome = seen.ran ? "failed" : null;
      error = failure;
    }
    if (error != null) {
      answer.put("detail", error.getMessage());
    }
    return answer
        .put("decision", decision)
        .put("id", seen.id)
        .put("reason", seen.reason)
        .put("outcome", outcome)
        .put("marked", marked)
        .put("error", error == null ? null : kind(error))
        .put("left_ms", left)
        .put("replay", seen.replay)
        .put("step", seen.step);
  }

  /** What the handler saw. */
  private static final class Observed {
    private boolean ran;
    private String id;
    private String reason;
    private Boolean replay;
    private Boolean step;

    void run(Context context) {
      ran = true;
      id = context.id().orElse(null);
      Optional<FailOpen> failOpen = context.failOpen();
      reason = failOpen.map(why -> why.name().toLowerCase(Locale.ROOT)).orElse(null);
      replay = context.isReplay();
    }

    void run(Context context, JsonNode request) throws HandlerFailed {
      run(context);
      hold(request.path("hold_ms").asLong());
      if (request.hasNonNull("step")) {
        step = context.once(request.get("step").asText());
      }
      if (request.path("outcome").asText().equals("throw")) {
        throw new HandlerFailed();
      }
    }
  }

  private static void hold(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException nobodyDoes) {
      throw new IllegalStateException(nobodyDoes);
    }
  }

  // ---- JSON -------------------------------------------------------------------------------------

  private static Delivery delivery(JsonNode request) throws IOException {
    Delivery delivery;
    if (request.hasNonNull("id")) {
      delivery = Delivery.ofId(request.get("id").asText());
    } else if (request.hasNonNull("body")) {
      delivery = Delivery.of(request.get("body").asText());
    } else {
      delivery = Delivery.of(file(request));
    }
    Map<String, Object> headers = new HashMap<>();
    request.path("headers").properties().forEach(one -> headers.put(one.getKey(), one.getValue()));
    return delivery.withHeaders(headers);
  }

  private static byte[] file(JsonNode request) throws IOException {
    return Files.readAllBytes(Path.of(request.get("file").asText()));
  }

  private static ObjectNode object() {
    return JSON.createObjectNode();
  }

  private static String kind(GuardException failure) {
    if (failure instanceof StoreUnavailableException) {
      return "unavailable";
    }
    return failure instanceof StoreRejectedException ? "rejected" : "guard";
  }
}
