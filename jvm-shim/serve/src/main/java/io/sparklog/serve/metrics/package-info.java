/** Numbers of a process for Prometheus: counters that other packages keep, their text, and the page that has the text. */
package io.sparklog.serve.metrics;
