package io.sparklog.serve.security;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/**
 * An address at which clients come in.
 *
 * @param name in the configuration, such as SASL_SSL
 * @param isEncrypted whether clients speak TLS
 * @param mechanisms of SASL by which a client proves its name; empty if the listener does not ask
 */
public record Listener(String name, Rights rights, boolean isEncrypted, List<String> mechanisms) {
  public Listener {
    mechanisms = List.copyOf(mechanisms);
  }

  /** Tells it from listeners whose clients speak in another way, or have other rights. */
  public String kind() {
    return protocol().name + (rights.readOnly() ? " read-only" : "")
        + (rights.prefixes().isEmpty() ? "" : " " + UUID.nameUUIDFromBytes(prefixes().getBytes(StandardCharsets.UTF_8)));
  }

  /** In an order that the configuration does not decide. */
  private String prefixes() {
    return rights.prefixes().stream().sorted().collect(Collectors.joining(","));
  }

  public SecurityProtocol protocol() {
    return SecurityProtocol.forName((asksForName() ? "SASL_" : "") + (isEncrypted ? "SSL" : "PLAINTEXT"));
  }

  public boolean asksForName() {
    return !mechanisms.isEmpty();
  }
}
