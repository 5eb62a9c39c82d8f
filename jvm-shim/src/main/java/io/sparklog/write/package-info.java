/**
 * Writing, without Spark: record batches into data files, and one commit for each topic. A task fills a {@link
 * io.sparklog.write.TaskWriter}, which reports {@link io.sparklog.write.Piece pieces}; the driver hands those to {@link
 * io.sparklog.write.TopicCommits}. FORMAT.md section 7.
 */
package io.sparklog.write;
