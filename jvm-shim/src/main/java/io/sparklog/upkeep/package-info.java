/**
 * The work that follows a commit, without Spark: replaced data files and expired records go, and old checkpoints and version files are
 * deleted. It calls {@link io.sparklog.merge} and {@link io.sparklog.view}. FORMAT.md section 12.
 */
package io.sparklog.upkeep;
