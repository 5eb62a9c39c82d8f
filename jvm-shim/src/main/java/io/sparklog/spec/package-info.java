/**
 * Options and errors. Both are declared in {@code sparklog/spec/*.json}, which Python reads too; classes here check what users give against
 * these files, and fill in the texts of errors. {@link io.sparklog.spec.Warnings} logs facts that are not errors. Every other package may
 * use this one.
 */
package io.sparklog.spec;
