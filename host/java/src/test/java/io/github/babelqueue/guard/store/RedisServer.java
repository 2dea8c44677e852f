package io.github.babelqueue.guard.store;

import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** A real server, as a child process on a free port. */
public final class RedisServer implements AutoCloseable {
  private static final AtomicBoolean SAID = new AtomicBoolean();
  private static RedisServer shared;

  private final int port;
  private final Path folder;
  private final List<String> options;
  private Process process;

  private RedisServer(List<String> options) {
    this.options = options;
    try (var free = new ServerSocket(0)) {
      port = free.getLocalPort();
      folder = Files.createTempDirectory("babelqueue-guard-redis");
    } catch (IOException failure) {
      throw new IllegalStateException(failure);
    }
  }

  /** Skips the test where there is no server to start; fails it in CI. */
  private static void require() {
    boolean there =
        Stream.of(System.getenv("PATH").split(File.pathSeparator))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, "redis-server")));
    if (!there && "true".equals(System.getenv("CI"))) {
      fail("redis-server is not installed");
    }
    if (!there && SAID.compareAndSet(false, true)) {
      System.out.println("Skipped, since redis-server is not installed");
    }
    assumeTrue(there, "redis-server is not installed");
  }

  /** One for all tests that leave it as they found it, but for keys of their own. */
  public static synchronized RedisServer shared() {
    if (shared == null) {
      shared = start();
      Runtime.getRuntime().addShutdownHook(new Thread(shared::close));
    }
    return shared;
  }

  public static RedisServer start(String... options) {
    require();
    var server = new RedisServer(List.of(options));
    server.run();
    return server;
  }

  private void run() {
    List<String> command = new ArrayList<>(List.of("redis-server", "--port", "" + port));
    command.addAll(List.of("--bind", "127.0.0.1", "--save", "", "--dir", folder.toString()));
    command.addAll(options);
    try {
      process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(folder.resolve("log").toFile())
              .start();
    } catch (IOException failure) {
      throw new IllegalStateException(failure);
    }
    for (int tries = 0; ; tries++) {
      try (Jedis client = client()) {
        client.ping();
        return;
      } catch (JedisDataException answered) {
        return; // It wants a password, which is an answer too.
      } catch (JedisConnectionException notYet) {
        if (tries == 500) {
          throw notYet;
        }
        pause(10);
      }
    }
  }

  public URI uri() {
    return URI.create("redis://127.0.0.1:" + port + "/0");
  }

  public int port() {
    return port;
  }

  /** Another client than the store's, to look at what it wrote. */
  public Jedis client() {
    return new Jedis("127.0.0.1", port);
  }

  public void kill() {
    process.destroyForcibly();
    try {
      process.waitFor(10, TimeUnit.SECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  public void restart() {
    kill();
    run();
  }

  /** Sends a signal, such as STOP or CONT. */
  public void signal(String name) {
    try {
      new ProcessBuilder("kill", "-" + name, "" + process.pid()).inheritIO().start().waitFor();
    } catch (IOException | InterruptedException failure) {
      throw new IllegalStateException(failure);
    }
  }

  public static void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  @Override
  public void close() {
    kill();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
      Files.delete(folder);
    } catch (IOException leftBehind) {
      System.err.println("not removed: " + leftBehind);
    }
  }
}
