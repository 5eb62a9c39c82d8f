package io.sparklog.storage;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongSupplier;
import java.util.random.RandomGenerator;

/**
 * A disk in memory: names, files, and what of both a power loss leaves. A name is durable once its folder was flushed, bytes are once their
 * file was synced. Names are separated by {@code /}; "" is the root, which is there once a folder was created. Not for several threads at
 * once.
 */
public final class MemoryDisk {
  private abstract static class Node {}

  private static final class Folder extends Node {
    /** As every process sees them. */
    private final TreeMap<String, Node> names = new TreeMap<>();
    /** As they are after a power loss; of those that differ, some may already be as they are seen. */
    private TreeMap<String, Node> durable = new TreeMap<>();
  }

  /** A file, whatever names it has. */
  static final class Content extends Node {
    private final long number;
    private byte[] bytes = new byte[0];
    private long modifiedMs;
    /** How many bytes are durable. */
    private int synced;
    /** After a failed sync no other one makes anything durable. */
    private boolean given;
    /** The bytes before they were replaced, by position, as long as that is not durable. */
    private final TreeMap<Integer, Byte> replaced = new TreeMap<>();

    private Content(long number) {
      this.number = number;
    }

    byte[] bytes() {
      return bytes;
    }

    long modifiedMs() {
      return modifiedMs;
    }

    /** Distinguishes it from every other file that was ever on this disk. */
    String tag() {
      return number + " " + bytes.length;
    }

    void append(byte[] from, int at, int length, long nowMs) {
      int end = bytes.length;
      bytes = Arrays.copyOf(bytes, end + length);
      System.arraycopy(from, at, bytes, end, length);
      modifiedMs = nowMs;
    }

    void replace(int position, byte[] from, int at, int length, long nowMs) {
      for (int i = 0; i < length; i++) {
        replaced.putIfAbsent(position + i, bytes[position + i]);
        bytes[position + i] = from[at + i];
      }
      modifiedMs = nowMs;
    }

    void sync() {
      if (!given) {
        synced = bytes.length;
        replaced.clear();
      }
    }

    /** Bytes that were not durable before a failed sync will never be. */
    void giveUp() {
      given = true;
    }

    private void losePower(RandomGenerator random) {
      int kept = synced + random.nextInt(bytes.length - synced + 1);
      boolean zeros = random.nextBoolean();
      int before = synced;
      bytes = Arrays.copyOf(bytes, kept);
      for (int i = before; zeros && i < kept; i++) {
        bytes[i] = 0;
      }
      replaced.forEach((position, old) -> {
        if (position < before && random.nextBoolean()) {
          bytes[position] = old;
        }
      });
      replaced.clear();
      synced = kept;
    }
  }

  private final LongSupplier clockMs;
  private Folder root;
  private long files;

  /** @param clockMs the clock of the disk, ms since 1970 */
  public MemoryDisk(LongSupplier clockMs) {
    this.clockMs = clockMs;
  }

  private static List<String> parts(String name) {
    List<String> parts = name.isEmpty() ? List.of() : Arrays.asList(name.split("/", -1));
    if (parts.contains("") || parts.contains("..") || parts.contains(".")) {
      throw new IllegalStateException("the name " + name + " leads out of the root");
    }
    return parts;
  }

  private Node node(String name) {
    Node at = root;
    for (String part : parts(name)) {
      at = at instanceof Folder folder ? folder.names.get(part) : null;
    }
    return at;
  }

  private static String above(String name) {
    return name.substring(0, Math.max(0, name.lastIndexOf('/')));
  }

  private static String last(String name) {
    return name.substring(name.lastIndexOf('/') + 1);
  }

  private Folder folderOf(String name) throws NoSuchFileException {
    parts(name);
    if (node(above(name)) instanceof Folder folder) {
      return folder;
    }
    throw new NoSuchFileException(name);
  }

  boolean exists(String name) {
    return node(name) != null;
  }

  boolean isFolder(String name) {
    return node(name) instanceof Folder;
  }

  /** The names in a folder; empty if there is no such folder. */
  public TreeSet<String> list(String name) {
    return node(name) instanceof Folder folder ? new TreeSet<>(folder.names.keySet()) : new TreeSet<>();
  }

  Content content(String name) throws IOException {
    Node node = node(name);
    if (node == null) {
      throw new NoSuchFileException(name);
    }
    if (node instanceof Content content) {
      return content;
    }
    throw new UnfitFileException(name, "it is not a regular file");
  }

  /** The bytes of a file, for a test that looks at the disk itself; empty if it is absent. */
  public Optional<byte[]> peek(String name) {
    return node(name) instanceof Content content ? Optional.of(content.bytes) : Optional.empty();
  }

  /** The tag of a file, likewise. */
  public Optional<String> peekTag(String name) {
    return node(name) instanceof Content content ? Optional.of(content.tag()) : Optional.empty();
  }

  ReadStore.Listed peekListed(String name) {
    return node(name) instanceof Content content
        ? new ReadStore.Listed(content.bytes.length, content.modifiedMs, content.tag())
        : new ReadStore.Listed(0, Long.MAX_VALUE, "gone");
  }

  /** The names of all files in a folder and below it, relative to it. */
  public List<String> filesIn(String name) {
    List<String> found = new ArrayList<>();
    for (String part : list(name)) {
      String inner = name.isEmpty() ? part : name + "/" + part;
      if (isFolder(inner)) {
        filesIn(inner).forEach(file -> found.add(part + "/" + file));
      } else {
        found.add(part);
      }
    }
    return found;
  }

  /** Whether a file, with all its bytes, and the folders above it would survive a power loss. */
  public boolean isDurable(String name) {
    Node at = root;
    for (String part : parts(name)) {
      Node below = at instanceof Folder folder ? folder.names.get(part) : null;
      if (below == null || ((Folder) at).durable.get(part) != below) {
        return false;
      }
      at = below;
    }
    return at instanceof Content content && content.synced == content.bytes.length && content.replaced.isEmpty();
  }

  Content create(String name) throws IOException {
    Folder folder = folderOf(name);
    if (folder.names.containsKey(last(name))) {
      throw new FileAlreadyExistsException(name);
    }
    Content content = new Content(++files);
    content.modifiedMs = clockMs.getAsLong();
    folder.names.put(last(name), content);
    return content;
  }

  void link(String existing, String name) throws IOException {
    link(content(existing), name);
  }

  /** Gives a file a name, whether it still has another or not. */
  void link(Content content, String name) throws IOException {
    if (folderOf(name).names.putIfAbsent(last(name), content) != null) {
      throw new FileAlreadyExistsException(name);
    }
  }

  boolean isSameFile(String one, String other) {
    return node(one) != null && node(one) == node(other);
  }

  /** Creates a folder and those above it, each durable. */
  void createFolder(String name) throws IOException {
    makeFolder("");
    Folder at = root;
    for (String part : parts(name)) {
      Folder folder = makeFolder(at, part, name);
      at.durable.put(part, folder);
      at = folder;
    }
  }

  /** Creates a folder and those above it that are missing. Only those above are durable. @return whether it was missing */
  boolean makeFolder(String name) throws IOException {
    root = root == null ? new Folder() : root;
    Folder at = root;
    List<String> parts = parts(name);
    boolean makes = false;
    for (int i = 0; i < parts.size(); i++) {
      String part = parts.get(i);
      makes = !at.names.containsKey(part);
      Folder folder = makeFolder(at, part, name);
      if (makes && i < parts.size() - 1) {
        at.durable.put(part, folder);
      }
      at = folder;
    }
    return makes;
  }

  private static Folder makeFolder(Folder above, String part, String name) throws FileAlreadyExistsException {
    if (above.names.computeIfAbsent(part, absent -> new Folder()) instanceof Folder folder) {
      return folder;
    }
    throw new FileAlreadyExistsException(name);
  }

  void flush(String name) throws IOException {
    if (!(node(name) instanceof Folder folder)) {
      throw new NoSuchFileException(name);
    }
    folder.durable = new TreeMap<>(folder.names);
  }

  /** Deletes a file; does nothing if it is absent. */
  public void delete(String name) {
    if (!parts(name).isEmpty() && node(above(name)) instanceof Folder folder && folder.names.get(last(name)) instanceof Content) {
      folder.names.remove(last(name));
    }
  }

  void deleteFolderIfEmpty(String name) {
    if (!parts(name).isEmpty() && node(name) instanceof Folder folder && folder.names.isEmpty()) {
      ((Folder) node(above(name))).names.remove(last(name));
    }
  }

  long nowMs() {
    return clockMs.getAsLong();
  }

  /**
   * {@code random} says which part of what is not durable stays: each name as it was or as it is, bytes up to any length, whole or as
   * zeros.
   */
  public void losePower(RandomGenerator random) {
    if (root != null) {
      losePower(root, random);
    }
  }

  private static void losePower(Folder folder, RandomGenerator random) {
    TreeSet<String> all = new TreeSet<>(folder.names.keySet());
    all.addAll(folder.durable.keySet());
    for (String name : all) {
      Node durable = folder.durable.get(name);
      Node seen = folder.names.get(name);
      Node left = !Objects.equals(durable, seen) && random.nextBoolean() ? durable : seen;
      folder.names.remove(name);
      if (left != null) {
        folder.names.put(name, left);
      }
    }
    folder.durable = new TreeMap<>(folder.names);
    for (Map.Entry<String, Node> entry : folder.names.entrySet()) {
      if (entry.getValue() instanceof Folder inner) {
        losePower(inner, random);
      } else {
        ((Content) entry.getValue()).losePower(random);
      }
    }
  }
}
