package io.sparklog.storage;

import io.sparklog.spec.Options;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Settings of Hadoop, which configure a store in a file system of Hadoop. One of them is the connector's own: {@link Options#MAX_REQUESTS}.
 */
final class HadoopSettings {
  private static final List<String> PREFIXES = List.of("fs.", "dfs.", "hadoop.", "ipc.");

  /** As Hadoop's own jars have them, in every process. */
  private static final Configuration DEFAULTS = defaults();

  private HadoopSettings() {}

  private static Configuration defaults() {
    Configuration defaults = new Configuration(false);
    defaults.addResource("core-default.xml");
    defaults.addResource("hdfs-default.xml");
    return defaults;
  }

  /** Those of {@code all} that concern a file system and are not what Hadoop has by itself: a process without them needs no others. */
  static SortedMap<String, String> toSend(Iterable<Map.Entry<String, String>> all) {
    SortedMap<String, String> settings = new TreeMap<>();
    for (Map.Entry<String, String> setting : all) {
      String key = setting.getKey();
      boolean concerns = key.equals(Options.MAX_REQUESTS) || PREFIXES.stream().anyMatch(key::startsWith);
      if (concerns && setting.getValue() != null && !setting.getValue().equals(DEFAULTS.getRaw(setting.getKey()))) {
        settings.put(setting.getKey(), setting.getValue());
      }
    }
    return settings;
  }

  /** The user that a file system opened now would work for; equal to another if they are the same. */
  static UserGroupInformation user() {
    try {
      return UserGroupInformation.getCurrentUser();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The file system of {@code place}, opened for the user of now. @param configuration the configuration of {@code settings} */
  static SharedFiles files(URI place, Map<String, String> settings, Configuration configuration) {
    UserGroupInformation user = user();
    Map<String, String> given = settings.containsKey(Options.MAX_REQUESTS)
        ? Map.of(Options.MAX_REQUESTS, settings.get(Options.MAX_REQUESTS))
        : Map.of();
    int requestsMax = Options.of(given, Options.Side.READ).integer(Options.MAX_REQUESTS);
    return SharedFiles.of(List.of(place.getScheme(), String.valueOf(place.getAuthority()), settings, user), () -> {
      try {
        return user.doAs((PrivilegedExceptionAction<FileSystem>) () -> FileSystem.newInstance(place, configuration));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException("interrupted while the file system of " + place + " was opened");
      }
    }, place.getScheme().equals("hdfs") ? Requests.ofHdfs(requestsMax) : new Requests(requestsMax));
  }

  /** Whether a setting comes from elsewhere than Hadoop's own jars. */
  static boolean isGiven(String key, Configuration configuration) {
    String[] sources = configuration.getPropertySources(key);
    return sources != null && !sources[sources.length - 1].equals("core-default.xml");
  }

  /** A configuration with these settings over the settings of this process. */
  static Configuration configuration(Map<String, String> settings) {
    Configuration configuration = new Configuration();
    settings.forEach(configuration::set);
    return configuration;
  }
}
