package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.serve.members.Address;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.ServerSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Arguments and settings of a server. */
final class ServeConfigTest {
  private static List<ServeConfig.Entrance> entrances(String... arguments) {
    return ServeConfig.of(Stream.concat(Stream.of("root"), Stream.of(arguments)).toArray(String[]::new)).entrances();
  }

  private static String refused(String id, String... arguments) {
    PartlogException refused = assertThrows(PartlogException.class, () -> entrances(arguments));
    assertEquals(id, refused.id(), refused.getMessage());
    return refused.getMessage();
  }

  @ParameterizedTest
  @ValueSource(strings = {"0.0.0.0", "[::]"})
  void clientsAreToldNoAddressThatIsNone(String wildcard) {
    String told = refused("SERVE_WILDCARD", "--listen", wildcard + ":9092", "--unprotected");
    assertTrue(told.contains("-X advertised.listeners=PLAINTEXT://HOST:9092"), told);
    String advertised = "advertised.listeners=PLAINTEXT://";
    refused("SERVE_WILDCARD", advertised + wildcard + ":9092");
    assertEquals(new Address("log.example", 9093),
        entrances("--listen", wildcard + ":9092", "--unprotected", advertised + "log.example:9093").get(0).advertised());
  }

  @Test
  void listenersAreGivenOnce(@TempDir Path folder) throws IOException {
    refused("OPTION_CONFLICT", "--listen", "127.0.0.1:1", "listeners=PLAINTEXT://127.0.0.1:2");
    refused("OPTION_CONFLICT", "listeners=PLAINTEXT://127.0.0.1:2", "--listen", "127.0.0.1:1");
    Path file = Files.writeString(folder.resolve("server.properties"), "listeners=PLAINTEXT://127.0.0.1:2\n");
    assertEquals(1, entrances("--listen", "127.0.0.1:1", "--config", file.toString()).get(0).address().port());
  }

  @Test
  void anUnknownSettingIsAnsweredWithTheNearest(@TempDir Path folder) throws IOException {
    assertTrue(refused("SETTING_UNKNOWN", "num.partition=4").contains("`num.partition`. Did you mean `num.partitions`?"));
    refused("SETTING_UNKNOWN", "log.dirs=/logs");
    refused("SETTING_UNKNOWN", "--readonly");
    Path file = Files.writeString(folder.resolve("server.properties"), "num.io.thread=3\n");
    String told = refused("SETTING_UNKNOWN", "--config", file.toString());
    assertTrue(told.contains(file + ". Did you mean `num.io.threads`?"), told);
  }

  @ParameterizedTest
  @ValueSource(strings = {"num.partitions=four", "num.io.threads=0", "end.when.unused.ms=-2", "auto.create.topics.enable=no",
      "listener.name.plaintext.read.only=yes", "group.max.size=", "append.linger.ms=-1"})
  void aValueOfAnotherTypeIsRefused(String setting) {
    refused("OPTION_VALUE", setting);
  }

  @Test
  void aConnectionMayBeIdleForEver() {
    entrances("connections.max.idle.ms=-1");
  }

  @Test
  void topicsOfClientsHaveAsManyPartitionsAsOthers() {
    assertEquals(Option.ofTopic("partitions").defaultValue(), ServerSettings.defaults().get("num.partitions"));
  }

  @Test
  void eachDefaultIsAValueOfItsSetting() {
    entrances(ServerSettings.defaults().entrySet().stream().map(each -> each.getKey() + "=" + each.getValue()).toArray(String[]::new));
  }
}
