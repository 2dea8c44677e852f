import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.Result;
import io.github.babelqueue.guard.store.MemoryStore;
import java.nio.charset.StandardCharsets;

/** One message, delivered twice. */
class Quickstart {
  public static void main(String[] arguments) {
    byte[] body =
        "{\"job\":\"urn:babel:orders:created\",\"meta\":{\"id\":\"order-17\"}}"
            .getBytes(StandardCharsets.UTF_8);

    try (Guard guard = Guard.plain(new MemoryStore())) {
      for (int delivery = 1; delivery <= 2; delivery++) {
        Result result =
            guard.process(
                body, context -> System.out.println("charging for " + context.id().get()));
        System.out.println(
            result.getClass().getSimpleName() + ", acknowledge: " + result.acknowledge());
      }
    }
  }
}
