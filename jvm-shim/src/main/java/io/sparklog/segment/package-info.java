/**
 * Segments and their files, without commits: the fields of a segment, its batches, and reading them, checked ({@link
 * io.sparklog.segment.ExtentReader}). {@link io.sparklog.segment.Names} has the names of all files. FORMAT.md sections 2, 3 and 5.
 */
package io.sparklog.segment;
