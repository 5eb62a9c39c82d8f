/**
 * The committed state of topics, and the commit. A {@link io.sparklog.log.TopicLog} finds the newest {@link io.sparklog.log.State} of a
 * topic; a {@link io.sparklog.log.Committer} puts the next {@link io.sparklog.log.Version}, for any {@link io.sparklog.log.Change}.
 * FORMAT.md sections 5 to 7, and 9.
 */
package io.sparklog.log;
