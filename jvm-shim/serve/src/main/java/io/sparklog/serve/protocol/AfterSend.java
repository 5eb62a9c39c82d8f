package io.sparklog.serve.protocol;

import io.netty.channel.FileRegion;
import io.netty.util.AbstractReferenceCounted;
import java.io.IOException;
import java.nio.channels.WritableByteChannel;

/** A region without bytes at a place in an answer. Its task runs when all before it is sent, or the answer is given up. */
public class AfterSend extends AbstractReferenceCounted implements FileRegion {
  private final Runnable task;

  public AfterSend(Runnable task) {
    this.task = task;
  }

  @Override
  public long transferTo(WritableByteChannel target, long at) throws IOException {
    return 0;
  }

  @Override
  public long position() {
    return 0;
  }

  @Override
  public long count() {
    return 0;
  }

  @Override
  public long transferred() {
    return 0;
  }

  @Override
  @SuppressWarnings("deprecation") // The interface still has it.
  public final long transfered() {
    return transferred();
  }

  @Override
  protected final void deallocate() {
    task.run();
  }

  @Override
  public final FileRegion touch(Object hint) {
    return this;
  }

  @Override
  public final FileRegion touch() {
    return this;
  }

  @Override
  public final FileRegion retain() {
    super.retain();
    return this;
  }

  @Override
  public final FileRegion retain(int increment) {
    super.retain(increment);
    return this;
  }
}
