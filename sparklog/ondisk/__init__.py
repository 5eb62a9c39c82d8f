"""A second reader of the format, written from FORMAT.md alone. It needs neither a JVM nor PySpark, and it never writes."""
