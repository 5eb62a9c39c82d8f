package io.sparklog.serve.net;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Connections over a service that a test answers by hand. */
final class SocketServerTest {
  /** A request that the service has, and its answer. */
  private record Asked(byte[] frame, CompletableFuture<Reply> reply, ByteBufAllocator allocator) {
    void answer(String text) {
      byte[] bytes = text.getBytes();
      ByteBuf buffer = allocator.buffer(Integer.BYTES + bytes.length).writeInt(bytes.length).writeBytes(bytes);
      if (!reply.complete(new Reply(List.of(buffer), false))) {
        buffer.release(); // It was answered before.
      }
    }

    Asked answerWith(String text) {
      answer(text);
      return this;
    }
  }

  private final BlockingQueue<Asked> asked = new LinkedBlockingQueue<>();
  private boolean isTrusted = true;
  private boolean takesNext = true;
  private long answerBytesMax = 1 << 20;
  private SocketServer server;
  private InetSocketAddress address;
  private final List<Client> clients = new ArrayList<>();

  private final class Client {
    private final Socket socket = new Socket(address.getAddress(), address.getPort());
    private final DataInputStream in;
    private final DataOutputStream out;

    Client() throws IOException {
      socket.setSoTimeout(120_000);
      in = new DataInputStream(socket.getInputStream());
      out = new DataOutputStream(socket.getOutputStream());
      clients.add(this);
    }

    Client send(String text) throws IOException {
      out.writeInt(text.length());
      out.writeBytes(text);
      return this;
    }

    String receive() throws IOException {
      return new String(in.readNBytes(in.readInt()));
    }

    void assertEnded() {
      IOException end = assertThrows(IOException.class, () -> {
        while (true) {
          receive();
        }
      });
      assertTrue(end instanceof EOFException || end instanceof SocketException, end.toString());
    }
  }

  private void serve(int frameBytesMax, long requestBytesMax, int connectionsMax, long idleMs) throws IOException {
    server = new SocketServer(new Limits(2, frameBytesMax, requestBytesMax, answerBytesMax, connectionsMax, idleMs));
    SocketServer.Listening listening = server.listen(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), null);
    address = listening.address();
    listening.serve(peer -> new Session() {
      @Override
      public CompletableFuture<Reply> answer(ByteBuffer frame) {
        byte[] bytes = new byte[frame.remaining()];
        frame.get(bytes);
        if (bytes.length > 0 && bytes[0] == '!') {
          throw new IllegalArgumentException("hostile");
        }
        CompletableFuture<Reply> reply = new CompletableFuture<>();
        asked.add(new Asked(bytes, reply, peer.allocator()));
        return reply;
      }

      @Override
      public boolean takesNext() {
        return takesNext;
      }

      @Override
      public void ended() {}

      @Override
      public boolean isTrusted() {
        return isTrusted;
      }

      @Override
      public int frameBytesMax() {
        return Integer.MAX_VALUE;
      }
    });
  }

  private void serve() throws IOException {
    serve(1000, 10_000, 100, -1);
  }

  private Asked next() throws InterruptedException {
    Asked next = asked.poll(120, TimeUnit.SECONDS);
    assertTrue(next != null, "no request came");
    return next;
  }

  @AfterEach
  void end() throws IOException {
    for (Client client : clients) {
      client.socket.close();
    }
    server.drain(1000);
  }

  @Test
  void answersComeInTheOrderOfRequests() throws Exception {
    serve();
    Client client = new Client().send("a").send("b").send("c");
    Asked a = next();
    Asked b = next();
    Asked c = next();
    c.answer("c");
    b.answer("b");
    a.answer("a");
    assertEquals(List.of("a", "b", "c"), List.of(client.receive(), client.receive(), client.receive()));
  }

  /** Clients that have not proved their names can keep the memory of such clients alone. */
  @Test
  void aRequestOfAStrangerTakesNoMemoryOfOthers() throws Exception {
    isTrusted = false;
    serve();
    Client stranger = new Client().send("a");
    Asked a = next();
    assertEquals(0, server.requestBytes());
    isTrusted = true;
    new Client().send("bc");
    Asked b = next();
    assertEquals(2, server.requestBytes());
    a.answer("a");
    assertEquals("a", stranger.receive());
    assertEquals(2, server.requestBytes());
    b.answer("b");
  }

  @Test
  void aRequestWithoutAnAnswerIsPassedOver() throws Exception {
    serve();
    Client client = new Client().send("a").send("b");
    next().reply.complete(Reply.NONE);
    next().answer("b");
    assertEquals("b", client.receive());
  }

  @Test
  void aLongFrameEndsItsConnectionAlone() throws Exception {
    serve();
    Client other = new Client().send("a");
    for (int length : new int[] {1001, Integer.MAX_VALUE, -1, Integer.MIN_VALUE}) {
      Client client = new Client();
      client.out.writeInt(length);
      client.assertEnded();
    }
    next().answer("a");
    assertEquals("a", other.receive());
  }

  @Test
  void aRequestThatFailsEndsItsConnectionAlone() throws Exception {
    serve();
    Client other = new Client().send("a");
    new Client().send("!").assertEnded();
    next().answer("a");
    assertEquals("a", other.receive());
  }

  @Test
  void aRequestIsCancelledWhenItsConnectionEnds() throws Exception {
    serve();
    Client client = new Client().send("a");
    Asked a = next();
    client.socket.close();
    assertThrows(java.util.concurrent.CancellationException.class, () -> a.reply.get(120, TimeUnit.SECONDS));
  }

  @Test
  void aFrameWaitsUntilTheBudgetHasRoom() throws Exception {
    serve(1000, 1000, 100, -1);
    Client first = new Client().send("a".repeat(900));
    Asked a = next();
    Client second = new Client().send("b".repeat(200));
    assertEquals(null, asked.poll(300, TimeUnit.MILLISECONDS));
    a.answer("a");
    next().answer("b");
    assertEquals("a", first.receive());
    assertEquals("b", second.receive());
  }

  /** Each claims as much as the budget has, and sends a part of a step. */
  @Test
  void aFrameThatIsOnlyClaimedKeepsNoMemoryFromOthers() throws Exception {
    int large = 1 << 20;
    serve(large, large + (large >> 2), 100, -1);
    List<Client> claiming = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      Client client = new Client();
      claiming.add(client);
      client.out.writeInt(large);
      if (i < 2) {
        client.out.write(new byte[1000]);
      }
    }
    while (server.requestBytes() < 2 * Budget.SHORT_BYTES) {
      Thread.sleep(1);
    }
    for (int length : new int[] {0, 1, 1000, Budget.SHORT_BYTES, Budget.SHORT_BYTES + 1, large / 2}) {
      Client client = new Client().send("b".repeat(length));
      assertEquals(length, next().answerWith("b").frame.length);
      assertEquals("b", client.receive());
    }
    assertEquals(2 * Budget.SHORT_BYTES, server.requestBytes());
    for (int i = 0; i < 50; i++) { // They go on, one after another.
      claiming.get(i).out.write(new byte[i < 2 ? large - 1000 : large]);
      assertEquals(large, next().answerWith("a").frame.length);
    }
  }

  @Test
  void theBudgetIsWholeAfterConnectionsThatEndAnywhere() throws Exception {
    serve(1000, 1000, 100, -1);
    for (int i = 0; i < 50; i++) {
      Client client = new Client();
      client.out.writeInt(900);
      client.out.write(new byte[i]); // A frame that is not complete, or waits for the others.
      client.socket.close();
    }
    Client last = new Client().send("c".repeat(1000));
    next().answer("c");
    assertEquals("c", last.receive());
  }

  @Test
  void aConnectionWithManyUnansweredRequestsIsNotRead() throws Exception {
    serve(1000, 1 << 20, 100, -1);
    Client client = new Client();
    for (int i = 0; i < 400; i++) {
      client.send("x".repeat(500)); // More than one read of a socket takes.
    }
    List<Asked> taken = new ArrayList<>();
    while (taken.size() < 32) {
      taken.add(next());
    }
    for (Asked next; (next = asked.poll(1, TimeUnit.SECONDS)) != null;) {
      taken.add(next);
    }
    assertTrue(taken.size() < 400, taken.size() + " requests were taken");
    while (taken.size() < 400) {
      taken.forEach(each -> each.answer("y"));
      taken.add(next());
    }
    taken.forEach(each -> each.answer("y"));
    for (int i = 0; i < 400; i++) {
      assertEquals("y", client.receive());
    }
  }

  /** One read of a socket has many short requests. */
  @Test
  void noMoreRequestsAreTakenThanMayWait() throws Exception {
    serve();
    Client client = new Client();
    ByteBuffer many = ByteBuffer.allocate(5000);
    while (many.hasRemaining()) {
      many.putInt(1).put((byte) 'x');
    }
    client.out.write(many.array());
    Client other = new Client();
    ArrayDeque<Asked> taken = new ArrayDeque<>();
    while (taken.size() < 32) {
      taken.add(next());
    }
    other.send("other");
    assertEquals("other", new String(next().frame), "the next request is of the other client");
    for (int i = 0; i < 1000; i++) {
      (taken.isEmpty() ? next() : taken.remove()).answer("y");
      assertEquals("y", client.receive());
    }
  }

  @Test
  void aRequestMayHaveToWaitForTheAnswerBeforeIt() throws Exception {
    takesNext = false;
    serve();
    Client client = new Client().send("a").send("b").send("c");
    Asked a = next();
    new Client().send("other");
    assertEquals("other", new String(next().frame), "the next request is of the other client");
    a.answer("a");
    assertEquals("a", client.receive());
    next().answer("b");
    assertEquals("b", client.receive());
    Asked c = next();
    client.socket.close();
    assertThrows(java.util.concurrent.CancellationException.class, () -> c.reply.get(120, TimeUnit.SECONDS));
  }

  @Test
  void aFrameThatWaitsForTheBudgetStaysInItsSocket() throws Exception {
    int large = 60_000_000;
    serve(large, large, 100, -1);
    Client first = new Client();
    first.out.writeInt(large);
    first.out.write(new byte[large - 1]);
    while (server.requestBytes() < large) {
      Thread.sleep(1);
    }
    Client second = new Client();
    AtomicInteger sent = new AtomicInteger();
    CompletableFuture<Void> sending = CompletableFuture.runAsync(() -> {
      try {
        second.out.writeInt(large);
        for (; sent.get() < large; sent.addAndGet(100_000)) {
          second.out.write(new byte[100_000]);
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    });
    for (int before = -1; before != sent.get();) {
      before = sent.get();
      Thread.sleep(500);
    }
    assertTrue(sent.get() < large / 2, sent + " bytes were read, and the budget has no room for them");
    first.socket.close();
    sending.get(120, TimeUnit.SECONDS);
    next().answer("b");
    assertEquals("b", second.receive());
  }

  @Test
  void whileMemoryIsShortAClientEndsThatTakesNoAnswers() throws Exception {
    answerBytesMax = 10 << 20;
    serve();
    Client slow = new Client();
    Client other = new Client().send("b");
    Asked b = next();
    List<Asked> taken = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      slow.send("a");
      taken.add(next());
    }
    taken.forEach(each -> each.answer("a".repeat(4 << 20))); // More than sockets hold.
    slow.assertEnded();
    String longest = "b".repeat(11 << 20);
    b.answer(longest);
    assertEquals(longest, other.receive(), "a single answer may have any length");
    while (server.answerBytes() > 0) {
      Thread.sleep(1);
    }
  }

  @Test
  void whileMemoryIsShortClientsEndThatTakeNothingOfTheirOnlyAnswer() throws Exception {
    answerBytesMax = 10 << 20;
    takesNext = false;
    serve();
    List<Client> slow = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      slow.add(new Client().send("a"));
      next().answer("a".repeat(8 << 20)); // More than sockets hold.
    }
    while (server.answerBytes() > answerBytesMax) {
      Thread.sleep(1);
    }
    slow.get(0).assertEnded();
  }

  @Test
  void aConnectionTooManyIsEndedAndTheOthersGoOn() throws Exception {
    serve(1000, 1000, 2, -1);
    Client first = new Client().send("a");
    Asked a = next();
    new Client().send("b");
    next().answer("b");
    new Client().assertEnded();
    a.answer("a");
    assertEquals("a", first.receive());
  }

  @Test
  void anIdleConnectionEndsAndOneThatWaitsForItsAnswerDoesNot() throws Exception {
    serve(1000, 1000, 100, 3000); // On a busy machine, a client may send its request long after it has connected.
    Client waiting = new Client().send("a");
    Asked a = next();
    new Client().assertEnded();
    a.answer("a");
    assertEquals("a", waiting.receive());
  }

  @Test
  void aServerThatEndsAnswersItsRequests() throws Exception {
    serve();
    Client client = new Client().send("a");
    Client idle = new Client();
    Asked a = next();
    CompletableFuture<Void> drained = CompletableFuture.runAsync(() -> server.drain(120_000));
    idle.assertEnded();
    assertFalse(drained.isDone());
    a.answer("a");
    assertEquals("a", client.receive());
    client.assertEnded();
    drained.get(120, TimeUnit.SECONDS);
    assertThrows(IOException.class, Client::new);
  }
}
