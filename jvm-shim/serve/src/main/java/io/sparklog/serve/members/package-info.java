/** The members of a cluster, which are the servers of a root: which of them live, lead a topic, and coordinate a group. */
package io.sparklog.serve.members;
