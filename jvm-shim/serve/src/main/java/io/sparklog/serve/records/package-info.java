/** The requests for records: produce, fetch with its sessions, and the offsets of a time. The two packages in it do the work. */
package io.sparklog.serve.records;
