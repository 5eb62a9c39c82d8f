package io.sparklog.serve.topics;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Answers all requests about ACLs as a broker without an authorizer does. Tools such as MirrorMaker know this answer. */
public final class AclsHandler implements Handler<AbstractRequest> {
  @Override
  public CompletableFuture<AbstractResponse> answer(ClientRequest asked, AbstractRequest request) {
    return CompletableFuture.failedFuture(Errors.SECURITY_DISABLED.exception("This server has no ACLs. Rights belong to listeners."));
  }
}
