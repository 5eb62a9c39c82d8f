package io.sparklog.storage;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Files over a network that a caller reads in an order that it has announced. The bytes that come next are asked for, by several requests
 * at once, while the caller decodes the bytes before them. For one thread.
 *
 * <p>The plan is a hint: each file can be read at any position. A read that is not in the plan is a request of its own.
 *
 * <p>In some places a stream is cheaper for a large range: see {@link Requests#streamedBytesMin}. Such a range is not asked for ahead of
 * the caller, who then reads it from the stream, without a copy and without another thread.
 */
public final class PlannedReads implements Closeable {
  /** As many requests are made at the beginning, and as many share the bytes that a caller is known to need. */
  private static final int FIRST_REQUESTS = 4;

  /** The most bytes of a request. A smaller request would wait for longer than its bytes take. */
  private static final int WINDOW_BYTES = 8 << 20;

  /** The bytes of a request if the caller is known to need few bytes. Fewer bytes do not come much sooner. */
  private static final int SMALL_BYTES = 256 << 10;

  /** Bytes that are needed are shared out to several requests only if each has so many. */
  private static final int SHARE_BYTES = 1 << 20;

  /** The last request of a range may be larger by this part, which saves another request. */
  private static final int LAST_PART = 8;

  /** The bytes that each plan may hold: the window that the caller is reading, and the windows that were asked for. */
  private static final int HELD_BYTES = FIRST_REQUESTS * WINDOW_BYTES;

  /**
   * The bytes that plans of this process may hold beyond that. A plan of many bytes takes {@link #HELD_BYTES} of these bytes, so that twice
   * as many requests are under way: a connection to a store has fewer bytes a second than a decoder takes.
   */
  private static final AtomicLong SPARE_BYTES = new AtomicLong(Runtime.getRuntime().maxMemory() / 16);

  /** The most bytes between two ranges of a file that are read too: they cost less than a request. */
  private static final int GAP_BYTES = 16 << 10;

  /** Bytes of a file that will be read front to back. */
  public record Range(String file, long from, long to) {}

  /** Opens a file. */
  @FunctionalInterface
  public interface FileOpener {
    /** As {@link ReadStore#open(String, long)}. */
    FileReader open(String name, long bytes) throws IOException;
  }

  private final FileOpener opener;
  private final Requests requests;
  private final long streamedBytesMin;
  private final AtomicLong spareBytes;

  /** Whether more than {@link #HELD_BYTES} of the plan are asked for ahead. A plan that is closed asks for nothing. */
  private boolean isLarge;

  /** Whether the plan has {@link #HELD_BYTES} of the spare bytes, until it is closed. */
  private boolean hasSpare;

  /** The bytes that are left to read, in the order of the plan. The caller reads the first window, or elsewhere. */
  private final LinkedList<Window> windows = new LinkedList<>();

  /** How many windows the caller has left behind, and their bytes. At the beginning, a caller may need no more than the first records. */
  private int passed;
  private long passedBytes;

  /** See {@link #want}. */
  private long wanted = Long.MAX_VALUE;
  private int readOnBytes = WINDOW_BYTES;

  /** Arrays of {@link #WINDOW_BYTES} that are not in use, while the caller needs all bytes: others may wait for long. */
  private final Deque<byte[]> free = new ArrayDeque<>();

  /**
   * A plan. The first read begins to ask, or {@link #want}.
   *
   * @param requests makes the requests
   * @param ranges in the order in which they will be read
   */
  public PlannedReads(FileOpener opener, Requests requests, List<Range> ranges) {
    this(opener, requests, ranges, SPARE_BYTES);
  }

  /** @param spareBytes that several plans share */
  PlannedReads(FileOpener opener, Requests requests, List<Range> ranges, AtomicLong spareBytes) {
    this.opener = opener;
    this.requests = requests;
    this.streamedBytesMin = requests.streamedBytesMin();
    this.spareBytes = spareBytes;
    for (Range range : ranges) {
      Window last = windows.peekLast();
      if (last != null && last.isContinuedBy(range)) {
        last.to = range.to;
      } else {
        windows.add(new Window(range.file, range.from, range.to));
      }
    }
    isLarge = windows.stream().mapToLong(Window::bytes).filter(bytes -> bytes < streamedBytesMin).sum() > HELD_BYTES;
  }

  /**
   * Asks for the bytes that come next.
   *
   * @param bytes that the caller needs from its position on, as far as is known. The caller may stop after these bytes. So these bytes are
   *     asked for, and one window more for a caller that has read on before. Until the first call, the caller needs all bytes
   * @param aheadMax the most bytes of that window
   */
  public void want(long bytes, long aheadMax) {
    wanted = bytes;
    readOnBytes = (int) Math.min(WINDOW_BYTES, aheadMax);
    askAhead(null);
  }

  /** As the other, with a whole window. */
  void want(long bytes) {
    want(bytes, WINDOW_BYTES);
  }

  /** Whether a range is left to a stream. A caller that may stop at any time would keep the stream open, so it gets windows. */
  private boolean isStreamed(long bytes) {
    return bytes >= streamedBytesMin && wanted == Long.MAX_VALUE;
  }

  /** Bytes that are asked for by one request. Before they are asked for, they may be too many, and are cut then. */
  private final class Window {
    private final String file;
    private long from;
    private long to;

    /** Null before it is asked for. */
    private Requests.Pending<byte[]> pending;

    /** Null until the caller has it. */
    private byte[] content;

    /** The thread that made the request. */
    private volatile Thread by;

    private Window(String file, long from, long to) {
      this.file = file;
      this.from = from;
      this.to = to;
    }

    private long bytes() {
      return to - from;
    }

    /** Keeps about the first {@code most} bytes. @return the other bytes; null if no bytes are left */
    private Window cut(long most) {
      if (bytes() <= most + most / LAST_PART) {
        return null;
      }
      Window rest = new Window(file, from + most, to);
      to = rest.from;
      return rest;
    }

    private boolean isContinuedBy(Range range) {
      return range.file.equals(file) && range.from >= to && range.from - to <= GAP_BYTES && range.to - from <= WINDOW_BYTES;
    }

    private boolean has(String name, long position) {
      return position >= from && position < to && name.equals(file);
    }

    private void ask() {
      byte[] array = bytes() == WINDOW_BYTES ? free.poll() : null;
      byte[] into = array == null ? new byte[(int) bytes()] : array;
      pending = requests.begin(() -> {
        by = Thread.currentThread();
        try (FileReader reader = opener.open(file, to)) {
          reader.read(from, into, 0, into.length);
        }
        return into;
      });
    }

    /** Its bytes, once they have come. */
    private byte[] content() throws IOException {
      if (content == null) {
        try {
          content = pending.answer();
        } catch (IOException | RuntimeException e) {
          pending = null; // A caller that reads again asks again.
          throw e;
        }
        if (by != Thread.currentThread()) {
          ReadStatistics.add(bytes()); // Hadoop has counted these bytes for the other thread.
        }
      }
      return content;
    }

    private void drop() {
      if (content != null && content.length == WINDOW_BYTES && wanted == Long.MAX_VALUE) {
        free.push(content);
      } else if (content == null && pending != null) {
        pending.close();
      }
    }
  }

  /** @param needed is asked for in any case, also if it could be streamed; null for none */
  private void askAhead(Window needed) {
    int first = takeSpare() ? 2 * FIRST_REQUESTS : FIRST_REQUESTS;
    int askedMax = Math.min(requests.most(), first << Math.min(passed, 10));
    long heldMax = (long) first * WINDOW_BYTES;
    long most = Math.min(heldMax, Math.min(heldMax, wanted) + Math.min(readOnBytes, passedBytes));
    long share = Math.max(SHARE_BYTES, most / first);
    long held = 0;
    int asked = 0;
    for (ListIterator<Window> next = windows.listIterator(); next.hasNext() && asked < askedMax; asked++) {
      Window window = next.next();
      if (window.pending == null && window != needed && isStreamed(window.bytes())) {
        continue;
      }
      if (window.pending == null) {
        long room = most - held;
        if (asked > 0 && room < Math.min(share, window.bytes())) {
          return;
        }
        Window rest = window.cut(Math.min(share, Math.max(room, SMALL_BYTES)));
        if (rest != null) {
          next.add(rest);
          next.previous();
        }
        window.ask();
      }
      held += window.bytes();
    }
  }

  /** @return whether the plan has spare bytes, and its caller needs all bytes */
  private boolean takeSpare() {
    if (!isLarge || wanted != Long.MAX_VALUE) {
      return false;
    }
    if (!hasSpare) {
      hasSpare = spareBytes.addAndGet(-HELD_BYTES) >= 0;
      if (!hasSpare) {
        spareBytes.addAndGet(HELD_BYTES);
      }
    }
    return hasSpare;
  }

  /** Goes on to the window that has the byte at {@code position} of a file. Null if the byte is not in the plan. */
  private Window find(String file, long position) {
    if (windows.stream().noneMatch(window -> window.has(file, position))) {
      return null;
    }
    while (!windows.element().has(file, position)) {
      Window left = windows.remove();
      if (left.pending != null) {
        left.drop();
        passed++;
        passedBytes += left.bytes();
      }
    }
    Window found = windows.element();
    if (found.pending == null) {
      found.from = position;
    }
    if (found.content == null) {
      askAhead(found);
    }
    return found;
  }

  /**
   * Opens a file, of the plan or not; see {@link ReadStore#open(String, long)}. After its ranges, the caller closes the file and opens the
   * next file.
   */
  public FileReader open(String name, long bytes) {
    return new Planned(name, bytes);
  }

  /** Opens a file without a plan. The file gives up its requests when it is closed. */
  static FileReader single(FileOpener opener, Requests requests, String name, long bytes) {
    PlannedReads reads = new PlannedReads(opener, requests, List.of());
    return reads.new Planned(name, bytes) {
      @Override
      public void close() throws IOException {
        reads.close();
        super.close();
      }
    };
  }

  /** Gives up the requests that are under way. */
  @Override
  public void close() {
    windows.forEach(Window::drop);
    windows.clear();
    free.clear();
    isLarge = false;
    if (hasSpare) {
      hasSpare = false;
      spareBytes.addAndGet(HELD_BYTES);
    }
  }

  private class Planned implements FileReader {
    private final String name;
    private final long bytes;

    /** For reads that are not in the plan; null until the first of them. */
    private FileReader direct;

    /** The range that {@link #direct} is to stream; null for none. */
    private Range streamed;

    private Planned(String name, long bytes) {
      this.name = name;
      this.bytes = bytes;
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public void expect(long from, long to) throws IOException {
      long end = Math.min(to, bytes);
      if (from < end && isStreamed(end - from)) {
        windows.removeIf(window -> window.has(name, from) && window.pending == null);
      }
      if (from >= end || windows.stream().anyMatch(window -> window.has(name, from))) {
        return;
      }
      if (isStreamed(end - from)) {
        streamed = new Range(name, from, end);
        if (direct != null) {
          direct.expect(from, end);
        }
      } else {
        Window first = new Window(name, from, end);
        windows.addFirst(first);
        askAhead(first);
      }
    }

    @Override
    public void read(long position, ByteBuffer to) throws IOException {
      long at = position;
      while (to.hasRemaining()) {
        Window window = find(name, at);
        if (window == null) {
          direct().read(at, to);
          return;
        }
        byte[] content;
        try {
          content = window.content();
        } catch (EOFException shorter) {
          // Some of the bytes may be there, and are read one request after another, up to the end of the file.
          windows.remove();
          continue;
        }
        int within = (int) (at - window.from);
        int length = Math.min(to.remaining(), content.length - within);
        to.put(content, within, length);
        at += length;
      }
    }

    private FileReader direct() throws IOException {
      if (direct == null) {
        direct = opener.open(name, bytes);
        if (streamed != null) {
          direct.expect(streamed.from, streamed.to);
        }
      }
      return direct;
    }

    @Override
    public void close() throws IOException {
      if (direct != null) {
        direct.close();
      }
    }
  }
}
