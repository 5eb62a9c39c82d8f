package io.sparklog.sim;

import io.sparklog.storage.MemoryStore;
import java.io.IOException;
import java.util.Collection;
import java.util.Optional;

/** How a store may break its contract: the simulation must find each of these. */
enum Lie {
  NONE {
    @Override
    <T> T effect(World world, String call, String name, MemoryStore.Act<T> act) throws IOException {
      return act.on(world.disk);
    }
  },
  /** A file that was put is not listed for a while. */
  LISTS_LATE {
    @Override
    <T> T effect(World world, String call, String name, MemoryStore.Act<T> act) throws IOException {
      T found = NONE.effect(world, call, name, act);
      if (call.equals("link")) {
        world.changed(name);
      } else if (call.equals("list") && found instanceof Collection<?> names) {
        world.recent().forEach(recent -> names.remove(inFolder(name, recent)));
      }
      return found;
    }
  },
  /** A put takes the place of another. */
  REPLACES {
    @Override
    <T> T effect(World world, String call, String name, MemoryStore.Act<T> act) throws IOException {
      Optional<String> before = call.equals("link") && name.endsWith(".json") ? world.disk.peekTag(name) : Optional.empty();
      if (before.isPresent()) {
        world.disk.delete(name);
        T done = NONE.effect(world, call, name, act);
        world.truth.replaced(name, before.get());
        return done;
      }
      return NONE.effect(world, call, name, act);
    }
  },
  /** A put that failed takes effect after its caller heard so. */
  ACTS_LATE {
    @Override
    <T> T effect(World world, String call, String name, MemoryStore.Act<T> act) throws IOException {
      if (call.equals("link") && name.startsWith(Truth.FOLDER) && name.endsWith(".json") && world.chance(8)) {
        world.later(() -> {
          act.on(world.disk);
          world.truth.linked(name);
        });
        throw new IOException("a fault");
      }
      return NONE.effect(world, call, name, act);
    }
  },
  /** A flush makes nothing durable. */
  FORGETS {
    @Override
    <T> T effect(World world, String call, String name, MemoryStore.Act<T> act) throws IOException {
      return call.equals("flush") && world.chance(4) ? null : NONE.effect(world, call, name, act);
    }
  };

  /** Something that is put off. */
  interface Effect {
    void run() throws IOException;
  }

  /** Does an act, and answers it, in this way. */
  abstract <T> T effect(World world, String call, String name, MemoryStore.Act<T> act) throws IOException;

  /** The last part of {@code name} if it is in the folder; otherwise null. */
  private static String inFolder(String folder, String name) {
    int slash = name.lastIndexOf('/');
    return name.substring(0, slash).equals(folder) ? name.substring(slash + 1) : null;
  }
}
