package io.sparklog.serve.protocol;

import io.sparklog.serve.security.Sasl;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;
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

/** The requests of one connection before its client has proved its name: versions, a handshake, then steps, and no other. */
final class SaslRequests {
  /** A wrong password has its answer after this time, so that guessing takes long. */
  private static final Executor LATER = CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS);

  private final Sasl sasl;
  private final List<String> mechanisms;
  private final Workers work;
  private boolean isBusy;
  private boolean hasFailed;

  SaslRequests(Sasl sasl, List<String> mechanisms, Workers work) {
    this.sasl = sasl;
    this.mechanisms = mechanisms;
    this.work = work;
  }

  /** Whether the request is for this class. @throws RuntimeException if it is out of order: the connection ends */
  synchronized boolean takes(AbstractRequest request) {
    boolean isSasl = request instanceof SaslHandshakeRequest || request instanceof SaslAuthenticateRequest;
    if (isBusy || hasFailed || isSasl == sasl.isDone() && !(request instanceof ApiVersionsRequest)) {
      throw Errors.ILLEGAL_SASL_STATE.exception();
    }
    return isSasl;
  }

  synchronized CompletableFuture<? extends AbstractResponse> answer(AbstractRequest request) {
    if (request instanceof SaslHandshakeRequest handshake) {
      return CompletableFuture.completedFuture(new SaslHandshakeResponse(begin(handshake)));
    }
    if (!sasl.hasBegun()) {
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

  private SaslHandshakeResponseData begin(SaslHandshakeRequest request) {
    SaslHandshakeResponseData data = new SaslHandshakeResponseData().setMechanisms(mechanisms);
    try {
      sasl.begin(request.data().mechanism());
    } catch (UnsupportedSaslMechanismException e) {
      data.setErrorCode(Errors.UNSUPPORTED_SASL_MECHANISM.code());
    }
    return data;
  }

  private SaslAuthenticateResponseData step(byte[] bytes) {
    SaslAuthenticateResponseData data = new SaslAuthenticateResponseData();
    try {
      data.setAuthBytes(sasl.step(bytes));
      ended(false);
    } catch (SaslAuthenticationException e) {
      data.setErrorCode(Errors.SASL_AUTHENTICATION_FAILED.code()).setErrorMessage(e.getMessage());
      ended(true);
    }
    return data;
  }

  private synchronized void ended(boolean failed) {
    isBusy = false;
    hasFailed = failed;
  }
}
