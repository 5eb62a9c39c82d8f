/** The requests for records: produce, fetch with its sessions, and the offsets of a time. The package in it finds the bytes of a fetch. */
package io.sparklog.serve.records;
