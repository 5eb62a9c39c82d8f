package io.sparklog.door.api;

import io.netty.channel.FileRegion;
import io.netty.util.AbstractReferenceCounted;
import io.sparklog.door.fetch.Part;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.nio.channels.WritableByteChannel;

/** Batches that go from their file to the connection, with no copy in memory. It closes the file when it is released. */
final class FileBatches extends AbstractReferenceCounted implements FileRegion {
  private final Part.InFile part;
  private long sent;

  FileBatches(Part.InFile part) {
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

  @Override
  @SuppressWarnings("deprecation") // The interface still has it.
  public long transfered() {
    return sent;
  }

  @Override
  protected void deallocate() {
    try {
      part.close();
    } catch (IOException e) {
      Warnings.warn(FileBatches.class, "A file was not closed", e);
    }
  }

  @Override
  public FileRegion touch(Object hint) {
    return this;
  }

  @Override
  public FileRegion touch() {
    return this;
  }

  @Override
  public FileRegion retain() {
    super.retain();
    return this;
  }

  @Override
  public FileRegion retain(int increment) {
    super.retain(increment);
    return this;
  }
}
