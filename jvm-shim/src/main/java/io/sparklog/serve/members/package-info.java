/** The cluster as clients see it: topics with their ids, and the servers of a root. */
package io.sparklog.door.cluster;
