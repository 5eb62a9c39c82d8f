/**
 * The offsets that a read asks for: options in ({@link io.sparklog.query.Subscription}, {@link io.sparklog.query.OffsetBounds}), ranges of
 * offsets out. The package {@link io.sparklog.read} reads them.
 */
package io.sparklog.query;
