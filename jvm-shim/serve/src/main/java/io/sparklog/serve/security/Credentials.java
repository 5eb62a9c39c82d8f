package io.sparklog.serve.security;

import io.sparklog.spec.PartlogException;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;

/** Verifiers of passwords, by the names of users. A verifier shows whether a password is right. It does not show the password. */
public final class Credentials {
  private static final int ITERATIONS = 8192;

  private final Map<String, ScramCredential> verifiers;

  private Credentials(Map<String, ScramCredential> verifiers) {
    this.verifiers = verifiers;
  }

  /** Whether users can prove their names by this mechanism of SASL. */
  public static boolean isMechanism(String name) {
    return name.equals(PlainSaslServer.PLAIN_MECHANISM) || ScramMechanism.isScram(name);
  }

  /**
   * Reads a file with a verifier in each line: the name, the mechanism, the verifier as Kafka writes it.
   *
   * @param key the setting that names the file, for messages
   * @throws PartlogException OPTION_VALUE
   */
  public static Credentials read(String key, String file) {
    Map<String, ScramCredential> verifiers = new HashMap<>();
    int number = 0;
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(new FileInputStream(file), StandardCharsets.UTF_8))) {
      for (String line; (line = lines.readLine()) != null;) {
        number++;
        String[] words = line.trim().split("\\s+");
        if (!line.isBlank() && !line.startsWith("#")) {
          ScramMechanism mechanism = words.length == 3 ? ScramMechanism.forMechanismName(words[1]) : null;
          if (mechanism == null) {
            throw new IllegalArgumentException();
          }
          verifiers.put(name(mechanism, words[0]), ScramCredentialUtils.credentialFromString(words[2]));
        }
      }
    } catch (IOException e) {
      throw PartlogException.caused(e, "OPTION_VALUE", "option", key, "value", file, "reason", "the file cannot be read");
    } catch (IllegalArgumentException e) { // Without the cause, which shows the line.
      throw PartlogException.of("OPTION_VALUE", "option", key, "value", file, "reason",
          "line " + number + " is not a name, SCRAM-SHA-256 or SCRAM-SHA-512, and a verifier");
    }
    return new Credentials(verifiers);
  }

  /** The lines of a user for such a file. @throws PartlogException OPTION_VALUE */
  public static String lines(String user, String password) {
    if (user.isEmpty() || user.startsWith("#") || user.chars().anyMatch(Character::isWhitespace)) {
      throw PartlogException.of("OPTION_VALUE", "option", "--verifiers", "value", user, "reason",
          "Give the name of a user, without spaces, that does not begin with #");
    }
    if (password.isEmpty()) {
      throw PartlogException.of("OPTION_VALUE", "option", "--verifiers", "value", user, "reason",
          "Give the password of this user on standard input, which is empty");
    }
    StringBuilder lines = new StringBuilder();
    for (ScramMechanism mechanism : ScramMechanism.values()) {
      String verifier = ScramCredentialUtils.credentialToString(formatter(mechanism).generateCredential(password, ITERATIONS));
      lines.append(user).append(' ').append(mechanism.mechanismName()).append(' ').append(verifier).append('\n');
    }
    return lines.toString();
  }

  public Optional<ScramCredential> verifier(ScramMechanism mechanism, String user) {
    return Optional.ofNullable(verifiers.get(name(mechanism, user)));
  }

  /** Takes some milliseconds of computing. */
  public boolean isRight(String user, char[] password) {
    for (ScramMechanism mechanism : ScramMechanism.values()) {
      Optional<ScramCredential> verifier = verifier(mechanism, user);
      if (verifier.isPresent()) {
        return isRight(formatter(mechanism), verifier.get(), new String(password));
      }
    }
    return false;
  }

  private static boolean isRight(ScramFormatter formatter, ScramCredential verifier, String password) {
    try {
      byte[] salted = formatter.saltedPassword(password, verifier.salt(), verifier.iterations());
      return MessageDigest.isEqual(formatter.storedKey(formatter.clientKey(salted)), verifier.storedKey());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static ScramFormatter formatter(ScramMechanism mechanism) {
    try {
      return new ScramFormatter(mechanism);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String name(ScramMechanism mechanism, String user) {
    return mechanism.mechanismName() + " " + user;
  }
}
