package io.github.babelqueue.guard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The table of cases that all languages share, and envelopes for tests of our own. */
public final class SharedCases {
  /** Where the table lies; the tests run in the package's folder. */
  public static final Path FOLDER = Path.of("../../tests/cases");

  private static final ObjectMapper JSON = new ObjectMapper();

  private SharedCases() {}

  public static JsonNode read(String file) {
    try {
      return JSON.readTree(bytes(file));
    } catch (IOException broken) {
      throw new UncheckedIOException(broken);
    }
  }

  public static byte[] bytes(String file) {
    try {
      return Files.readAllBytes(FOLDER.resolve(file));
    } catch (IOException missing) {
      throw new UncheckedIOException(missing);
    }
  }

  /** An envelope with this id. */
  public static byte[] envelope(String id) {
    try {
      String quoted = JSON.writeValueAsString(id);
      return ("{\"job\":\"urn:babel:parcels:weighed\",\"trace_id\":\"t\",\"data\":{\"grams\":250},"
              + ("\"meta\":{\"id\":" + quoted + ",\"queue\":\"parcels\",\"lang\":\"java\","))
          .concat("\"schema_version\":1,\"created_at\":1765000000000},\"attempts\":0}")
          .getBytes(StandardCharsets.UTF_8);
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
  }
}
