package io.sparklog.storage;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.file.ClosedWatchServiceException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Tells at once of a file that appears in a folder of a disk, by the kernel of Linux. One thread serves the whole process, and begins with
 * the first folder.
 */
final class FolderWatch {
  /** The file systems whose kernel sees each change: a change that another machine makes, or a server in user space, shows nowhere here. */
  private static final Set<String> EXACT = Set.of("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs");

  /** Linux allows a user so many folders, of all his processes, on a small machine: 8,192. */
  private static final int FOLDERS_MAX = 1_024;

  private static final Optional<FolderWatch> OF_THIS_PROCESS = begin();

  private final WatchService events;

  /** By folder, the tasks to run. A task whose owner is gone is dropped. */
  private final Map<WatchKey, List<WeakReference<Runnable>>> tasks = new HashMap<>();

  private FolderWatch(WatchService events) {
    this.events = events;
  }

  private static Optional<FolderWatch> begin() {
    if (!System.getProperty("os.name").equals("Linux")) {
      return Optional.empty(); // Java lists the folder there, every few seconds.
    }
    try {
      FolderWatch watch = new FolderWatch(FileSystems.getDefault().newWatchService());
      Thread thread = new Thread(watch::run, "partlog-folders");
      thread.setDaemon(true);
      thread.start();
      return Optional.of(watch);
    } catch (IOException e) {
      return Optional.empty(); // The user has no instance left.
    }
  }

  /** As {@link ReadStore#watch}. */
  static boolean begin(Path folder, Runnable task) {
    return OF_THIS_PROCESS.isPresent() && OF_THIS_PROCESS.get().add(folder, task);
  }

  private boolean add(Path folder, Runnable task) {
    try {
      if (!EXACT.contains(Files.getFileStore(folder).type())) {
        return false;
      }
      synchronized (this) {
        if (tasks.size() >= FOLDERS_MAX) {
          tidy();
        }
        if (tasks.size() >= FOLDERS_MAX) {
          return false;
        }
        WatchKey key = folder.register(events, StandardWatchEventKinds.ENTRY_CREATE);
        List<WeakReference<Runnable>> of = tasks.computeIfAbsent(key, first -> new CopyOnWriteArrayList<>());
        of.removeIf(kept -> kept.get() == null);
        if (of.stream().noneMatch(kept -> kept.get() == task)) {
          of.add(new WeakReference<>(task));
        }
        return true;
      }
    } catch (IOException e) {
      return false; // The folder does not exist, or the user watches too many.
    }
  }

  private void tidy() {
    tasks.entrySet().removeIf(each -> {
      each.getValue().removeIf(task -> task.get() == null);
      if (each.getValue().isEmpty()) {
        each.getKey().cancel();
      }
      return each.getValue().isEmpty();
    });
  }

  private void run() {
    while (true) {
      try {
        WatchKey key = events.take();
        key.pollEvents(); // Before the reset: a file that appears later signals the key again.
        List<WeakReference<Runnable>> due;
        synchronized (this) {
          due = tasks.getOrDefault(key, List.of());
          if (!key.reset()) {
            tasks.remove(key); // The folder is gone.
          }
        }
        for (WeakReference<Runnable> each : due) {
          Runnable task = each.get();
          if (task != null) {
            task.run();
          }
        }
      } catch (InterruptedException | ClosedWatchServiceException never) {
        return;
      }
    }
  }
}
