"""Mistakes of SQL: `mistaken` is a table of that topic. Procedures are called on its root."""

from mistakes import Mistake
from mistakes.writing import NOT_ASKED, SPARKS_SCHEMA

OPTIONS = "USING partlog OPTIONS (path '{root}', topic 't')"

OURS = [
    (
        "INSERT without columns",
        "INSERT INTO mistaken VALUES ('a', 'b')",
        "COLUMN_REQUIRED",
        "col1, col2",
        "name the columns: INSERT INTO t",
    ),
    ("INSERT of a number", "INSERT INTO mistaken (key, value) VALUES (1, 'b')", "COLUMN_TYPE", "`key`", "CAST(key AS STRING)"),
    ("INSERT OVERWRITE", "INSERT OVERWRITE mistaken (key, value) VALUES ('a', 'b')", "SAVE_MODE", "overwrite", "in SQL with INSERT INTO"),
    ("an unknown procedure", "CALL partlog.compact(root => '{root}')", "PROCEDURE_NOT_FOUND", "compact", "one of these procedures: topics"),
    (
        "a namespace",
        "CALL partlog.system.vacuum(root => '{root}')",
        "PROCEDURE_NOT_FOUND",
        "system.vacuum",
        "one of these procedures: topics",
    ),
    (
        "a short interval",
        "CALL partlog.vacuum('{root}', older_than => INTERVAL '1' SECOND)",
        "ARGUMENT_VALUE",
        "`older_than`",
        "at least PT1H",
    ),
    ("a missing topic", "CALL partlog.segments('{root}', 'T')", "TOPIC_NOT_FOUND", "Topic T", "Check the name"),
    ("a missing root", "CALL partlog.topics('{tmp}/rooot')", "ROOT_NOT_FOUND", "/rooot", "Check the path"),
    ("an empty root", "CALL partlog.topics('')", "ARGUMENT_VALUE", "`root`", "it must not be empty"),
    ("NULL", "CALL partlog.topics(NULL)", "ARGUMENT_VALUE", "`root`", "it must have a value"),
    (
        "offsets too high",
        "CALL partlog.delete_records('{root}', 't', '{{\"0\":99}}')",
        "OFFSETS_OUT_OF_RANGE",
        "partition 0",
        "Give the first",
    ),
    (
        "by topic",
        "CALL partlog.delete_records('{root}', 't', '{{\"t\":{{\"0\":1}}}}')",
        "ARGUMENT_VALUE",
        "`offsets`",
        "which must be 0 or more",
    ),
    ("SHOW TABLES", "SHOW TABLES IN partlog", "CATALOG_WITHOUT_ROOT", "does not have a root", "Name the root before the topic"),
    ("a topic as a table", "SELECT * FROM partlog.t", "CATALOG_WITHOUT_ROOT", "t does not name one", "Name the root before the topic"),
    (
        "CREATE TABLE in the catalog",
        f"CREATE TABLE partlog.t {OPTIONS}",
        "CATALOG_WITHOUT_ROOT",
        "t does not name one",
        "Name the root before the topic",
    ),
    ("fewer partitions", "CALL partlog.add_partitions('{root}', 't', 2)", "ARGUMENT_VALUE", "`partitions`", "it must not be less"),
    (
        "partitions as config",
        "CALL partlog.set_config('{root}', 't', map('partitions', '8'))",
        "OPTION_VALUE",
        "`partitions`",
        "add_partitions",
    ),
    ("a unit", "CALL partlog.set_config('{root}', 't', map('retention.ms', '7d'))", "OPTION_VALUE", "`retention.ms`", "in milliseconds"),
    (
        "DELETE",
        "DELETE FROM mistaken",
        "STATEMENT_UNSUPPORTED",
        "DELETE is not supported for partlog /",
        "CALL partlog.delete_records",
    ),
    ("DELETE of a part", "DELETE FROM mistaken WHERE partition = 0", "STATEMENT_UNSUPPORTED", "DELETE is not", "by its name in a catalog"),
    ("TRUNCATE", "TRUNCATE TABLE mistaken", "STATEMENT_UNSUPPORTED", "TRUNCATE TABLE is not", "by its name in a catalog"),
    ("a list of weights", "CALL partlog.reroute('{root}', 't', '[1,2]')", "ARGUMENT_VALUE", "`weights`", 'such as {"0":2,"1":1}'),
    ("a rebuild to a topic", "CALL partlog.rebuild('{root}', 't', 't', 3)", "TOPIC_EXISTS", "Topic t already", "Choose another name"),
    ("CREATE TABLE again", "CREATE TABLE partlog.`{root}`.t", "TOPIC_EXISTS", "Topic t already exists under", "Choose another name"),
    (
        "a broker's unit",
        "CALL partlog.set_config('{root}', 't', map('retention.hours', '7'))",
        "OPTION_UNKNOWN",
        "`retention.hours`",
        "Did you mean `retention.ms`?",
    ),
    (
        "a typo",
        "CALL partlog.set_config('{root}', 't', map('retention', '7'))",
        "OPTION_UNKNOWN",
        "`retention`",
        "Did you mean `retention.ms`?",
    ),
]

SPARKS = [
    ("columns", f"CREATE TABLE mistaken_new (value STRING) {OPTIONS}", SPARKS_SCHEMA, "D", "Please remove the schema"),
    ("a table from a query", f"CREATE TABLE mistaken_new {OPTIONS} AS SELECT 'b' AS value", SPARKS_SCHEMA, "D", "Please remove the schema"),
    ("UPDATE", "UPDATE mistaken SET value = 'x'", "UNSUPPORTED_FEATURE.TABLE_OPERATION", "B", "does not support UPDATE TABLE"),
    ("VERSION AS OF", "SELECT * FROM mistaken VERSION AS OF 0", "UNSUPPORTED_FEATURE.TIME_TRAVEL", "B", "Time travel"),
    (
        "a number for an interval",
        "CALL partlog.vacuum('{root}', NULL, 2)",
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        "B",
        "third parameter",
    ),
]

MERGE = "MERGE INTO mistaken USING (SELECT 'a' AS k) AS s ON topic = s.k WHEN MATCHED THEN UPDATE SET value = X'00'"
# Spark's answers to what SQL can do with other tables.
NOT_OF_A_LOG = [
    ("MERGE", MERGE, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "C", "`topic` cannot be resolved"),
    ("DROP COLUMN", "ALTER TABLE mistaken DROP COLUMN value", "FIELD_NOT_FOUND", "C", "No such struct field `value` in ."),
    ("RENAME COLUMN", "ALTER TABLE mistaken RENAME COLUMN value TO v", "FIELD_NOT_FOUND", "C", "No such struct field `value` in ."),
    ("DESCRIBE HISTORY", "DESCRIBE HISTORY mistaken", "TABLE_OR_VIEW_NOT_FOUND", "C", "`HISTORY` cannot be found"),
    (
        "SHOW PARTITIONS",
        "SHOW PARTITIONS mistaken",
        "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        "B",
        "does not support partition management",
    ),
    ("ANALYZE", "ANALYZE TABLE mistaken COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "B", "ANALYZE TABLE is not supported"),
    ("MSCK", "MSCK REPAIR TABLE mistaken", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "B", "MSCK REPAIR TABLE is not supported"),
    (
        "offset without backticks",
        "SELECT * FROM mistaken WHERE offset IN (1, 2)",
        "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE",
        "C",
        "(1 IN (2))",
    ),
    ("OPTIMIZE", "OPTIMIZE mistaken", "PARSE_SYNTAX_ERROR", "C", "OPTIMIZE"),
    ("VACUUM", "VACUUM mistaken", "PARSE_SYNTAX_ERROR", "C", "VACUUM"),
    ("TIMESTAMP AS OF", "SELECT * FROM mistaken TIMESTAMP AS OF '2024-01-01'", "UNSUPPORTED_FEATURE.TIME_TRAVEL", "B", "Time travel"),
    (
        "INSERT into a partition",
        "INSERT INTO mistaken PARTITION (partition = 0) (value) VALUES ('a')",
        "NON_PARTITION_COLUMN",
        "B",
        "cannot contain the non-partition column: `partition`",
    ),
    (
        "PARTITIONED BY",
        f"CREATE TABLE mistaken_new {OPTIONS} PARTITIONED BY (key)",
        "_LEGACY_ERROR_TEMP_1165",
        "C",
        "when the table schema is not defined",
    ),
    ("CALL without the catalog", "CALL vacuum('{root}')", "UNRESOLVED_ROUTINE", "B", "Cannot resolve routine `vacuum`"),
    ("CALL of a spelt catalog", "CALL partlogs.vacuum('{root}')", "UNRESOLVED_ROUTINE", "B", "Cannot resolve routine `partlogs`"),
    (
        "a word for a number of partitions",
        "CALL partlog.add_partitions('{root}', 't', 'eight')",
        "CAST_INVALID_INPUT",
        "A",
        "'eight'",
        "Correct the value as per the syntax",
    ),
]

TABLE = [
    *(
        Mistake(what, lambda w, s=sql: w.sql(s), id, tuple(says), grade, why="Spark's own, and without a word of the log")
        for what, sql, id, grade, *says in NOT_OF_A_LOG
    ),
    Mistake(
        "writeTo a path",
        lambda w: w.rows().writeTo(f"partlog.`{w.root}`").append(),
        "PARTLOG_TOPIC_REQUIRED",
        ("No topic is given", "STRING column `topic`"),
    ),
    Mistake(
        "writeTo(…).create()",
        lambda w: w.rows().writeTo("mistaken_new").using("partlog").option("path", f"{w.tmp}/new").option("topic", "t").create(),
        SPARKS_SCHEMA,
        ("Please remove the schema",),
        "D",
        why=f"{NOT_ASKED}; there is no schema to remove",
    ),
    Mistake(
        "INSERT into a table with a relative path",
        lambda w: w.relative_table(),
        right=bool,
        grade="C",
        why="Spark resolves it against its warehouse, and the first INSERT makes a root there",
    ),
    *(Mistake(what, lambda w, s=sql: w.sql(s), f"PARTLOG_{id}", tuple(says)) for what, sql, id, *says in OURS),
    *(Mistake(what, lambda w, s=sql: w.sql(s), id, tuple(says), grade, why=NOT_ASKED) for what, sql, id, grade, *says in SPARKS),
    Mistake(
        "an interval as Spark's functions take it",
        lambda w: w.sql("CALL partlog.vacuum('{root}', older_than => '2 days', dry_run => true)").collect(),
        right=lambda rows: [row["files"] for row in rows] == [0],
    ),
    Mistake(
        "a text that is no interval",
        lambda w: w.sql("CALL partlog.vacuum('{root}', NULL, 'two days')"),
        "PARTLOG_ARGUMENT_VALUE",
        ("`older_than`", "'two days'", "it must be an interval of days, hours"),
    ),
    Mistake(
        "an interval of months",
        lambda w: w.sql("CALL partlog.vacuum('{root}', older_than => '1 month')"),
        "PARTLOG_ARGUMENT_VALUE",
        ("`older_than`", "'1 month'", "it must be an interval of days, hours"),
    ),
    Mistake(
        "a missing argument",
        lambda w: w.sql("CALL partlog.topics()"),
        "REQUIRED_PARAMETER_NOT_FOUND",
        ("`topics`", "`root` is required", "Please update the routine call to supply an argument value"),
    ),
    Mistake(
        "a typo in an argument",
        lambda w: w.sql("CALL partlog.vacuum('{root}', older => INTERVAL '2' DAY)"),
        "UNRECOGNIZED_PARAMETER_NAME",
        ("`older`", "Did you mean", "`older_than`"),
    ),
    Mistake(
        "an argument twice",
        lambda w: w.sql("CALL partlog.topics(root => '{root}', root => '{root}')"),
        "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.DOUBLE_NAMED_ARGUMENT_REFERENCE",
        ("`root`", "Please assign a value only once"),
    ),
    Mistake("a word for a flag", lambda w: w.sql("CALL partlog.vacuum('{root}', dry_run => 'yes')").collect(), right=bool),
    *(
        Mistake(
            f"CREATE TABLE with {what}",
            lambda w, o=options: w.sql(f"CREATE TABLE mistaken_new USING partlog OPTIONS ({o})") and w,
            f"PARTLOG_{id}",
            tuple(says),
            "B",
            late=lambda w: w.sql("SELECT * FROM mistaken_new").collect(),
            why="Spark only stores the options: told by the first use",
        )
        for what, options, id, *says in (
            ("a typo in an option", "path '{root}', topics 't'", "OPTION_UNKNOWN", "`topics`", "Did you mean `topic`?"),
            ("an illegal topic", "path '{root}', topic 'bad name!'", "TOPIC_NAME_ILLEGAL", "'bad name!'", "Use 1 to 249 of the characters"),
            ("no path", "topic 't'", "ROOT_REQUIRED", "No root is given", "for a table"),
        )
    ),
    Mistake(
        "ADD COLUMN",
        lambda w: w.add_column(),
        right=lambda columns: "x" not in columns,
        grade="C",
        why="Spark's: it alters its own catalog, and the topic has the columns that it had",
    ),
]
