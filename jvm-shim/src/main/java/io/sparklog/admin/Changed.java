package io.sparklog.admin;

import io.sparklog.log.State;

/** The states before and after a change that an operator asked for: the same one if nothing was to be changed. */
public record Changed(State was, State is) {}
