package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.read.Times;
import io.sparklog.segment.Segment;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Signature;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A table about a topic: its commits, partitions or segments, in the state that a query finds. No task runs for it. */
final class TopicInfo implements SupportsRead, KeepsRecords {
  static final List<String> NAMES = List.of("commits", "partitions", "segments");

  private static final StructType COMMITS = new StructType().add("version", DataTypes.LongType, false)
      .add("committed_at", DataTypes.TimestampType, false)
      .add("operation", DataTypes.StringType, false)
      .add("query", DataTypes.StringType)
      .add("epoch", DataTypes.LongType)
      .add("records", DataTypes.LongType, false)
      .add("segments", DataTypes.IntegerType, false)
      .add("removed", DataTypes.IntegerType, false);

  private static final StructType PARTITIONS = new StructType().add("partition", DataTypes.IntegerType, false)
      .add("start_offset", DataTypes.LongType, false)
      .add("end_offset", DataTypes.LongType, false)
      .add("segments", DataTypes.IntegerType, false)
      .add("batches", DataTypes.LongType, false)
      .add("bytes", DataTypes.LongType, false);

  private static final List<Signature.Column> SEGMENT_COLUMNS = Listings.columnsOfSegments();
  private static final StructType SEGMENTS = Answer.schema(SEGMENT_COLUMNS);

  private final String name;
  private final CatalogTarget place;
  private final StructType schema;

  TopicInfo(String name, CatalogTarget place) {
    this.name = name;
    this.place = place;
    this.schema = switch (place.about()) {
      case "commits" -> COMMITS;
      case "partitions" -> PARTITIONS;
      default -> SEGMENTS;
    };
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(schema.fields())
        .map(field -> Column.create(field.name(), field.dataType(), field.nullable()))
        .toArray(Column[]::new);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    SparkErrors.act(() -> requireNone(options));
    return () -> SparkErrors.run(() -> new Answer.Rows(schema, rows().toArray(InternalRow[]::new)));
  }

  @Override
  public PartlogException keepsRecords(String statement) {
    return Definition.refused(statement, name, "it shows what the log says of a topic", "Name a topic");
  }

  /** No option of a read has a meaning here. @throws PartlogException OPTION_UNKNOWN, OPTION_VALUE, OPTION_CONFLICT */
  private static void requireNone(CaseInsensitiveStringMap options) {
    Options.of(options.asCaseSensitiveMap(), Options.Side.READ);
    options.keySet().stream().filter(Options::isOnlyOfReads).findFirst().ifPresent(key -> {
      throw PartlogException.of("OPTION_CONFLICT", "options", "`" + key + "` and the name of the table", "reason",
          "the table shows all that the log says of a topic");
    });
  }

  private List<InternalRow> rows() throws IOException {
    Root root = place.root();
    State state = root.state(place.topic());
    List<InternalRow> rows = new ArrayList<>();
    if (schema == COMMITS) {
      TopicLog log = root.topic(place.topic());
      log.newest(state, version -> {
        rows.add(commit(version));
        return false;
      });
      Collections.reverse(rows);
      return rows;
    }
    if (schema == SEGMENTS) {
      return Listings.segments(root, state).stream().map(segment -> Answer.row(SEGMENT_COLUMNS, segment)).toList();
    }
    for (int partition = 0; partition < state.partitions(); partition++) {
      List<Segment> segments = state.segments(partition);
      rows.add(new GenericInternalRow(new Object[] {partition, state.start(partition), state.end(partition), segments.size(),
          segments.stream().mapToLong(Segment::batches).sum(), segments.stream().mapToLong(Segment::bytes).sum()}));
    }
    return rows;
  }

  private static InternalRow commit(Version version) {
    boolean applies = version.query() != null;
    return new GenericInternalRow(new Object[] {version.version(), time(version.head().time()), text(version.operation()),
        applies ? text(version.query().id()) : null, applies ? version.query().epoch() : null, version.records(), version.added().size(),
        version.removed().size()});
  }

  private static UTF8String text(String text) {
    return UTF8String.fromString(text);
  }

  /** Null where no record has a time. */
  private static Long time(long millis) {
    return millis < 0 ? null : Long.valueOf(Times.micros(millis));
  }

  @Override
  public String toString() {
    return name;
  }
}
