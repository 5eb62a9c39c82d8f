package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Each API in each version and with each outcome, over a connection, by the parser of Kafka's clients. A new API lists its outcomes in a
 * class beside this one.
 */
final class EveryVersionTest {
  @TempDir
  static Path folder;

  static WrittenTopic topic;
  static RootServer server;

  @BeforeAll
  static void open() throws IOException {
    topic = new WrittenTopic(folder.resolve("root"), "t").segment(0, 3, 4).segment(2, 5).commit();
    server = new RootServer(ServeConfig.of(folder.resolve("root").toString(), "--listen", "127.0.0.1:0"));
  }

  @AfterAll
  static void close() {
    server.close();
  }

  /** All outcomes, by the parts of the server. */
  static List<Outcome> outcomes(Root root) {
    return Stream
        .of(ClusterOutcomes.all(root), FetchOutcomes.all(root), ProduceOutcomes.all(root), TopicOutcomes.all(), GroupOutcomes.all(root))
        .flatMap(List::stream)
        .toList();
  }

  static List<Arguments> versions() {
    return outcomes(topic.root).stream()
        .flatMap(outcome -> IntStream.rangeClosed(outcome.first(), outcome.last()).mapToObj(version -> Arguments.of(outcome, version)))
        .toList();
  }

  @ParameterizedTest(name = "{0}, version {1}")
  @MethodSource("versions")
  void kafkasParserReadsTheAnswer(Outcome outcome, int version) throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      outcome.check().accept(client.ask(outcome.api(), version, outcome.request()), version);
    }
  }

  @Test
  void eachVersionOfEachApiHasAnOutcome() throws IOException {
    Set<String> shown = outcomes(topic.root).stream()
        .flatMap(each -> IntStream.rangeClosed(each.first(), each.last()).mapToObj(version -> each.api() + " " + version))
        .collect(Collectors.toSet());
    try (RawClient client = new RawClient(server.address())) {
      ApiVersionsResponse served = client.ask(ApiKeys.API_VERSIONS, 4,
          new ApiVersionsRequestData().setClientSoftwareName("raw").setClientSoftwareVersion("1"));
      TreeSet<String> missing = new TreeSet<>();
      served.data()
          .apiKeys()
          .forEach(api -> IntStream.rangeClosed(ApiKeys.forId(api.apiKey()).oldestVersion(), api.maxVersion())
              .mapToObj(version -> ApiKeys.forId(api.apiKey()) + " " + version)
              .filter(version -> !shown.contains(version))
              .forEach(missing::add));
      assertEquals(Set.of(), missing);
      assertTrue(served.data().apiKeys().size() > 6);
    }
  }
}
