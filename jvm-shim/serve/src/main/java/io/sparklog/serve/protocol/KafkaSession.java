package io.sparklog.serve.protocol;

import io.sparklog.serve.net.Peer;
import io.sparklog.serve.net.Reply;
import io.sparklog.serve.net.Service;
import io.sparklog.serve.net.Session;
import io.sparklog.serve.security.Credentials;
import io.sparklog.serve.security.Listener;
import io.sparklog.spec.Warnings;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/** Parses the requests of one connection, and hands them to their handlers. */
public final class KafkaSession implements Session {
  /** Before the client has proved its name. The requests of a proof have less than a thousand bytes. */
  private static final int UNPROVED_BYTES_MAX = 4 << 10;

  private final Listener listener;
  private final Handlers handlers;
  private final Peer peer;
  private final SaslRequests proof;
  private final RequestMetrics traffic;
  private final RequestMetrics.ClientConnection client;
  private boolean takesNext;

  /**
   * Kafka's protocol for the clients of one listener.
   *
   * @param handlers of all APIs that are served
   * @param credentials of users; null if the listener does not ask for a name
   * @param traffic of all listeners
   */
  public static Service service(Listener listener, Handlers handlers, Credentials credentials, Workers work, RequestMetrics traffic) {
    return peer -> new KafkaSession(listener, handlers, peer,
        listener.asksForName() ? new SaslRequests(listener.mechanisms(), credentials, work) : null, traffic);
  }

  /** @param proof by which the client proves its name; null if it need not */
  private KafkaSession(Listener listener, Handlers handlers, Peer peer, SaslRequests proof, RequestMetrics traffic) {
    this.proof = proof;
    this.listener = listener;
    this.handlers = handlers;
    this.peer = peer;
    this.traffic = traffic;
    this.client = traffic.begin(listener.name(), peer.address().getHostAddress());
  }

  @Override
  public void ended() {
    traffic.end(client);
  }

  @Override
  public CompletableFuture<Reply> answer(ByteBuffer frame) {
    long begun = System.nanoTime();
    int bytes = frame.remaining();
    RequestHeader header = RequestHeader.parse(frame);
    traffic.read(header.apiKey(), bytes);
    takesNext = header.apiKey() == ApiKeys.PRODUCE; // So the batches of several requests share a commit.
    if (header.apiKey() == ApiKeys.API_VERSIONS && !header.isApiVersionSupported()) {
      return CompletableFuture.completedFuture(versionTooHigh(header));
    }
    if (!header.apiKey().isVersionEnabled(header.apiVersion(), false)) {
      throw Errors.UNSUPPORTED_VERSION.exception("Version " + header.apiVersion() + " of " + header.apiKey().name + " is not served.");
    }
    AbstractRequest request = AbstractRequest.parseRequest(header.apiKey(), header.apiVersion(), new ByteBufferAccessor(frame)).request;
    client.name(header.clientId());
    if (request instanceof ApiVersionsRequest versions) {
      client.software(versions.data().clientSoftwareName() + " " + versions.data().clientSoftwareVersion());
    }
    boolean isProof = proof != null && proof.takes(request);
    CompletableFuture<? extends AbstractResponse> answer;
    try {
      answer = isProof ? proof.answer(request) : handlers.answer(asked(header), request);
    } catch (RuntimeException e) {
      answer = CompletableFuture.failedFuture(e);
    }
    CompletableFuture<Reply> reply = reply(header, request, answer);
    reply.whenComplete((made, failure) -> traffic.took(header.apiKey(), System.nanoTime() - begun));
    return reply;
  }

  @Override
  public boolean takesNext() {
    return takesNext;
  }

  @Override
  public boolean isTrusted() {
    return proof == null || proof.principal() != null;
  }

  @Override
  public int frameBytesMax() {
    return isTrusted() ? Integer.MAX_VALUE : UNPROVED_BYTES_MAX;
  }

  /** A client that is newer than this server learns by version 0 which versions there are. */
  private Reply versionTooHigh(RequestHeader header) {
    ApiVersionsResponseData versions = handlers.versions(listener).setErrorCode(Errors.UNSUPPORTED_VERSION.code());
    RequestHeader lowest = new RequestHeader(ApiKeys.API_VERSIONS, (short) 0, header.clientId(), header.correlationId());
    return new Reply(Wire.frame(peer.allocator(), lowest, versions), false);
  }

  private ClientRequest asked(RequestHeader header) {
    RequestContext context = new RequestContext(header, Long.toString(peer.connection()), peer.address(), principal(),
        new ListenerName(listener.name()), listener.protocol(), ClientInformation.EMPTY, false);
    return new ClientRequest(context, listener);
  }

  private KafkaPrincipal principal() {
    return proof == null || proof.principal() == null ? KafkaPrincipal.ANONYMOUS : proof.principal();
  }

  private CompletableFuture<Reply> reply(RequestHeader header, AbstractRequest request,
      CompletableFuture<? extends AbstractResponse> answer) {
    CompletableFuture<Reply> reply = new CompletableFuture<>();
    reply.whenComplete((done, failure) -> {
      if (reply.isCancelled()) {
        answer.cancel(false);
      }
    });
    answer.whenComplete((answered, failure) -> {
      if (reply.isCancelled() && failure != null) {
        return; // The connection has ended, and with it the work.
      }
      Reply made;
      try {
        made = failure == null ? frame(header, answered) : failed(header, request, failure);
      } catch (RuntimeException | Error e) { // A message that its version cannot say.
        made = failedOrClosed(header, request, e);
      }
      if (!reply.complete(made)) {
        made.release();
      }
    });
    return reply;
  }

  private Reply frame(RequestHeader header, AbstractResponse answer) {
    if (answer == null) {
      return Reply.NONE;
    }
    Reply reply = new Reply(Wire.frame(peer.allocator(), header, answer.data()), proof != null && proof.hasFailed());
    traffic.wrote(header.apiKey(), Wire.length(reply.parts()), answer);
    return reply;
  }

  /** Without any reply, the answers behind this one would wait for ever. */
  private Reply failedOrClosed(RequestHeader header, AbstractRequest request, Throwable failure) {
    try {
      return failed(header, request, failure);
    } catch (RuntimeException | Error e) {
      Warnings.warn(KafkaSession.class, "no answer to {} can be written, and its connection ends", header.apiKey(), e);
      return Reply.CLOSE;
    }
  }

  private Reply failed(RequestHeader header, AbstractRequest request, Throwable failure) {
    AbstractResponse response = request.getErrorResponse(0, KafkaErrors.exception(failure));
    return response == null ? Reply.CLOSE : frame(header, response);
  }
}
