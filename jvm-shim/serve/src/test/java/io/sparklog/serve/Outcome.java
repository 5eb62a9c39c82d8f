package io.sparklog.serve;

import java.util.function.BiConsumer;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * A request with what its answer must say.
 *
 * @param first the first version of the API in which the request can be said
 * @param last the last version
 * @param check takes the answer and the version
 */
record Outcome(String name, ApiKeys api, int first, int last, ApiMessage request, BiConsumer<AbstractResponse, Integer> check) {
  /** In all versions of the API that are served. */
  @SuppressWarnings("unchecked") // The answer is of the API.
  static <R extends AbstractResponse> Outcome of(String name, ApiKeys api, ApiMessage request, BiConsumer<R, Integer> check) {
    return new Outcome(name, api, api.oldestVersion(), api.latestVersion(false), request, (BiConsumer<AbstractResponse, Integer>) check);
  }

  Outcome from(int version) {
    return new Outcome(name, api, version, last, request, check);
  }

  Outcome to(int version) {
    return new Outcome(name, api, first, version, request, check);
  }

  @Override
  public String toString() {
    return api.name + ": " + name;
  }
}
