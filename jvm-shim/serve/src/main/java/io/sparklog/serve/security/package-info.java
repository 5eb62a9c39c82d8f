/** Listeners, their rights, and the verifiers of passwords. */
package io.sparklog.serve.security;
