/**
 * Few segments of many, without Spark: the choice of neighbours that become one segment, and the commit that replaces them. FORMAT.md
 * section 14.
 */
package io.sparklog.merge;
