package io.sparklog.serve.security;

import java.security.GeneralSecurityException;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;

/** How the client of one connection proves its name, by Kafka's own servers of SASL. One step is made at a time. */
public final class Sasl {
  private static final String PLAIN = PlainSaslServer.PLAIN_MECHANISM;

  private final List<String> mechanisms;
  private final Credentials credentials;
  private SaslServer server;
  private ScramMechanism scram;
  private volatile KafkaPrincipal principal;

  /** @param mechanisms that the listener takes */
  public Sasl(List<String> mechanisms, Credentials credentials) {
    this.mechanisms = mechanisms;
    this.credentials = credentials;
  }

  /** Whether this class knows the mechanism. */
  public static boolean isKnown(String mechanism) {
    return mechanism.equals(PLAIN) || ScramMechanism.isScram(mechanism);
  }

  public boolean isDone() {
    return principal != null;
  }

  /** Whether a mechanism is chosen, and the next request is a step of it. */
  public boolean hasBegun() {
    return server != null;
  }

  /** The name that the client has proved; null before. */
  public KafkaPrincipal principal() {
    return principal;
  }

  /** The client chooses a mechanism. */
  public void begin(String mechanism) {
    if (!mechanisms.contains(mechanism)) {
      throw new UnsupportedSaslMechanismException("The mechanisms of this listener are " + String.join(", ", mechanisms) + ".");
    }
    scram = ScramMechanism.forMechanismName(mechanism);
    try {
      server = scram == null ? new PlainSaslServer(this::answer) : new ScramSaslServer(scram, Map.of(), this::answer);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Answers a step. May take some milliseconds of computing.
   *
   * @throws SaslAuthenticationException if the name or the password is wrong, in words that tell neither
   */
  public byte[] step(byte[] bytes) {
    try {
      byte[] answer = server.evaluateResponse(bytes);
      if (server.isComplete()) {
        principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, server.getAuthorizationID());
      }
      return answer == null ? new byte[0] : answer;
    } catch (SaslException | SaslAuthenticationException e) {
      throw new SaslAuthenticationException("The name or the password is wrong.");
    }
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
