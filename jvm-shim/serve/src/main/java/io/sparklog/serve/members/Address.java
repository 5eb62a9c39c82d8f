package io.sparklog.serve.members;

/** Where clients reach a server. */
public record Address(String host, int port) {
  @Override
  public String toString() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }
}
