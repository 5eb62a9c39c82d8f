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
    ("INSERT OVERWRITE", "INSERT OVERWRITE mistaken (key, value) VALUES ('a', 'b')", "SAVE_MODE", "overwrite", "in SQL, INSERT INTO"),
    ("an unknown procedure", "CALL partlog.compact(root => '{root}')", "PROCEDURE_NOT_FOUND", "compact", "Its procedures: topics"),
    ("a namespace", "CALL partlog.system.vacuum(root => '{root}')", "PROCEDURE_NOT_FOUND", "system.vacuum", "Its procedures: topics"),
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
    ("fewer partitions", "CALL partlog.add_partitions('{root}', 't', 2)", "ARGUMENT_VALUE", "`partitions`", "it must be more"),
    (
        "partitions as config",
        "CALL partlog.set_config('{root}', 't', map('partitions', '8'))",
        "OPTION_VALUE",
        "`partitions`",
        "add_partitions",
    ),
    ("a unit", "CALL partlog.set_config('{root}', 't', map('retention.ms', '7d'))", "OPTION_VALUE", "`retention.ms`", "in milliseconds"),
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
    ("DELETE", "DELETE FROM mistaken", "_LEGACY_ERROR_TEMP_1121", "B", "Table does not support deletes: partlog /"),
    ("TRUNCATE", "TRUNCATE TABLE mistaken", "_LEGACY_ERROR_TEMP_1121", "B", "Table does not support truncates: partlog /"),
    (
        "a read of a path",
        "SELECT * FROM partlog.`{root}`",
        "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
        "C",
        "direct query on files: partlog",
    ),
    ("SHOW TABLES", "SHOW TABLES IN partlog", "MISSING_CATALOG_ABILITY.TABLES", "B", "Catalog partlog does not support tables"),
    ("VERSION AS OF", "SELECT * FROM mistaken VERSION AS OF 0", "UNSUPPORTED_FEATURE.TIME_TRAVEL", "B", "Time travel"),
    (
        "a number for an interval",
        "CALL partlog.vacuum('{root}', NULL, 2)",
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        "B",
        "third parameter",
    ),
]

TABLE = [
    *(Mistake(what, lambda w, s=sql: w.sql(s), f"PARTLOG_{id}", tuple(says)) for what, sql, id, *says in OURS),
    *(Mistake(what, lambda w, s=sql: w.sql(s), id, tuple(says), grade, why=NOT_ASKED) for what, sql, id, grade, *says in SPARKS),
    Mistake(
        "an interval as Spark's functions take it",
        lambda w: w.sql("CALL partlog.vacuum('{root}', older_than => '2 days')"),
        "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING_WITH_NOTICE",
        ("'2 days'", "`INTERVAL [+|-]'[+|-]d h:m:s.n' DAY TO SECOND`"),
        "C",
        why=f"{NOT_ASKED}, and speaks of a legacy setting",
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
            ("a relative path", "path 'log', topic 't'", "ROOT_NOT_FOUND", "/log", "Check the path"),
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
