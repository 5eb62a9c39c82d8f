package io.sparklog.catalog;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.query.PartitionJson;
import io.sparklog.spark.SessionSettings;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Signature;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.IntervalUtils;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/** The arguments of one call of a procedure, all of them checked before anything is done. */
final class Arguments {
  private static final long MICROS_OF_A_DAY = Duration.ofDays(1).toSeconds() * 1_000_000;

  private final Signature signature;
  private final Map<String, DataType> types;
  private final Map<String, Object> values = new HashMap<>();

  /**
   * The arguments that Spark passes, in the order of the declaration and of the types of {@link #sqlType}.
   *
   * @param types the types of this call, by the declared type, if they differ from {@link #sqlType}
   * @throws PartlogException ARGUMENT_VALUE; for a topic's name TOPIC_NAME_ILLEGAL, for a configuration OPTION_UNKNOWN or OPTION_VALUE
   */
  Arguments(Signature signature, InternalRow input, Map<String, DataType> types) {
    this.signature = signature;
    this.types = types;
    for (int i = 0; i < signature.parameters().size(); i++) {
      Signature.Parameter parameter = signature.parameters().get(i);
      if (!input.isNullAt(i)) {
        values.put(parameter.name(), value(parameter, input, i));
      } else if (parameter.isRequired() || !parameter.defaultValue().equals("NULL")) {
        throw signature.invalid(parameter.name(), "NULL", "it must have a value");
      }
    }
    if (values.containsKey("batch_size") && !bool("rebatch")) {
      throw signature.invalid("batch_size", number("batch_size"), "it says how large new batches are, and needs rebatch => true");
    }
  }

  /** How SQL passes a parameter of a declared type. Numbers are as wide as they can be, so that all of them reach the check of range. */
  static DataType sqlType(String type) {
    return switch (type) {
      case "string", "topic", "offsets", "weights", "keep", "when", "name" -> DataTypes.StringType;
      case "partitions" -> DataTypes.createArrayType(DataTypes.IntegerType, true);
      case "boolean" -> DataTypes.BooleanType;
      case "long" -> DataTypes.LongType;
      case "config" -> DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType, true);
      case "interval" -> DataTypes.createDayTimeIntervalType();
      case "moves" -> DataTypes.createMapType(DataTypes.IntegerType, DataTypes.IntegerType, true);
      default -> throw new IllegalStateException("procedures.json has a parameter of type " + type);
    };
  }

  /** Whether an argument of a declared type may have this type in SQL, too. */
  static boolean isTaken(String declared, DataType type) {
    return switch (declared) {
      case "interval" -> type instanceof DayTimeIntervalType || type instanceof StringType;
      case "moves" -> type instanceof MapType moves && isKey(moves.keyType()) && moves.valueType() instanceof IntegerType;
      default -> false;
    };
  }

  private static boolean isKey(DataType type) {
    return type instanceof StringType || type instanceof BinaryType;
  }

  private Object value(Signature.Parameter parameter, InternalRow input, int i) {
    return switch (parameter.type()) {
      case "boolean" -> input.getBoolean(i);
      case "long" -> number(parameter, input.getLong(i));
      case "config" -> config(input.getMap(i));
      case "interval" ->
        interval(parameter, types.get("interval") instanceof StringType ? micros(parameter, input.getUTF8String(i)) : input.getLong(i));
      case "topic", "name" -> topic(input.getString(i));
      case "offsets", "weights" -> offsets(parameter, input.getString(i));
      case "partitions" -> partitions(parameter, input.getArray(i));
      case "moves" -> moves(parameter, input.getMap(i));
      case "keep" -> keep(parameter, input.getString(i));
      case "when" -> when(parameter, input.getString(i));
      default -> text(parameter, input.getString(i));
    };
  }

  private String text(Signature.Parameter parameter, String given) {
    if (given.isBlank()) {
      throw signature.invalid(parameter.name(), "'" + given + "'", "it must not be empty");
    }
    return given;
  }

  private static String topic(String given) {
    ReadableTopics.requireLegal(given);
    return given;
  }

  private long number(Signature.Parameter parameter, long given) {
    if (given < parameter.min() || given > parameter.max()) {
      throw signature.invalid(parameter.name(), given, "it must be from " + parameter.min() + " to " + parameter.max());
    }
    return given;
  }

  /** A text such as {@code 2 days}, as Spark's functions of time take it. */
  private long micros(Signature.Parameter parameter, UTF8String given) {
    CalendarInterval read = IntervalUtils.safeStringToInterval(given);
    if (read == null || read.months != 0) {
      throw signature.invalid(parameter.name(), "'" + given + "'", "it must be an interval of days, hours, minutes or seconds: '2 days'");
    }
    try {
      return Math.addExact(Math.multiplyExact((long) read.days, MICROS_OF_A_DAY), read.microseconds);
    } catch (ArithmeticException e) {
      throw signature.invalid(parameter.name(), "'" + given + "'", "it is too long");
    }
  }

  private Duration interval(Signature.Parameter parameter, long micros) {
    Duration given = Duration.of(micros, ChronoUnit.MICROS);
    if (given.toMillis() < parameter.min()) {
      throw signature.invalid(parameter.name(), given, "it must be at least " + Duration.ofMillis(parameter.min()));
    }
    return given;
  }

  private SortedMap<Integer, Long> offsets(Signature.Parameter parameter, String given) {
    String example = parameter.type().equals("weights") ? "{\"0\":2,\"1\":1}" : "{\"0\":23,\"1\":-1}";
    return asArgument(parameter.name(), () -> PartitionJson.ofTopic(parameter.name(), given, example));
  }

  private String when(Signature.Parameter parameter, String given) {
    if (!List.of("now", "next_write", "never").contains(given)) {
      throw signature.invalid(parameter.name(), "'" + given + "'", "it must be 'now', 'next_write' or 'never'");
    }
    return given;
  }

  private List<Integer> partitions(Signature.Parameter parameter, ArrayData given) {
    TreeSet<Integer> partitions = new TreeSet<>();
    for (int i = 0; i < given.numElements(); i++) {
      if (given.isNullAt(i)) {
        throw signature.invalid(parameter.name(), "NULL", "a partition must have a number");
      }
      partitions.add(given.getInt(i));
    }
    return List.copyOf(partitions);
  }

  /** Each move names a slot, or a key if the map is of keys. */
  private List<NamedMove> moves(Signature.Parameter parameter, MapData given) {
    DataType type = types.getOrDefault("moves", sqlType("moves"));
    DataType named = ((MapType) type).keyType();
    List<NamedMove> moves = new ArrayList<>();
    for (int i = 0; i < given.numElements(); i++) {
      byte[] key = isKey(named) ? key(given.keyArray(), i, named) : null;
      int slot = key == null ? given.keyArray().getInt(i) : 0;
      if (given.valueArray().isNullAt(i)) {
        String shown = key == null ? Integer.toString(slot) : new NamedMove(key, 0, 0).shownKey();
        throw signature.invalid(parameter.name(), shown + " => NULL", "a slot must move to a partition");
      }
      moves.add(new NamedMove(key, slot, given.valueArray().getInt(i)));
    }
    Collections.sort(moves);
    return List.copyOf(moves);
  }

  private static byte[] key(SpecializedGetters row, int i, DataType type) {
    return type instanceof StringType ? row.getUTF8String(i).getBytes() : row.getBinary(i);
  }

  private SortedMap<String, SortedMap<Integer, Long>> keep(Signature.Parameter parameter, String given) {
    return asArgument(parameter.name(), () -> PartitionJson.ofTopics(parameter.name(), given, text("topic")));
  }

  private Map<String, String> config(MapData given) {
    Map<String, String> config = new TreeMap<>();
    for (int i = 0; i < given.numElements(); i++) {
      String key = given.keyArray().getUTF8String(i).toString();
      if (given.valueArray().isNullAt(i)) {
        throw signature.invalid("config", key + " => NULL", "it must have a value");
      }
      config.put(key, given.valueArray().getUTF8String(i).toString());
    }
    if (config.isEmpty()) {
      throw signature.invalid("config", "map()", "it must name what to change");
    }
    return Options.ofTopic(config);
  }

  /** Runs {@code body}. An error about an option names this parameter. */
  <T> T asArgument(String parameter, Supplier<T> body) {
    try {
      return body.get();
    } catch (PartlogException e) {
      if (!e.id().equals("OPTION_VALUE")) {
        throw e;
      }
      throw signature.invalid(parameter, e.parameters().get("value"), e.parameters().get("reason"));
    }
  }

  Root root() {
    return asArgument("root", () -> Root.of(text("root"), () -> SessionSettings.with(Map.of())));
  }

  /** Empty if the call is about all topics. */
  Optional<String> topic() {
    return Optional.ofNullable(text("topic"));
  }

  String text(String parameter) {
    return (String) values.get(parameter);
  }

  boolean bool(String parameter) {
    return (Boolean) values.get(parameter);
  }

  long number(String parameter) {
    return (Long) values.get(parameter);
  }

  /** The value of a parameter, in the type that its declared type has here; null if it is not given. */
  @SuppressWarnings("unchecked")
  <T> T value(String parameter) {
    return (T) values.get(parameter);
  }

  /** The offsets from which on the call keeps records, by topic and partition; empty if it says nothing. */
  SortedMap<String, SortedMap<Integer, Long>> keep() {
    SortedMap<String, SortedMap<Integer, Long>> keep = value("keep");
    return keep == null ? Collections.emptySortedMap() : keep;
  }

  /**
   * A slot that is to move, and the partition that it moves to.
   *
   * @param key of the slot; null if the slot is given as a number
   * @param number of the slot; has no meaning beside a key
   */
  record NamedMove(byte[] key, int number, int to) implements Comparable<NamedMove> {
    private static final Comparator<NamedMove> ORDER = Comparator
        .comparing(NamedMove::key, Comparator.nullsFirst((one, other) -> Arrays.compareUnsigned(one, other)))
        .thenComparing(NamedMove::number);

    int slot(State state) {
      return key == null ? number : state.routing().table().slot(state.config().partitioner(), key);
    }

    /** The key as an answer shows it: text in UTF-8 as it is, and other bytes as {@code X'…'}. Null without a key. */
    String shownKey() {
      if (key == null) {
        return null;
      }
      try {
        String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(key)).toString();
        return text.chars().anyMatch(Character::isISOControl) ? hex() : text;
      } catch (CharacterCodingException bytes) {
        return hex();
      }
    }

    private String hex() {
      return "X'" + HexFormat.of().formatHex(key) + "'";
    }

    @Override
    public int compareTo(NamedMove other) {
      return ORDER.compare(this, other);
    }
  }
}
