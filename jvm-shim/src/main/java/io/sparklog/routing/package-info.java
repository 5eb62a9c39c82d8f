/**
 * Which partition a record goes to, now ({@link io.sparklog.routing.Router}) and at earlier versions ({@link
 * io.sparklog.routing.Routing}). FORMAT.md annex A.
 */
package io.sparklog.routing;
