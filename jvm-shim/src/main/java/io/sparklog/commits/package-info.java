/**
 * Writes the batches that clients send, without a class of Kafka or of the network. FORMAT.md sections C.1 and C.2 and annex B.
 *
 * <pre>{@code
 *  a request, on a thread that may block     in order of arrival                one commit at a time
 *  Intake --> Accepted                       TopicWriters --> TopicWriter       GroupCommit (a Change)
 *  +- Refused, Refusal                       +- Means         +- Arrival        +- DataFolder
 *                                            +- Terms         +- TopicUpkeep    +- log.Sequences
 * }</pre>
 */
package io.sparklog.commits;
