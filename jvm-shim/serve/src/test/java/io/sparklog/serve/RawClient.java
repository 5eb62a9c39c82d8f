package io.sparklog.serve;

import io.sparklog.serve.members.Address;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/** A connection on which a test sends any message in any version, and reads the answers with the parser of Kafka's clients. */
final class RawClient implements AutoCloseable {
  private static final int ANSWER_MS = 120_000;

  private final Socket socket;
  private final DataInputStream in;
  private final DataOutputStream out;
  private int correlation;

  RawClient(Address address) throws IOException {
    socket = new Socket();
    socket.setReceiveBufferSize(1 << 14); // So that a server soon waits for a client that takes nothing.
    socket.connect(new InetSocketAddress(address.host(), address.port()));
    socket.setSoTimeout(ANSWER_MS);
    in = new DataInputStream(socket.getInputStream());
    out = new DataOutputStream(socket.getOutputStream());
  }

  /** Sends a request. @return its header, which {@link #receive} needs */
  RequestHeader send(ApiKeys api, short version, ApiMessage message) throws IOException {
    RequestHeader header = new RequestHeader(api, version, "raw", correlation++);
    send(frame(header, message));
    return header;
  }

  /** The bytes of a request, without their length. */
  static byte[] frame(RequestHeader header, ApiMessage message) {
    RequestHeaderData data = header.data();
    ByteBuffer frame = RequestUtils.serialize(data, header.headerVersion(), message, header.apiVersion());
    byte[] bytes = new byte[frame.remaining()];
    frame.get(bytes);
    return bytes;
  }

  /** Sends any bytes as a frame. */
  void send(byte[] frame) throws IOException {
    out.writeInt(frame.length);
    out.write(frame);
    out.flush();
  }

  /**
   * Sends a frame again and again, and takes no answer, until the server has not read for half a second.
   *
   * @throws IOException if the server takes more than any buffer of a socket
   */
  void sendUntilFull(byte[] frame) throws IOException, InterruptedException {
    ByteBuffer many = ByteBuffer.allocate(1000 * (Integer.BYTES + frame.length));
    while (many.hasRemaining()) {
      many.putInt(frame.length).put(frame);
    }
    AtomicInteger sent = new AtomicInteger();
    Thread sender = new Thread(() -> {
      try {
        while (true) {
          sendBytes(many.array());
          sent.incrementAndGet();
        }
      } catch (IOException closed) {
        // The test is over.
      }
    });
    sender.setDaemon(true);
    sender.start();
    for (int before = -1; before != sent.get();) {
      before = sent.get();
      sender.join(500);
      if ((long) sent.get() * many.capacity() > 100_000_000) {
        throw new IOException("the server reads, and nobody takes its answers");
      }
    }
  }

  /** Sends any bytes. */
  void sendBytes(byte[] bytes) throws IOException {
    out.write(bytes);
    out.flush();
  }

  /** The next answer; checks that it answers {@code header}, and that Kafka's parser reads all its bytes. */
  AbstractResponse receive(RequestHeader header) throws IOException {
    ByteBuffer frame = ByteBuffer.wrap(in.readNBytes(in.readInt()));
    AbstractResponse response = AbstractResponse.parseResponse(frame, header);
    if (frame.hasRemaining()) {
      throw new IOException(frame.remaining() + " bytes of an answer to " + header + " are left");
    }
    return response;
  }

  /** Sends a request and takes its answer. */
  @SuppressWarnings("unchecked") // The caller knows the answer to its request.
  <R extends AbstractResponse> R ask(ApiKeys api, int version, ApiMessage message) throws IOException {
    return (R) receive(send(api, (short) version, message));
  }

  /** Whether the server has ended the connection. Skips the bytes before the end. */
  boolean isEnded() throws IOException {
    try {
      in.skip(Long.MAX_VALUE);
      while (in.read() >= 0) {
        in.skip(Long.MAX_VALUE);
      }
      return true;
    } catch (java.net.SocketTimeoutException e) {
      return false;
    } catch (java.net.SocketException reset) {
      return true;
    }
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
