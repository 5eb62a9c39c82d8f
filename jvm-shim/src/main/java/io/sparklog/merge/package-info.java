/**
 * Few segments of many, without Spark: which neighbours become one, and the commit that puts one in their place. FORMAT.md section 14.
 */
package io.sparklog.merge;
