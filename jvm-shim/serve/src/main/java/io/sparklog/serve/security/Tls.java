package io.sparklog.serve.security;

import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.sparklog.spec.PartlogException;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;

/** The certificate of a server, for TLS by the JDK. */
public final class Tls {
  private Tls() {}

  /**
   * Reads a key store.
   *
   * @param type such as PKCS12
   * @throws PartlogException OPTION_VALUE, for ssl.keystore.location
   */
  public static SslContext of(String location, String password, String type) {
    try (InputStream file = new FileInputStream(location)) {
      KeyStore keys = KeyStore.getInstance(type);
      keys.load(file, password.toCharArray());
      KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      factory.init(keys, password.toCharArray());
      return SslContextBuilder.forServer(factory).sslProvider(SslProvider.JDK).protocols("TLSv1.2", "TLSv1.3").build();
    } catch (IOException | GeneralSecurityException e) {
      throw PartlogException.caused(e, "OPTION_VALUE", "option", "ssl.keystore.location", "value", location, "reason",
          "the key store cannot be read with ssl.keystore.password and ssl.keystore.type (" + e.getClass().getSimpleName() + ")");
    }
  }
}
