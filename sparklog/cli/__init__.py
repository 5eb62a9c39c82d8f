"""The command line: `sparklog COMMAND ROOT …`. It reads roots, and moves groups; it never writes to a topic."""
