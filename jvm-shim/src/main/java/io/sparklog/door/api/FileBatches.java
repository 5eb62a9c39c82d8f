package io.sparklog.door.api;

import io.sparklog.door.fetch.Part;
import io.sparklog.door.fetch.PartitionReads;
import java.io.IOException;
import java.nio.channels.WritableByteChannel;
import java.util.List;

/** Batches that go from their file to the connection, with no copy in memory. It closes the file when it is released. */
final class FileBatches extends AfterSend {
  private final Part.InFile part;
  private long sent;

  FileBatches(Part.InFile part) {
    super(() -> PartitionReads.close(List.of(part)));
    this.part = part;
  }

  @Override
  public long transferTo(WritableByteChannel target, long at) throws IOException {
    long left = part.bytes() - at;
    long more = left == 0 ? 0 : part.file().send(part.position() + at, left, target);
    sent += more;
    return more;
  }

  @Override
  public long position() {
    return part.position();
  }

  @Override
  public long count() {
    return part.bytes();
  }

  @Override
  public long transferred() {
    return sent;
  }
}
