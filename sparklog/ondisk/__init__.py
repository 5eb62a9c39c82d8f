"""A second reader of the format, written from FORMAT.md alone: it runs without a JVM and without PySpark, and writes nothing."""
