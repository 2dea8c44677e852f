import io.github.babelqueue.guard.Delivery;
import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.Result;
import io.github.babelqueue.guard.StoreUnavailableException;
import io.github.babelqueue.guard.store.RedisStore;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.Map;

/** A copy that arrives while the first is being handled, a failure, and a deliberate replay. */
class OnRedis {
  private static Guard guard;

  public static void main(String[] arguments) {
    try (var store =
            RedisStore.builder(URI.create(arguments[0]))
                .consumer("mailer")
                .retention(Duration.ofDays(30))
                .build();
        Guard claiming = Guard.claiming(store)) {
      guard = claiming;
      Delivery mail = Delivery.of("{\"meta\":{\"id\":\"mail-5\"}}");

      deliver(mail, true);
      deliver(mail, false);
      deliver(mail, false);

      guard.forget("mail-5");
      deliver(mail.withHeaders(Map.of("bq-replay-bypass", "1")), false);
    }
  }

  private static void deliver(Delivery delivery, boolean failing) {
    try {
      Result result =
          guard.process(
              delivery,
              context -> {
                System.out.println(context.isReplay() ? "  replaying" : "  sending");
                Result copy = guard.process(delivery, never -> System.out.println("  twice!"));
                System.out.println("  a copy meanwhile: " + name(copy));
                if (failing) {
                  throw new IOException("no connection to the mail server");
                }
              });
      System.out.println(name(result));
    } catch (IOException failed) {
      System.out.println("Failed, to be delivered again: " + failed.getMessage());
    } catch (StoreUnavailableException down) {
      System.out.println("Redis is down, to be delivered again");
    }
  }

  private static String name(Result result) {
    return result.getClass().getSimpleName()
        + (result.acknowledge() ? "" : ", deliver again later");
  }
}
