package io.sparklog.storage;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * A root on a {@link MemoryDisk}. Each call is one atomic act on the disk or several, as it is on a real one; {@link Acts} stands between
 * them, so that a test can let others act there, fail an act, or lose its answer.
 */
public class MemoryStore implements LogStore {
  private static final String ROOT = "/memory";

  /** The names that an act of a listing in order gives. */
  private static final int PAGE = 5;

  /** Decides what happens at an act. */
  public interface Acts {
    /**
     * @param call what it does, as {@code link}
     * @param name of the file or folder that it does it to
     */
    <T> T act(String call, String name, Act<T> act) throws IOException;

    /** Which of the names that came or went while a folder was listed are listed. */
    default boolean isSeen(String name) {
      return true;
    }

    /** Whether the store is one behind a network. */
    default boolean isRemote() {
      return false;
    }

    /** Whether a listing has the names in their order. */
    default boolean listsInOrder() {
      return false;
    }

    default Duration lateLimit() {
      return Duration.ZERO;
    }
  }

  /** Something that the disk does at once. */
  public interface Act<T> {
    T on(MemoryDisk disk) throws IOException;
  }

  /** The act by which a put takes effect. */
  public record Put(String temporary, String name) implements Act<Object> {
    @Override
    public Object on(MemoryDisk disk) throws IOException {
      disk.link(temporary, name);
      return null;
    }

    /** The same act, to be done at any later time: it no longer needs the temporary file. */
    public Act<Object> late(MemoryDisk disk) throws IOException {
      MemoryDisk.Content content = disk.content(temporary);
      return later -> {
        later.link(content, name);
        return null;
      };
    }
  }

  private final Acts acts;

  public MemoryStore(Acts acts) {
    this.acts = acts;
  }

  private interface Effect {
    void on(MemoryDisk disk) throws IOException;
  }

  private void does(String call, String name, Effect effect) throws IOException {
    acts.act(call, name, disk -> {
      effect.on(disk);
      return null;
    });
  }

  private static <T> T unfailing(IOCall<T> call) {
    try {
      return call.run();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private interface IOCall<T> {
    T run() throws IOException;
  }

  @Override
  public String root() {
    return ROOT;
  }

  @Override
  public boolean rootExists() throws IOException {
    return acts.act("look", "", disk -> disk.isFolder(""));
  }

  @Override
  public boolean exists(String name) throws IOException {
    return acts.act("look", name, disk -> disk.exists(name));
  }

  @Override
  public boolean existsBeside(String name) {
    return ROOT.equals("/" + name) && unfailing(this::rootExists);
  }

  @Override
  public List<String> list(String name) throws IOException {
    return acts.listsInOrder() ? pages(name) : changing(name);
  }

  /** Each page has the names that are there at its moment, after the names of the page before it. */
  private List<String> pages(String name) throws IOException {
    List<String> names = new ArrayList<>();
    List<String> page;
    do {
      String last = names.isEmpty() ? "" : names.get(names.size() - 1);
      page = acts.act("list", name, disk -> disk.list(name).tailSet(last, false).stream().limit(PAGE).toList());
      names.addAll(page);
    } while (page.size() == PAGE);
    return names;
  }

  private List<String> changing(String name) throws IOException {
    TreeSet<String> begun = acts.act("list", name, disk -> disk.list(name));
    TreeSet<String> ended = acts.act("list", name, disk -> disk.list(name));
    TreeSet<String> all = new TreeSet<>(begun);
    all.addAll(ended);
    all.removeIf(each -> !(begun.contains(each) && ended.contains(each)) && !acts.isSeen(name + "/" + each));
    return new ArrayList<>(all);
  }

  @Override
  public boolean isRemote() {
    return acts.isRemote();
  }

  @Override
  public Duration lateLimit() {
    return acts.lateLimit();
  }

  /** Over a network, a name that has gone by the end is told with the tag of no file, as one that was just written. */
  @Override
  public Listing listing(String name) throws IOException {
    if (!isRemote()) {
      return LogStore.super.listing(name);
    }
    TreeMap<String, Listed> files = new TreeMap<>();
    for (String each : list(name)) {
      files.put(each, acts.act("list", name + "/" + each, disk -> disk.peekListed(name + "/" + each)));
    }
    return new Listing(files.keySet(), files, acts.listsInOrder());
  }

  @Override
  public byte[] read(String name, int bytesMax) throws IOException {
    return acts.act("read", name, disk -> {
      byte[] bytes = disk.content(name).bytes();
      if (bytes.length > bytesMax) {
        throw new UnfitFileException(location(name), "it has " + bytes.length + " bytes, more than the " + bytesMax + " allowed");
      }
      return bytes.clone();
    });
  }

  @Override
  public Optional<String> tag(String name) throws IOException {
    return acts.act("tag", name, disk -> disk.peekTag(name));
  }

  @Override
  public long modifiedMs(String name) throws IOException {
    return acts.act("look", name, disk -> disk.content(name).modifiedMs());
  }

  @Override
  public void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException {
    delete(temporary);
    try {
      try (FileAppender file = create(temporary)) {
        file.write(content, 0, content.length);
        file.sync();
      }
      acts.act("link", name, new Put(temporary, name));
      flush(name.substring(0, name.lastIndexOf('/')));
    } finally {
      try {
        delete(temporary);
      } catch (IOException e) {
        // It stays, and does no harm.
      }
    }
  }

  @Override
  public FileReader open(String name) throws IOException {
    return new Reader(location(name), name, acts.act("open", name, disk -> disk.content(name)));
  }

  @Override
  public FileAppender create(String name) throws IOException {
    boolean inNewFolder = createFoldersAbove(name);
    return new Appender(name, acts.act("create", name, disk -> disk.create(name)), inNewFolder);
  }

  private boolean createFoldersAbove(String name) throws IOException {
    String folder = name.substring(0, Math.max(0, name.lastIndexOf('/')));
    return acts.act("createFolder", folder, disk -> {
      boolean makes = disk.makeFolder(folder);
      if (isRemote()) {
        disk.createFolder(folder); // Behind a network, folders are names alone.
      }
      return makes;
    });
  }

  @Override
  public void createFolder(String name) throws IOException {
    does("createFolder", name, disk -> disk.createFolder(name));
  }

  @Override
  public void flush(String folder) throws IOException {
    does("flush", folder, disk -> disk.flush(folder));
  }

  @Override
  public void delete(String name) throws IOException {
    does("delete", name, disk -> disk.delete(name));
  }

  @Override
  public void deleteFolderIfEmpty(String name) throws IOException {
    does("deleteFolder", name, disk -> disk.deleteFolderIfEmpty(name));
  }

  private final class Reader implements FileReader {
    private final String location;
    private final String name;
    private final MemoryDisk.Content content;

    private Reader(String location, String name, MemoryDisk.Content content) {
      this.location = location;
      this.name = name;
      this.content = content;
    }

    @Override
    public long bytes() {
      return content.bytes().length;
    }

    @Override
    public void read(long position, ByteBuffer to) throws IOException {
      does("read", name, disk -> {
        byte[] bytes = content.bytes();
        if (position + to.remaining() > bytes.length) {
          throw new EOFException(location + " ends at byte " + bytes.length);
        }
        to.put(bytes, (int) position, to.remaining());
      });
    }

    @Override
    public void close() {}
  }

  private final class Appender implements FileAppender {
    private final String name;
    private final MemoryDisk.Content content;
    private final boolean inNewFolder;
    private boolean failed;

    private Appender(String name, MemoryDisk.Content content, boolean inNewFolder) {
      this.name = name;
      this.content = content;
      this.inNewFolder = inNewFolder;
    }

    @Override
    public boolean inNewFolder() {
      return inNewFolder;
    }

    @Override
    public void write(byte[] from, int at, int length) throws IOException {
      does("write", name, disk -> content.append(from, at, length, disk.nowMs()));
    }

    @Override
    public long position() {
      return content.bytes().length;
    }

    @Override
    public void sync() throws IOException {
      if (failed) {
        throw new IOException("an earlier sync of the file failed");
      }
      failed = true;
      does("sync", name, disk -> content.sync());
      failed = false;
    }

    @Override
    public void close() {
      if (failed) {
        content.giveUp();
      }
    }
  }

  /** One on a disk. */
  public static final class Linking extends MemoryStore implements LinkingStore {
    public Linking(Acts acts) {
      super(acts);
    }

    @Override
    public void link(String existing, String name) throws IOException {
      for (;;) {
        super.createFoldersAbove(name);
        try {
          super.does("link", name, disk -> disk.link(existing, name));
          return;
        } catch (NoSuchFileException absent) {
          if (!exists(existing)) {
            throw absent;
          }
        }
      }
    }

    @Override
    public boolean isSameFile(String one, String other) throws IOException {
      return super.acts.act("look", one, disk -> disk.isSameFile(one, other));
    }

    @Override
    public FileStamper stamp(String name) throws IOException {
      return new Stamper(name, super.acts.act("open", name, disk -> disk.content(name)));
    }
  }

  private final class Stamper implements FileStamper {
    private final String name;
    private final MemoryDisk.Content content;

    private Stamper(String name, MemoryDisk.Content content) {
      this.name = name;
      this.content = content;
    }

    @Override
    public void replace(long position, byte[] from, int at, int length) throws IOException {
      does("replace", name, disk -> content.replace((int) position, from, at, length, disk.nowMs()));
    }

    @Override
    public void sync() throws IOException {
      does("sync", name, disk -> content.sync());
    }

    @Override
    public void close() {}
  }
}
