/** Listeners and their rights. */
package io.sparklog.serve.security;
