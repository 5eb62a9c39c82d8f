package io.sparklog.catalog;

import io.sparklog.log.TopicConfig;
import io.sparklog.log.ReadableTopics;
import io.sparklog.spark.Columns;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The words of CREATE TABLE and ALTER TABLE about a topic. All that it does not have is refused: nothing is taken without effect. */
final class Definition {
  private static final String CREATE = "CREATE TABLE";

  /** Properties of Spark that the user did not give: the default format, and the user's name. */
  private static final Set<String> SPARKS = Set.of(TableCatalog.PROP_PROVIDER, TableCatalog.PROP_OWNER);

  private Definition() {}

  /**
   * The configuration of the topic that CREATE TABLE makes: all of it.
   *
   * @throws PartlogException STATEMENT_UNSUPPORTED, TOPIC_NAME_ILLEGAL, COLUMN_UNKNOWN, COLUMN_TYPE, OPTION_UNKNOWN, OPTION_VALUE
   */
  static Map<String, String> create(String name, CatalogTarget place, TableInfo info) {
    Map<String, String> config = new HashMap<>(Options.ofTopic(properties(name, place, info, false)));
    for (Column column : info.columns()) {
      require(name, column);
      String key = typeKey(column.name());
      if (key != null) {
        String type = DataTypes.StringType.equals(column.dataType()) ? "string" : "binary";
        String given = config.putIfAbsent(key, type);
        if (given != null && !given.equals(type)) {
          throw refused(CREATE + " with `" + key + "` = " + given, name, "its column " + column.name() + " is " + column.dataType().sql(),
              "Leave the property out");
        }
        config.remove(key, "binary");
      }
    }
    return Options.of(config, Options.Side.WRITE).topicConfig();
  }

  /**
   * The options of the write that CREATE TABLE … AS SELECT, or a save, begins a topic with. The write checks them and the columns.
   *
   * @param isSave whether it is a save in the format. Such a save takes options of reads too, and has Kafka's columns, also if its data are
   *     text. Otherwise, columns of STRING make the topic's columns STRING
   * @throws PartlogException STATEMENT_UNSUPPORTED, TOPIC_NAME_ILLEGAL, COLUMN_TYPE, OPTION_UNKNOWN, OPTION_VALUE
   */
  static Map<String, String> createAs(String name, CatalogTarget place, TableInfo info, boolean isSave) {
    Map<String, String> options = properties(name, place, info, true);
    if (isSave || place.topic() == null) {
      return options;
    }
    options.keySet().stream().filter(Options::isOnlyOfReads).findFirst().ifPresent(option -> {
      throw refused(CREATE + " … OPTIONS ('" + option + "' …)", name, "it is an option of reads", "Leave it out");
    });
    for (Column column : info.columns()) {
      String key = typeKey(column.name());
      if (key != null && column.dataType() instanceof StringType text) {
        if (!text.isUTF8BinaryCollation()) {
          throw wrongType(column.name(), text, "STRING or BINARY", "CAST(" + column.name() + " AS STRING COLLATE UTF8_BINARY)");
        }
        options.putIfAbsent(key, "string");
      }
    }
    return options;
  }

  private static String typeKey(String column) {
    return column.equalsIgnoreCase(Columns.KEY)
        ? TopicConfig.KEY_TYPE
        : column.equalsIgnoreCase(Columns.VALUE) ? TopicConfig.VALUE_TYPE : null;
  }

  /** @param ofWrite whether OPTIONS may have options of a write too; TBLPROPERTIES have only options of the topic */
  private static Map<String, String> properties(String name, CatalogTarget place, TableInfo info, boolean ofWrite) {
    if (place.topic() != null) {
      ReadableTopics.requireLegal(place.topic());
      ReadableTopics.requireOfPrograms(place.topic(), place.root().location());
    }
    if (info.partitions().length > 0) {
      throw refused(CREATE + " … PARTITIONED BY or CLUSTERED BY", name, "the key, or the column partition, says where a record goes",
          "Give the number of partitions: TBLPROPERTIES ('partitions' = '16')");
    }
    if (info.constraints().length > 0) {
      throw refused(CREATE + " with a constraint", name, "a topic does not check any", "Leave it out");
    }
    Map<String, String> properties = new HashMap<>();
    info.properties().forEach((key, value) -> {
      boolean isOption = info.properties().containsKey(TableCatalog.OPTION_PREFIX + key);
      switch (key) {
        case TableCatalog.PROP_LOCATION, "path" -> {
          String root = place.root().store().root();
          if (!Stores.isAt(place.root().store(), value)) {
            throw refused(CREATE + " … LOCATION '" + value + "'", name, "its root is " + root, "Leave it out, or name the root");
          }
        }
        case TableCatalog.PROP_COMMENT -> throw refused(CREATE + " … COMMENT", name, "a topic does not keep one", "Leave it out");
        case TableCatalog.PROP_COLLATION ->
          throw refused(CREATE + " … DEFAULT COLLATION", name, "text is compared as its bytes are", "Leave it out");
        case TableCatalog.PROP_EXTERNAL ->
          throw refused("CREATE EXTERNAL TABLE", name, "DROP TABLE deletes the topic", "Leave EXTERNAL out");
        default -> {
          // Spark passes an option twice.
          boolean isAgain = key.startsWith(TableCatalog.OPTION_PREFIX)
              && info.properties().containsKey(key.substring(TableCatalog.OPTION_PREFIX.length()));
          if (!SPARKS.contains(key) && !isAgain && !key.equals(TableCatalog.PROP_IS_MANAGED_LOCATION)
              && !key.equals(TableCatalog.PROP_TABLE_TYPE)) {
            properties.putAll(ofWrite && isOption ? Map.of(key, value) : Options.ofTopic(Map.of(key, value)));
          }
        }
      }
    });
    return properties;
  }

  /** Refuses a column that the topic would not have as it is written. */
  private static void require(String name, Column column) {
    StructType columns = Columns.read(true);
    StructField own = Arrays.stream(columns.fields())
        .filter(field -> field.name().equalsIgnoreCase(column.name()))
        .findFirst()
        .orElseThrow(() -> PartlogException.of("COLUMN_UNKNOWN", "column", column.name(), "known", Columns.WRITTEN));
    DataType type = column.dataType();
    boolean mayBeText = typeKey(own.name()) != null;
    if (!DataType$.MODULE$.equalsIgnoreNullability(own.dataType(), type) && !(mayBeText && DataTypes.StringType.equals(type))) {
      String expected = mayBeText ? "STRING or BINARY" : own.dataType().sql();
      throw wrongType(column.name(), type, expected, own.name() + " " + (mayBeText ? "STRING" : expected));
    }
    if (!column.nullable() && own.nullable() || column.comment() != null || column.defaultValue() != null
        || column.generationExpression() != null || column.identityColumnSpec() != null) {
      throw refused(CREATE + " with NOT NULL, COMMENT or DEFAULT for the column " + column.name(), name, "a topic does not keep it",
          "Write " + own.name() + " " + type.sql());
    }
  }

  private static PartlogException wrongType(String column, DataType found, String expected, String example) {
    return PartlogException.of("COLUMN_TYPE", "column", column, "found", found.sql(), "expected", expected, "example", example);
  }

  /**
   * The changes of the configuration that ALTER TABLE asks for.
   *
   * @throws PartlogException STATEMENT_UNSUPPORTED, OPTION_UNKNOWN, OPTION_VALUE
   */
  static Map<String, String> alter(String name, CatalogTarget place, List<TableChange> changes) {
    Map<String, String> config = new HashMap<>();
    for (TableChange change : changes) {
      if (change instanceof TableChange.SetProperty set && !isReserved(set.property())) {
        config.putAll(Options.ofTopic(Map.of(set.property(), set.value())));
      } else if (change instanceof TableChange.RemoveProperty remove && !isReserved(remove.property())) {
        if (isFixed(remove.property())) {
          throw refused("UNSET TBLPROPERTIES ('" + remove.property() + "')", name, "its default would move keys",
              "Leave it out; SET TBLPROPERTIES ('partitions' = '16') adds partitions");
        }
        config.putAll(Options.defaultOfTopic(remove.property()));
      } else {
        throw refusedPart(name, change);
      }
    }
    return config;
  }

  /** By what ALTER TABLE asks of the topic. */
  private static PartlogException refusedPart(String name, TableChange change) {
    String fixed = "the columns of a topic are fixed";
    if (change instanceof TableChange.AddColumn add) {
      String column = String.join(".", add.fieldNames());
      return refused("ALTER TABLE … ADD COLUMN " + column, name, fixed, "Put the field into the value, and the column into a view:"
          + " SELECT from_json(value, '" + column + " " + add.dataType().sql() + "') AS data");
    }
    if (change instanceof TableChange.DeleteColumn delete) {
      return refused("ALTER TABLE … DROP COLUMN " + String.join(".", delete.fieldNames()), name, fixed,
          "Leave the column out in a query or in a view");
    }
    if (change instanceof TableChange.ColumnChange column) {
      return refused("ALTER TABLE … ALTER COLUMN or RENAME COLUMN " + String.join(".", column.fieldNames()), name, fixed,
          "Name, cast or describe the column in a view; SET TBLPROPERTIES ('key.type' = 'string', 'value.type' = 'string') shows text");
    }
    if (change instanceof TableChange.SetProperty set && set.property().equals(TableCatalog.PROP_LOCATION)) {
      return refused("ALTER TABLE … SET LOCATION '" + set.value() + "'", name, "a topic stays in its root",
          "Copy it to another root: CREATE TABLE … AS SELECT");
    }
    String property = change instanceof TableChange.SetProperty set
        ? set.property()
        : change instanceof TableChange.RemoveProperty remove ? remove.property() : null;
    if (property != null) {
      return refused("ALTER TABLE or COMMENT, which sets or unsets the " + property + ",", name, "a topic does not keep one",
          "Leave it out; its TBLPROPERTIES are those that SHOW TBLPROPERTIES lists");
    }
    return refused("This ALTER TABLE (" + change.getClass().getSimpleName() + ")", name, "a topic has nothing of that kind",
        "SET TBLPROPERTIES and UNSET TBLPROPERTIES change its configuration");
  }

  /** Whether a topic keeps it for ever, or may only raise it: the default would move keys. */
  private static boolean isFixed(String property) {
    return property.equalsIgnoreCase(TopicConfig.PARTITIONS) || property.equalsIgnoreCase(TopicConfig.PARTITIONER);
  }

  private static boolean isReserved(String property) {
    return Set
        .of(TableCatalog.PROP_COMMENT, TableCatalog.PROP_LOCATION, TableCatalog.PROP_PROVIDER, TableCatalog.PROP_OWNER,
            TableCatalog.PROP_COLLATION)
        .contains(property);
  }

  static PartlogException refused(String statement, String table, String reason, String way) {
    return PartlogException.of("STATEMENT_UNSUPPORTED", "statement", statement, "table", table, "reason", reason, "way", way);
  }
}
