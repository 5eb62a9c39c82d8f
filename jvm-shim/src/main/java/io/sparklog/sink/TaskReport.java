package io.sparklog.sink;

import io.sparklog.write.Piece;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The pieces that a task wrote, by topic: Spark carries them to the driver. */
record TaskReport(Map<String, List<Piece>> pieces) implements WriterCommitMessage {}
