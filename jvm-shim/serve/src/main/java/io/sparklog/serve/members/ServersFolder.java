package io.sparklog.serve.members;

import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.segment.Names.ServerHeartbeat;
import io.sparklog.segment.Names;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PutObserver;
import io.sparklog.storage.ReadStore;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The folder in which the servers of a root say that they are alive. FORMAT.md annex G. A heartbeat is a file with a new name, so one
 * listing shows all heartbeats, in each kind of store.
 */
final class ServersFolder {
  /** More files are not of servers. */
  private static final int FILES_MAX = 1000;

  private static final int CLUSTER_BYTES_MAX = 1024;

  private final LogStore store;
  private final String identity;

  /** When files were written, by their names, if the listing told it. */
  private Map<String, ReadStore.Listed> listed = Map.of();

  /** @param identity of this server */
  ServersFolder(LogStore store, String identity) {
    this.store = store;
    this.identity = identity;
  }

  /** The id of the root's cluster, which the first server puts. A server that can neither read nor put it has one for itself. */
  String cluster() {
    try {
      Optional<String> known = knownCluster();
      if (known.isPresent()) {
        return known.get();
      }
      store.createFolder(Names.SERVERS);
      String temporary = Names.SERVERS + "/" + Names.temporary(identity, Names.last(Names.CLUSTER));
      store.putIfAbsent(Names.CLUSTER, temporary, Json.MAPPER.writeValueAsBytes(Map.of("cluster", identity)), PutObserver.NONE);
    } catch (FileAlreadyExistsException another) {
      // It is read below.
    } catch (IOException e) {
      Warnings.warn(ServersFolder.class, "the id of the cluster is not put in {}: {}", store.location(Names.CLUSTER), e.toString());
    }
    try {
      return knownCluster().orElse(identity);
    } catch (IOException e) {
      return identity;
    }
  }

  /** Empty also for a file with another content. */
  private Optional<String> knownCluster() throws IOException {
    try {
      byte[] content = store.read(Names.CLUSTER, CLUSTER_BYTES_MAX);
      String id = Json.text(Json.parse(content, 0, content.length), "cluster");
      Damaged.unless(Names.isIdentity(id), "field cluster is no identity");
      return Optional.of(id);
    } catch (NoSuchFileException absent) {
      return Optional.empty();
    } catch (Damaged e) {
      Warnings.warn(ServersFolder.class, "{} has no id of a cluster: {}. Delete it", store.location(Names.CLUSTER), e.getMessage());
      return Optional.empty();
    }
  }

  /** Says that a server is alive. In a folder whose root was deleted it says nothing. @return whether it is said */
  boolean announce(long number, byte[] heartbeat) throws IOException {
    if (store.hasFolders() && !store.exists(Names.FOLDER)) {
      return false;
    }
    String name = new ServerHeartbeat(identity, number).file();
    try (FileAppender file = store.create(name)) {
      file.write(heartbeat, 0, heartbeat.length);
      file.sync();
      return true;
    } catch (IOException e) {
      drop(name); // A full disk may keep an empty file.
      throw e;
    }
  }

  /** The newest heartbeat of each server, by identity. Deletes older heartbeats of this server. */
  Map<String, ServerHeartbeat> heartbeats() throws IOException {
    Map<String, ServerHeartbeat> newest = new HashMap<>();
    ReadStore.Listing listing = store.listing(Names.SERVERS);
    listed = listing.files();
    List<ServerHeartbeat> all = listing.names()
        .stream()
        .flatMap(name -> Names.serverHeartbeat(name).stream())
        .sorted(Comparator.comparing(ServerHeartbeat::file))
        .toList();
    for (ServerHeartbeat heartbeat : all.size() > FILES_MAX ? withoutExcess(all) : all) {
      ServerHeartbeat before = newest.put(heartbeat.identity(), heartbeat); // In their order, so this one is newer.
      if (before != null && before.identity().equals(identity)) {
        drop(before.file());
      }
    }
    return newest;
  }

  private List<ServerHeartbeat> withoutExcess(List<ServerHeartbeat> all) {
    Warnings.warn(ServersFolder.class, "{} has {} files. Only {} are looked at: delete old files", store.location(Names.SERVERS),
        all.size(), FILES_MAX);
    return Stream
        .concat(all.stream().limit(FILES_MAX).filter(heartbeat -> !heartbeat.identity().equals(identity)),
            all.stream().filter(heartbeat -> heartbeat.identity().equals(identity)))
        .toList();
  }

  /** The server of a heartbeat; empty if the file is gone, or has another content. */
  Optional<Server> read(ServerHeartbeat heartbeat) {
    try {
      return Optional.of(Server.parse(store.read(heartbeat.file(), Server.BYTES_MAX)));
    } catch (NoSuchFileException gone) {
      return Optional.empty();
    } catch (IOException | Damaged e) {
      Warnings.inform(ServersFolder.class, "{} is of no server: {}", store.location(heartbeat.file()), e.getMessage());
      return Optional.empty();
    }
  }

  /** When a heartbeat was written, by the clock of the place, in ms since 1970; −1 if that cannot be told. */
  long writtenMs(ServerHeartbeat heartbeat) {
    ReadStore.Listed told = listed.get(Names.last(heartbeat.file()));
    try {
      return told == null ? store.modifiedMs(heartbeat.file()) : told.modifiedMs();
    } catch (IOException gone) {
      return -1;
    }
  }

  /** Deletes a file. A failure is not even logged: the file is deleted at a later refresh, or by another server. */
  void drop(String file) {
    try {
      store.delete(file);
    } catch (IOException later) {
      // See above.
    }
  }
}
