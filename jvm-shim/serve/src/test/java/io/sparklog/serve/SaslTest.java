package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.serve.security.Credentials;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.SaslAuthenticateRequestData;
import org.apache.kafka.common.message.SaslHandshakeRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.SaslAuthenticateResponse;
import org.apache.kafka.common.requests.SaslHandshakeResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The order of the requests by which a client proves its name. */
final class SaslTest {
  @TempDir
  static Path folder;

  private static RootServer server;

  @BeforeAll
  static void open() throws IOException {
    Path users = Files.writeString(folder.resolve("users"), Credentials.lines("ann", "secret"));
    server = new RootServer(
        ServeConfig.of(folder.resolve("root").toString(), "listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.credentials.file=" + users));
  }

  @AfterAll
  static void close() {
    server.close();
  }

  private static SaslHandshakeRequestData handshake(String mechanism) {
    return new SaslHandshakeRequestData().setMechanism(mechanism);
  }

  private static SaslAuthenticateRequestData plain(String password) {
    return new SaslAuthenticateRequestData().setAuthBytes(("\0ann\0" + password).getBytes(StandardCharsets.UTF_8));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void aRightPasswordOpensTheConnection(int version) throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      ApiVersionsResponse versions = client.ask(ApiKeys.API_VERSIONS, 0, new ApiVersionsRequestData());
      assertEquals(0, versions.apiVersion(ApiKeys.SASL_HANDSHAKE.id).minVersion());
      SaslHandshakeResponse begun = client.ask(ApiKeys.SASL_HANDSHAKE, 1, handshake("PLAIN"));
      assertEquals(Errors.NONE, begun.error());
      SaslAuthenticateResponse proved = client.ask(ApiKeys.SASL_AUTHENTICATE, version, plain("secret"));
      assertEquals(Errors.NONE, proved.error());
      MetadataResponse answer = client.ask(ApiKeys.METADATA, 12, new MetadataRequestData().setTopics(null));
      assertEquals(1, answer.brokers().size());
      client.send(ApiKeys.SASL_HANDSHAKE, (short) 1, handshake("PLAIN"));
      assertTrue(client.isEnded());
    }
  }

  @Test
  void aWrongPasswordIsAnsweredLateAndEndsTheConnection() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      client.ask(ApiKeys.SASL_HANDSHAKE, 1, handshake("PLAIN"));
      long begun = System.nanoTime();
      SaslAuthenticateResponse refused = client.ask(ApiKeys.SASL_AUTHENTICATE, 2, plain("secrets"));
      assertEquals(Errors.SASL_AUTHENTICATION_FAILED, refused.error());
      assertTrue(System.nanoTime() - begun >= 1_000_000_000L);
      assertTrue(client.isEnded());
    }
  }

  @Test
  void anUnknownMechanismIsAnsweredWithTheKnown() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      SaslHandshakeResponse refused = client.ask(ApiKeys.SASL_HANDSHAKE, 1, handshake("GSSAPI"));
      assertEquals(Errors.UNSUPPORTED_SASL_MECHANISM, refused.error());
      assertEquals(3, refused.enabledMechanisms().size());
    }
  }

  @Test
  void aRequestBeforeTheProofEndsTheConnection() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      client.send(ApiKeys.METADATA, (short) 12, new MetadataRequestData().setTopics(null));
      assertTrue(client.isEnded());
    }
    try (RawClient client = new RawClient(server.address())) {
      client.ask(ApiKeys.SASL_HANDSHAKE, 1, handshake("SCRAM-SHA-256"));
      client.send(ApiKeys.METADATA, (short) 12, new MetadataRequestData().setTopics(null));
      assertTrue(client.isEnded());
    }
  }

  /** librdkafka looks for version 0, and uses version 1. */
  @Test
  void aHandshakeOfVersion0EndsTheConnection() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      client.send(ApiKeys.SASL_HANDSHAKE, (short) 0, handshake("PLAIN"));
      assertTrue(client.isEnded());
    }
  }

  @Test
  void aStepWithoutAHandshakeProvesNothing() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      SaslAuthenticateResponse refused = client.ask(ApiKeys.SASL_AUTHENTICATE, 2, plain("secret"));
      assertEquals(Errors.ILLEGAL_SASL_STATE, refused.error());
      client.send(ApiKeys.METADATA, (short) 12, new MetadataRequestData().setTopics(null));
      assertTrue(client.isEnded());
    }
  }

  /** The second request comes while the first waits for the delay. */
  @Test
  void twoStepsAtOnceEndTheConnection() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      client.ask(ApiKeys.SASL_HANDSHAKE, 1, handshake("PLAIN"));
      client.send(ApiKeys.SASL_AUTHENTICATE, (short) 2, plain("wrong"));
      client.send(ApiKeys.SASL_AUTHENTICATE, (short) 2, plain("secret"));
      assertTrue(client.isEnded());
    }
  }

  @Test
  void aLongRequestBeforeTheProofEndsTheConnection() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      client.sendBytes(new byte[] {0, 8, 0, 1}); // 512 KiB and a byte.
      assertTrue(client.isEnded());
    }
  }
}
