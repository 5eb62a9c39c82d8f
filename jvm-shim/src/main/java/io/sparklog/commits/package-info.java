/**
 * Commits for a process that stays: the batches of its clients, and the records of its coordinators. All that waits for a topic shares a
 * commit. The package uses no class of Kafka or of the network. FORMAT.md sections C.1 and C.2 and annex B.
 *
 * <pre>{@code
 *  a request, on a thread that may block     in order of arrival                one commit at a time
 *  Intake --> PreparedAppend                 TopicWriters --> TopicWriter       GroupCommit (a Change)
 *  +- AppendRefused                          +- CommitSettings  +- TopicUpkeep  +- DataFolder
 *                                            +- Resends                         +- log.Sequences
 *
 *  a coordinator of this process
 *  PreparedAppend with a Fence --> TopicWriters, as above
 * }</pre>
 */
package io.sparklog.commits;
