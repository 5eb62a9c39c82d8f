package io.sparklog.kit;

import net.jqwik.api.lifecycle.AroundPropertyHook;
import net.jqwik.api.lifecycle.PropertyExecutionResult;
import net.jqwik.api.lifecycle.PropertyExecutor;
import net.jqwik.api.lifecycle.PropertyLifecycleContext;

/** Properties begin where {@link Seed} says, and take a third of their tries in {@code make test}. One that fails prints its seed. */
public final class SeededProperties implements AroundPropertyHook {
  @Override
  public PropertyExecutionResult aroundProperty(PropertyLifecycleContext context, PropertyExecutor property) {
    context.attributes().setSeed(Long.toString(Seed.draw()));
    context.attributes().tries().ifPresent(tries -> context.attributes().setTries(tries / Seed.either(3, 1)));
    return property.execute();
  }
}
