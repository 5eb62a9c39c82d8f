/**
 * The procedures behind {@code CALL partlog.…}: each procedure checks its arguments, and calls {@link io.sparklog.admin}, {@link
 * io.sparklog.merge} or {@link io.sparklog.upkeep}.
 */
package io.sparklog.procedures;
