package io.github.babelqueue.guard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.store.RedisServer;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The artifact as its users get it. Runs when it has been built. */
class PackageTest {
  private static final Path JAR = Path.of(System.getProperty("guard.jar"));

  @TempDir Path empty;

  @Test
  void theArtifactHoldsWhatItNeedsForJava17() throws IOException {
    try (var jar = new JarFile(JAR.toFile())) {
      for (String name :
          new String[] {
            "babelqueue-guard/plain.core.wasm",
            "babelqueue-guard/claiming.core.wasm",
            "babelqueue-guard/renew.lua",
            "babelqueue-guard/release.lua",
            "io/github/babelqueue/guard/generated/PlainMachine.class",
            "io/github/babelqueue/guard/generated/ClaimingMachine.class"
          }) {
        assertTrue(jar.getJarEntry(name) != null, name);
      }
      for (JarEntry entry : jar.stream().toList()) {
        if (entry.getName().endsWith(".class")) {
          assertTrue(classVersion(jar, entry) <= 61, entry::getName);
        }
        assertTrue(!entry.getName().contains("Test"), entry::getName);
      }
    }
  }

  private static int classVersion(JarFile jar, JarEntry entry) throws IOException {
    try (InputStream in = jar.getInputStream(entry)) {
      var data = new DataInputStream(in);
      data.readInt();
      data.readUnsignedShort();
      return data.readUnsignedShort();
    }
  }

  @Test
  void theQuickstartNeedsTheRuntimeAlone() throws Exception {
    runExample("Quickstart", List.of("runtime-", "wasm-"));
  }

  @Test
  void theReadmeShowsTheQuickstart() throws IOException {
    String readme = Files.readString(Path.of("README.md"));
    assertTrue(readme.contains("```java\n" + Files.readString(source("Quickstart")) + "```"));
  }

  @Test
  void anExampleRunsOnRedis() throws Exception {
    runExample(
        "OnRedis",
        List.of("runtime-", "wasm-", "jedis-", "commons-pool2-", "slf4j-", "gson-", "json-"),
        RedisServer.shared().uri().toString());
  }

  private static Path source(String name) {
    return Path.of("examples", name + ".java").toAbsolutePath();
  }

  /** Compiles and runs an example in an empty folder, with nothing but the jars named. */
  private void runExample(String name, List<String> jars, String... arguments) throws Exception {
    List<Path> classpath = new ArrayList<>(List.of(empty));
    classpath.add(Files.copy(JAR, empty.resolve(JAR.getFileName())));
    for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
      Path file = Path.of(jar);
      if (jars.stream().anyMatch(file.getFileName().toString()::startsWith)) {
        classpath.add(Files.copy(file, empty.resolve(file.getFileName())));
      }
    }
    String path = String.join(File.pathSeparator, classpath.stream().map(Path::toString).toList());
    assertEquals(
        "",
        run(
            Stream.of("javac", "-Xlint:all", "--release", "17", "-d", ".", "-cp", path),
            source(name).toString()));
    assertEquals(
        Files.readString(Path.of("examples", name + ".out")),
        run(Stream.of("java", "-cp", path, name), arguments));
  }

  private String run(Stream<String> command, String... arguments) throws Exception {
    List<String> words = Stream.concat(command, Stream.of(arguments)).toList();
    Process process =
        new ProcessBuilder(words).directory(empty.toFile()).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes());
    assertEquals(0, process.waitFor(), output);
    return output;
  }
}
