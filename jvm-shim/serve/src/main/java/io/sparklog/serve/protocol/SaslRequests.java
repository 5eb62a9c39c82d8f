package io.sparklog.serve.protocol;

import io.sparklog.serve.security.Credentials;
import java.security.GeneralSecurityException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.message.SaslAuthenticateResponseData;
import org.apache.kafka.common.message.SaslHandshakeResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.SaslAuthenticateRequest;
import org.apache.kafka.common.requests.SaslAuthenticateResponse;
import org.apache.kafka.common.requests.SaslHandshakeRequest;
import org.apache.kafka.common.requests.SaslHandshakeResponse;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;

/**
 * The requests of one connection before its client has proved its name: versions, a handshake, then steps, and no other. Kafka's own
 * servers of SASL answer the steps.
 */
final class SaslRequests {
  /** A wrong password has its answer after this time, so that guessing takes long. */
  private static final Executor LATER = CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS);

  private final List<String> mechanisms;
  private final Credentials credentials;
  private final Workers work;
  private boolean isBusy;
  private boolean hasFailed;

  /** Null until a mechanism is chosen. */
  private SaslServer server;
  private ScramMechanism scram;

  private volatile KafkaPrincipal principal;

  /** @param mechanisms that the listener takes */
  SaslRequests(List<String> mechanisms, Credentials credentials, Workers work) {
    this.mechanisms = mechanisms;
    this.credentials = credentials;
    this.work = work;
  }

  /** The name that the client has proved; null before. */
  KafkaPrincipal principal() {
    return principal;
  }

  /** Whether the request is for this class. @throws RuntimeException if it is out of order: the connection ends */
  synchronized boolean takes(AbstractRequest request) {
    if (request instanceof SaslHandshakeRequest && request.version() == 0) { // The bytes after it are not requests.
      throw Errors.UNSUPPORTED_VERSION.exception();
    }
    boolean isSasl = request instanceof SaslHandshakeRequest || request instanceof SaslAuthenticateRequest;
    if (isBusy || hasFailed || isSasl == (principal != null) && !(request instanceof ApiVersionsRequest)) {
      throw Errors.ILLEGAL_SASL_STATE.exception();
    }
    return isSasl;
  }

  synchronized CompletableFuture<? extends AbstractResponse> answer(AbstractRequest request) {
    if (request instanceof SaslHandshakeRequest handshake) {
      return CompletableFuture.completedFuture(new SaslHandshakeResponse(begin(handshake.data().mechanism())));
    }
    if (server == null) {
      throw Errors.ILLEGAL_SASL_STATE.exception();
    }
    isBusy = true;
    byte[] bytes = ((SaslAuthenticateRequest) request).data().authBytes();
    return work.run(() -> step(bytes))
        .thenCompose(data -> data.errorCode() == Errors.NONE.code()
            ? CompletableFuture.completedFuture(new SaslAuthenticateResponse(data))
            : CompletableFuture.supplyAsync(() -> new SaslAuthenticateResponse(data), LATER));
  }

  /** Whether the client has given a wrong name or password: the connection ends with the answer. */
  synchronized boolean hasFailed() {
    return hasFailed;
  }

  /** The client chooses a mechanism. */
  private SaslHandshakeResponseData begin(String mechanism) {
    SaslHandshakeResponseData data = new SaslHandshakeResponseData().setMechanisms(mechanisms);
    if (!mechanisms.contains(mechanism)) {
      return data.setErrorCode(Errors.UNSUPPORTED_SASL_MECHANISM.code());
    }
    scram = ScramMechanism.forMechanismName(mechanism);
    try {
      server = scram == null ? new PlainSaslServer(this::answer) : new ScramSaslServer(scram, Map.of(), this::answer);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
    return data;
  }

  /** Answers a step. The text tells neither that the name nor that the password is wrong. Takes some milliseconds of computing. */
  private SaslAuthenticateResponseData step(byte[] bytes) {
    SaslAuthenticateResponseData data = new SaslAuthenticateResponseData();
    boolean failed = false;
    try {
      byte[] answer = server.evaluateResponse(bytes);
      if (server.isComplete()) {
        principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, server.getAuthorizationID());
      }
      data.setAuthBytes(answer == null ? new byte[0] : answer);
    } catch (SaslException | SaslAuthenticationException e) {
      failed = true;
      data.setErrorCode(Errors.SASL_AUTHENTICATION_FAILED.code()).setErrorMessage("The name or the password is wrong.");
    }
    synchronized (this) {
      isBusy = false;
      hasFailed = failed;
    }
    return data;
  }

  private void answer(Callback[] callbacks) {
    String user = null;
    for (Callback callback : callbacks) {
      if (callback instanceof NameCallback name) {
        user = name.getDefaultName();
      } else if (callback instanceof PlainAuthenticateCallback plain) {
        plain.authenticated(credentials.isRight(user, plain.password()));
      } else if (callback instanceof ScramCredentialCallback verifier) {
        credentials.verifier(scram, user).ifPresent(verifier::scramCredential);
      }
    }
  }
}
