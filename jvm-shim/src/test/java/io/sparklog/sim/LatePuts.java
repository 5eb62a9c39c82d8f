package io.sparklog.sim;

import io.sparklog.storage.MemoryStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Puts that are under way when their callers hear of them no more: each takes effect at a later act, or never. */
final class LatePuts {
  /** The effect of a put. */
  interface Effect {
    void run() throws IOException;
  }

  private record Late(long act, Effect effect) {}

  private final World world;
  private final List<Late> late = new ArrayList<>();
  /** For the temporary file of a writer's version: whether the network stays away for all its puts, or comes back at each fourth. */
  private final Map<String, Boolean> away = new HashMap<>();

  LatePuts(World world) {
    this.world = world;
  }

  /** Whether the network does not answer a put: because it goes away now, as {@code begins} says, or is still away for this writer. */
  boolean isLate(MemoryStore.Put put, boolean begins) {
    Boolean stays = away.get(put.temporary());
    if (stays == null && begins) {
      away.put(put.temporary(), world.chance(2));
      return true;
    }
    return stays != null && world.faulty && (stays || !world.chance(4));
  }

  /** Lets a put take effect soon, late, or never. */
  void add(Effect effect) {
    if (!world.chance(4)) {
      late.add(new Late(world.acts() + (long) Math.pow(2, world.random.nextDouble() * 10), effect));
    }
  }

  /** One of those whose time has come takes effect. */
  void act() {
    for (int n = 0; n < late.size(); n++) {
      if (late.get(n).act <= world.acts()) {
        land(late.remove(n));
        return;
      }
    }
  }

  /** Each takes effect now, or never. */
  void settle() {
    for (; !late.isEmpty(); late.remove(0)) {
      if (world.chance(2)) {
        land(late.get(0));
      }
    }
  }

  private static void land(Late late) {
    try {
      late.effect.run();
    } catch (IOException refused) {
      // A file is there, or the folder is gone: it has no effect.
    }
  }
}
