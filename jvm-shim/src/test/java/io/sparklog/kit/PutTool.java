package io.sparklog.kit;

import io.sparklog.segment.Names;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.NoAnswerException;
import io.sparklog.storage.PutObserver;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Races for version files, each of which every thread of every process puts: {@code root=… writer=<number of this process> threads=…
 * versions=… [<setting of Hadoop>=…]}.
 *
 * <p>Waits for a line of its input, then prints how each put ended, {@code <outcome> <writer>.<thread>.<version>}:
 *
 * <ul>
 * <li>{@code won}, {@code lost}: the version is this put's, or another's; after a failure, what the file has tells
 * <li>{@code unknown}: no answer came, and the file is absent
 * <li>{@code failed}: the store said that the put is over, and the file is absent
 * </ul>
 *
 * <p>After the last two the same put is tried again, up to {@link #TRIES_MAX} times.
 */
public final class PutTool {
  private static final int TRIES_MAX = 5;

  private final LogStore store;
  private final String writer;

  private PutTool(LogStore store, String writer) {
    this.store = store;
    this.writer = writer;
  }

  public static void main(String[] words) throws Exception {
    Map<String, String> arguments = new HashMap<>();
    TreeMap<String, String> settings = new TreeMap<>();
    for (String word : words) {
      String[] parts = word.split("=", 2);
      (LogTool.isSetting(parts[0]) ? settings : arguments).put(parts[0], parts[1]);
    }
    PutTool tool = new PutTool(Stores.open(new StoreRef(arguments.get("root"), settings)), arguments.get("writer"));
    tool.store.createFolder(Names.topicFile("t", "tmp"));
    int versions = Integer.parseInt(arguments.get("versions"));
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(arguments.get("threads")); i++) {
      int thread = i;
      threads.add(new Thread(() -> tool.race(thread, versions)));
    }
    System.out.println("ready");
    System.in.read();
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println("over");
  }

  private void race(int thread, int versions) {
    for (int version = 0; version < versions; version++) {
      String put = writer + "." + thread + "." + version;
      boolean settled = false;
      for (int tries = 0; !settled && tries < TRIES_MAX; tries++) {
        String outcome = put(put, version);
        System.out.println(outcome + " " + put);
        settled = outcome.equals("won") || outcome.equals("lost");
      }
    }
  }

  private String put(String put, int version) {
    String file = Names.versionFile(version);
    String name = Names.topicFile("t", file);
    // Lengths differ, so that a part of one content is not the whole of another.
    byte[] content = (put + "\n").repeat(1 + Math.floorMod(put.hashCode(), 2_000)).getBytes(StandardCharsets.UTF_8);
    boolean over = true;
    try {
      store.putIfAbsent(name, Names.topicFile("t", Names.temporary("race-" + put, file)), content, PutObserver.NONE);
      return "won";
    } catch (FileAlreadyExistsException refused) {
      // By another's put, or by what this one did before.
    } catch (NoAnswerException unanswered) {
      over = false;
    } catch (IOException failed) {
      // It is over.
    }
    for (;;) {
      try {
        String there = new String(store.read(name, 1 << 20), StandardCharsets.UTF_8);
        return there.startsWith(put + "\n") ? "won" : "lost";
      } catch (NoSuchFileException absent) {
        return over ? "failed" : "unknown";
      } catch (IOException again) {
        // The content of the file decides, so it is read until it is known.
      }
    }
  }
}
