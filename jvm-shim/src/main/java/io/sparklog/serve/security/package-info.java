/** Listeners and their rights. */
package io.sparklog.door.security;
