package io.sparklog.sink;

import io.sparklog.write.TopicReport;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The reports of a task by topic, which Spark carries to the driver. */
record TaskReport(Map<String, TopicReport> topics) implements WriterCommitMessage {}
