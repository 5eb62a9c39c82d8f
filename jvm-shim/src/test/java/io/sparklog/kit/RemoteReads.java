package io.sparklog.kit;

import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/** The files of a store as one without links keeps them, over a network; and what is read of those that are opened. */
public final class RemoteReads {
  /** Bytes of a file that were read at once. */
  public record Span(String file, long from, long to) {}

  private final LogStore real;
  private final List<Span> spans = Collections.synchronizedList(new ArrayList<>());
  private long failsFrom = Long.MAX_VALUE;

  public RemoteReads(LogStore real) {
    this.real = real;
  }

  public LogStore store() {
    return (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class},
        (proxy, method, arguments) -> switch (method.getName()) {
          case "isRemote" -> true;
          case "open" -> kept((String) arguments[0], real.open((String) arguments[0]));
          default -> {
            try {
              yield method.invoke(real, arguments);
            } catch (InvocationTargetException e) {
              throw e.getCause();
            }
          }
        });
  }

  private FileReader kept(String name, FileReader file) {
    return new FileReader() {
      @Override
      public long bytes() throws IOException {
        return file.bytes();
      }

      @Override
      public void read(long position, ByteBuffer to) throws IOException {
        if (position >= failsFrom) {
          throw new IOException("the store answers no read of " + name + " from byte " + position + " on");
        }
        spans.add(new Span(name, position, position + to.remaining()));
        file.read(position, to);
      }

      @Override
      public void close() throws IOException {
        file.close();
      }
    };
  }

  /** From now on, reads that begin at this byte of a file or later fail. */
  public void failFrom(long position) {
    failsFrom = position;
  }

  /** The reads since {@link #clear}, in their order. */
  public List<Span> spans() {
    return spans;
  }

  public void clear() {
    spans.clear();
  }

  /** How many bytes were read. */
  public long bytes() {
    return spans.stream().mapToLong(span -> span.to - span.from).sum();
  }

  /** The most bytes that one read has in common with another, from read number {@code first} on. */
  public long twice(int first) {
    List<Span> sorted = new ArrayList<>(spans.subList(first, spans.size()));
    sorted.sort(Comparator.comparing(Span::file).thenComparing(Span::from));
    long most = 0;
    for (int i = 1; i < sorted.size(); i++) {
      Span before = sorted.get(i - 1);
      Span span = sorted.get(i);
      most = Math.max(most, before.file.equals(span.file) ? Math.min(before.to, span.to) - span.from : 0);
    }
    return most;
  }
}
