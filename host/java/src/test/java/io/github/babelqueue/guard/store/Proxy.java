package io.github.babelqueue.guard.store;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/** Stands between a client and its server, and can lose a reply. */
final class Proxy implements AutoCloseable {
  private final ServerSocket listener;
  private final int target;
  private volatile String losesReplyTo;
  private volatile int lost;

  Proxy(int target) {
    this.target = target;
    try {
      listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    start(this::accept);
  }

  URI uri() {
    return URI.create("redis://127.0.0.1:" + listener.getLocalPort());
  }

  /** The connection breaks when the server has carried out a request with this text in it. */
  void loseReplyTo(String text, int times) {
    lost = times;
    losesReplyTo = text;
  }

  private void accept() {
    while (!listener.isClosed()) {
      try {
        Socket client = listener.accept();
        Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
        start(() -> serve(client, server));
      } catch (IOException closed) {
        return;
      }
    }
  }

  /** One request at a time, which is how the store's client uses a connection. */
  private void serve(Socket client, Socket server) {
    byte[] buffer = new byte[65_536];
    try (client;
        server) {
      InputStream requests = client.getInputStream();
      OutputStream replies = client.getOutputStream();
      for (int n = requests.read(buffer); n > 0; n = requests.read(buffer)) {
        String request = new String(buffer, 0, n, StandardCharsets.ISO_8859_1);
        server.getOutputStream().write(buffer, 0, n);
        n = server.getInputStream().read(buffer);
        if (losesReplyTo != null && request.contains(losesReplyTo) && lost-- > 0) {
          return;
        }
        replies.write(buffer, 0, n);
      }
    } catch (IOException closed) {
      // One of both is gone, and so is the other.
    }
  }

  private static void start(Runnable action) {
    Thread thread = new Thread(action, "proxy");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    try {
      listener.close();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
