/** The requests of groups and their members, and the metrics of groups. The package in it has the groups. */
package io.sparklog.serve.coordinator;
