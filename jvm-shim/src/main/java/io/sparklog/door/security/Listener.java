package io.sparklog.door.security;

/**
 * An address at which clients come in.
 *
 * @param name as clients never see it, such as PLAINTEXT: the name of the listener in the configuration
 */
public record Listener(String name, Rights rights) {}
