package io.sparklog.serve.records;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/** The order of requests that are answered one after another on each connection, as a broker answers all requests of a connection. */
final class ConnectionOrder {
  /** The newest turn of each connection that has one. */
  private final Map<String, CompletableFuture<Void>> newest = new ConcurrentHashMap<>();

  /**
   * Begins a turn when the turns before it on the connection have ended. To be called by one thread at a time for a connection.
   *
   * @param begin is called with the turn, which ends when it is completed
   */
  void take(String connection, Consumer<CompletableFuture<Void>> begin) {
    CompletableFuture<Void> turn = new CompletableFuture<>();
    CompletableFuture<Void> before = newest.put(connection, turn);
    turn.whenComplete((done, failure) -> newest.remove(connection, turn));
    if (before == null) {
      begin.accept(turn);
    } else {
      before.whenComplete((done, failure) -> begin.accept(turn));
    }
  }
}
