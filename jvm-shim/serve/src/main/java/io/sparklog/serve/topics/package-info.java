/** The requests about topics, their settings and the cluster, and the topics of a root by name and by id. */
package io.sparklog.serve.topics;
