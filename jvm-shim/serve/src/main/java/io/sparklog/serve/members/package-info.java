/** The members of a cluster, which are the servers of a root: who lives, and who coordinates a group. */
package io.sparklog.serve.members;
