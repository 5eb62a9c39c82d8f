package io.sparklog.sim;

import io.sparklog.storage.MemoryStore;
import java.io.IOException;
import java.util.Collection;
import java.util.Optional;

/** How a store may break its contract: the simulation must find each of these. */
enum Lie {
  NONE {
    @Override
    <T> T effect(Process process, String call, String name, MemoryStore.Act<T> act) throws IOException {
      return act.on(process.world.disk);
    }
  },
  /** A file that was put is not listed for a while. */
  LISTS_LATE {
    @Override
    <T> T effect(Process process, String call, String name, MemoryStore.Act<T> act) throws IOException {
      T found = NONE.effect(process, call, name, act);
      if (call.equals("link")) {
        process.world.changed(name);
      } else if (call.equals("list") && found instanceof Collection<?> names) {
        process.world.recent().forEach(recent -> names.remove(inFolder(name, recent)));
      }
      return found;
    }
  },
  /** A put takes the place of another. */
  REPLACES {
    @Override
    <T> T effect(Process process, String call, String name, MemoryStore.Act<T> act) throws IOException {
      Optional<String> before = call.equals("link") && name.endsWith(".json") ? process.world.disk.peekTag(name) : Optional.empty();
      if (before.isPresent()) {
        process.world.disk.delete(name);
        T done = NONE.effect(process, call, name, act);
        process.world.truth.replaced(name, before.get());
        return done;
      }
      return NONE.effect(process, call, name, act);
    }
  },
  /** A put that failed takes effect after its caller heard that it is over. */
  ACTS_LATE {
    @Override
    <T> T effect(Process process, String call, String name, MemoryStore.Act<T> act) throws IOException {
      if (act instanceof MemoryStore.Put put && Truth.isVersion(name) && process.world.lied.isLate(put, process.world.chance(20))) {
        process.takesEffectLate(put, process.world.lied);
        throw new IOException("a fault");
      }
      return NONE.effect(process, call, name, act);
    }
  },
  /** A flush makes nothing durable. */
  FORGETS {
    @Override
    <T> T effect(Process process, String call, String name, MemoryStore.Act<T> act) throws IOException {
      return call.equals("flush") && process.world.chance(4) ? null : NONE.effect(process, call, name, act);
    }
  };

  /** Does an act, and answers it, in this way. */
  abstract <T> T effect(Process process, String call, String name, MemoryStore.Act<T> act) throws IOException;

  /** The last part of {@code name} if it is in the folder; otherwise null. */
  private static String inFolder(String folder, String name) {
    int slash = name.lastIndexOf('/');
    return name.substring(0, slash).equals(folder) ? name.substring(slash + 1) : null;
  }
}
