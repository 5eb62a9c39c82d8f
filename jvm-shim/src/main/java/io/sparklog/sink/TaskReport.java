package io.sparklog.sink;

import io.sparklog.write.Piece;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task wrote, by topic: what Spark carries to the driver. */
record TaskReport(Map<String, List<Piece>> pieces) implements WriterCommitMessage {}
