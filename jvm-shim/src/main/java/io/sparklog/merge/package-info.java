/**
 * Few segments of many, without Spark: the choice of neighbours that become one segment, and the commit that replaces them. FORMAT.md
 * section 12 and annex E.
 */
package io.sparklog.merge;
