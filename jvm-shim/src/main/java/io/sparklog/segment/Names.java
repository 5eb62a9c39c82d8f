package io.sparklog.segment;

import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.random.RandomGenerator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;

/** Every name below a root is built and parsed here, and nowhere else. FORMAT.md section 2. */
public final class Names {
  /** The folder beside Kafka's that holds the commits. */
  public static final String FOLDER = "_partlog";

  /** Where it is tried whether the store is safe. No reader looks there. */
  public static final String PROBE = "_probe";

  /** The names of data files that a later release makes, for several topics, begin with this. They are relative to the root. */
  private static final String SHARED = "_shared/";

  /** Where servers say that they are alive. FORMAT.md annex G. */
  public static final String SERVERS = "_servers";

  /** The id of the cluster that the servers of a root are. */
  public static final String CLUSTER = SERVERS + "/cluster.json";

  private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");
  private static final Pattern VERSION_FILE = Pattern.compile("([0-9]{20})\\.json");
  private static final Pattern CHECKPOINT = Pattern.compile("([0-9]{20})\\.checkpoint-([0-9a-f]{16})\\.jsonl");
  private static final Pattern DELETION = Pattern.compile("([0-9]{20})\\.deleted");
  private static final String NUMBER = "(?:0|[1-9][0-9]{0,18})";
  private static final String PARTITION = "(?:0|[1-9][0-9]{0,3})";

  /** The last of 22 characters holds the last two of 128 bits. */
  private static final String IDENTITY = "[A-Za-z0-9_][A-Za-z0-9_-]{20}[AQgw]";

  private static final Pattern IDENTITY_ALONE = Pattern.compile(IDENTITY);
  private static final Set<String> RESERVED = Set.of("A".repeat(22), "A".repeat(21) + "Q");
  private static final String OWN_FILE = "p" + PARTITION + "-t" + NUMBER + "-" + NUMBER + "-" + NUMBER;
  private static final String SHARED_FILE = "t" + NUMBER + "-" + NUMBER + "|pool";
  private static final Pattern DATA_FILE = Pattern
      .compile("data/([0-9]{20})-(" + IDENTITY + ")/(?:(" + OWN_FILE + ")|" + SHARED_FILE + ")\\.log");
  private static final String SHARED_NAME = "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,127}";
  private static final Pattern FILE_OF_TOPICS = Pattern.compile(SHARED + SHARED_NAME + "/" + SHARED_NAME);
  private static final Pattern DATA_FOLDER = Pattern.compile("([0-9]{20})-" + IDENTITY);
  private static final Pattern SERVER_FILE = Pattern.compile("(" + IDENTITY + ")-([0-9]{20})\\.json");
  private static final Pattern VIEW_FILE = Pattern.compile("([0-9]{20})\\.(log|index|timeindex)");

  private Names() {}

  /** Why {@code topic} is not a legal topic name, or empty if it is one. Kafka's rule. */
  public static Optional<String> illegalTopic(String topic) {
    if (topic.isEmpty()) {
      return Optional.of("it is empty");
    }
    if (topic.equals(".") || topic.equals("..")) {
      return Optional.of("it names a directory");
    }
    if (topic.length() > 249) {
      return Optional.of("it has " + topic.length() + " characters");
    }
    return TOPIC.matcher(topic).matches() ? Optional.empty() : Optional.of("it has other characters than a-z, A-Z, 0-9, '.', '_' and '-'");
  }

  /** {@code _partlog/orders} */
  public static String topicFolder(String topic) {
    return FOLDER + "/" + topic;
  }

  /** A name that is relative to the topic's folder, from the root: {@code data/…} → {@code _partlog/orders/data/…}. */
  public static String topicFile(String topic, String name) {
    return topicFolder(topic) + "/" + name;
  }

  /** {@code 42} → {@code 00000000000000000042.json} */
  public static String versionFile(long version) {
    return digits(version) + ".json";
  }

  /** The inverse of {@link #versionFile}; empty for any other name. */
  public static OptionalLong versionOf(String name) {
    return number(VERSION_FILE.matcher(name));
  }

  /** {@code (100, "0f1e2d3c4b5a6978")} → {@code 00000000000000000100.checkpoint-0f1e2d3c4b5a6978.jsonl} */
  public static String checkpoint(long version, String hash) {
    return digits(version) + ".checkpoint-" + hash + ".jsonl";
  }

  /** The version of a checkpoint's name; empty for any other name. */
  public static OptionalLong checkpointVersion(String name) {
    return number(CHECKPOINT.matcher(name));
  }

  /** The greatest version in the names of version files and checkpoints; −1 without such a name. */
  public static long newest(Collection<String> names) {
    return names.stream()
        .flatMapToLong(name -> LongStream.concat(versionOf(name).stream(), checkpointVersion(name).stream()))
        .max()
        .orElse(-1);
  }

  /** {@code 107} → {@code 00000000000000000107.deleted}: version 107 deleted the topic. */
  public static String deletionMarker(long version) {
    return digits(version) + ".deleted";
  }

  /** The inverse of {@link #deletionMarker}; empty for any other name. */
  public static OptionalLong deletedVersion(String name) {
    return number(DELETION.matcher(name));
  }

  /** The folder of a topic's temporary files, relative to the topic's folder. */
  public static final String TEMPORARY = "tmp";

  /** {@code tmp/<name>}: a file that is being written, and that no reader looks at. */
  public static String temporary(String txn, String name) {
    return TEMPORARY + "/" + txn + "-" + name;
  }

  /** The folder of a topic's data folders, relative to the topic's folder. */
  public static final String DATA = "data";

  /** {@code data/00000000000000000042-<txn>} */
  public static String dataFolder(long plannedVersion, String txn) {
    return DATA + "/" + digits(plannedVersion) + "-" + txn;
  }

  /** The planned version of a data folder whose name ends with this part; empty for any other name. */
  public static OptionalLong plannedVersion(String folder) {
    return number(DATA_FOLDER.matcher(folder));
  }

  /** {@code p3-t12-47-0.log}: what task 12, attempt 47, wrote for partition 3 alone. */
  public static String ownFile(int partition, int task, long attempt, int sequence) {
    return "p" + partition + "-t" + task + "-" + attempt + "-" + sequence + ".log";
  }

  /** {@code t12-47.log}: what task 12, attempt 47, wrote for several partitions. */
  public static String sharedFile(int task, long attempt) {
    return "t" + task + "-" + attempt + ".log";
  }

  /** The file that the driver wrote for the tasks. */
  public static String poolFile() {
    return "pool.log";
  }

  /**
   * A heartbeat of a server.
   *
   * @param identity of the server, new with each start
   * @param number the heartbeat after this one has the next number
   */
  public record ServerHeartbeat(String identity, long number) {
    /** {@code _servers/<identity>-00000000000000000042.json} */
    public String file() {
      return SERVERS + "/" + identity + "-" + digits(number) + ".json";
    }
  }

  /** The inverse of {@link ServerHeartbeat#file}, for the part after the folder; empty for any other name. */
  public static Optional<ServerHeartbeat> serverHeartbeat(String name) {
    Matcher matcher = SERVER_FILE.matcher(name);
    if (!matcher.matches() || RESERVED.contains(matcher.group(1))) {
      return Optional.empty();
    }
    try {
      return Optional.of(new ServerHeartbeat(matcher.group(1), Long.parseLong(matcher.group(2))));
    } catch (NumberFormatException beyondLong) {
      return Optional.empty();
    }
  }

  /** The part of a name after its last slash. */
  public static String last(String name) {
    return name.substring(name.lastIndexOf('/') + 1);
  }

  /** Whether {@code name} is a data file, as version files name it. */
  public static boolean isDataFile(String name) {
    Matcher matcher = DATA_FILE.matcher(name);
    return number(matcher).isPresent() && !RESERVED.contains(matcher.group(2)) || FILE_OF_TOPICS.matcher(name).matches();
  }

  /** Whether a data file, as version files name it, may be of several topics: no program of this release deletes it. */
  public static boolean isShared(String name) {
    return name.startsWith(SHARED);
  }

  /** The path below the root of a data file, which version files of a topic name {@code name}. */
  public static String dataFile(String topic, String name) {
    return isShared(name) ? name : topicFile(topic, name);
  }

  /** Whether a data file holds one segment alone, so that it may be stamped and linked into the Kafka view. */
  public static boolean isOwnFile(String name) {
    Matcher matcher = DATA_FILE.matcher(name);
    return matcher.matches() && matcher.group(3) != null;
  }

  /** {@code orders-3}: the folder of a partition in the Kafka view. */
  public static String viewFolder(String topic, int partition) {
    return topic + "-" + partition;
  }

  /** {@code (4711, "log")} → {@code 00000000000000004711.log} */
  public static String viewFile(long baseOffset, String kind) {
    return digits(baseOffset) + "." + kind;
  }

  /** The base offset of a name in the Kafka view; empty for any other name. */
  public static OptionalLong viewBase(String name) {
    return number(VIEW_FILE.matcher(name));
  }

  /** The partition of a folder of {@code topic} in the Kafka view; empty for any other name. */
  public static OptionalInt viewPartition(String topic, String folder) {
    if (!folder.startsWith(topic + "-")) {
      return OptionalInt.empty();
    }
    return partition(folder.substring(topic.length() + 1));
  }

  /** The number of a partition; empty for any other text. */
  public static OptionalInt partition(String digits) {
    return digits.matches(PARTITION) ? OptionalInt.of(Integer.parseInt(digits)) : OptionalInt.empty();
  }

  /** A new identity in Kafka's form: 16 random bytes, base64url, never beginning with {@code -}. */
  public static String identity(RandomGenerator random) {
    byte[] bytes = new byte[16];
    String text;
    do {
      random.nextBytes(bytes);
      // The bits of a version 4 UUID keep the reserved identities (0 and 1) out.
      bytes[6] = (byte) (bytes[6] & 0x0f | 0x40);
      bytes[8] = (byte) (bytes[8] & 0x3f | 0x80);
      text = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    } while (text.startsWith("-"));
    return text;
  }

  /** Whether {@code text} is an identity: 16 bytes in base64url, and not a reserved identity. */
  public static boolean isIdentity(String text) {
    return IDENTITY_ALONE.matcher(text).matches() && !RESERVED.contains(text);
  }

  private static String digits(long number) {
    // In ASCII digits in any locale of the JVM: ar-EG and others have digits of their own.
    return String.format(Locale.ROOT, "%020d", number);
  }

  private static OptionalLong number(Matcher matcher) {
    if (!matcher.matches()) {
      return OptionalLong.empty();
    }
    try {
      return OptionalLong.of(Long.parseLong(matcher.group(1)));
    } catch (NumberFormatException beyondLong) {
      return OptionalLong.empty();
    }
  }
}
