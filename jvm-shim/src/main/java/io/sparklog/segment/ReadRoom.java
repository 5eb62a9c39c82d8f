package io.sparklog.segment;

/** The memory of one reader, where many readers share memory. For the thread of the reader. */
public interface ReadRoom {
  /** For a reader without others. */
  ReadRoom UNBOUNDED = new ReadRoom() {
    @Override
    public void buffer(int bytes) {}

    @Override
    public long ahead() {
      return Long.MAX_VALUE;
    }

    @Override
    public void give() {}
  };

  /** Waits until there is memory for a buffer of so many bytes. It takes the place of the last buffer, which is given up before. */
  void buffer(int bytes);

  /** How many bytes may be asked for beyond the bytes that the caller is known to need. They are the reader's until {@link #give}. */
  long ahead();

  /** Gives all memory back. The reader has none. */
  void give();
}
