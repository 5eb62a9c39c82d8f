/**
 * Reading, without Spark: which records are wanted ({@link io.sparklog.read.Selection}), how they are shared out to tasks ({@link
 * io.sparklog.read.SplitPlanner}), and how a task reads its share, checked ({@link io.sparklog.read.SplitReader}). FORMAT.md section 9.
 */
package io.sparklog.read;
