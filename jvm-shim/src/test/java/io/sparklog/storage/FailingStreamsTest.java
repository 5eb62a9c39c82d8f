package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A write that failed ends with its failure. The streams are those of a disk that fail as those of HDFS do: a second call throws the same
 * exception. {@link HdfsStoreTest} has a quota in a real one.
 */
final class FailingStreamsTest {
  private static final String FAILURE = "the quota is exceeded";
  private static final String LOOK = "look";

  @TempDir
  private Path folder;

  /** The first call that fails. */
  enum At {
    WRITE, SYNC, CLOSE
  }

  /** Its files fail at what {@code fs.failing.at} names, and whenever they are closed. */
  public static final class Failing extends RawLocalFileSystem {
    @Override
    protected void checkPath(org.apache.hadoop.fs.Path path) {
      // It takes those of any scheme.
    }

    @Override
    public FileStatus[] listStatus(org.apache.hadoop.fs.Path path) throws IOException {
      misunderstand();
      return super.listStatus(path);
    }

    @Override
    public FileStatus getFileStatus(org.apache.hadoop.fs.Path path) throws IOException {
      misunderstand();
      return super.getFileStatus(path);
    }

    private void misunderstand() {
      if (getConf().get("fs.failing.at").equals(LOOK)) {
        throw new NullPointerException("it is no listing");
      }
    }

    @Override
    public FSDataOutputStream create(org.apache.hadoop.fs.Path path, FsPermission permission, boolean overwrite, int buffer,
        short replication, long block, Progressable progress) throws IOException {
      At at = At.valueOf(getConf().get("fs.failing.at"));
      IOException failure = new IOException(FAILURE);
      return new FSDataOutputStream(super.create(path, permission, overwrite, buffer, replication, block, progress), null) {
        private void fail(At now) throws IOException {
          if (now == at || now == At.CLOSE) {
            throw failure;
          }
        }

        @Override
        public void write(byte[] from, int offset, int length) throws IOException {
          fail(At.WRITE);
          super.write(from, offset, length);
        }

        @Override
        public void hsync() throws IOException {
          fail(At.SYNC);
          super.hsync();
        }

        @Override
        public void close() throws IOException {
          super.close();
          fail(At.CLOSE);
        }
      };
    }

    @Override
    public FSDataOutputStream create(org.apache.hadoop.fs.Path path, boolean overwrite) throws IOException {
      return create(path, FsPermission.getFileDefault(), overwrite, 4096, (short) 1, 1 << 20, null);
    }
  }

  private HdfsStore store(At at) {
    return store(at.name());
  }

  private HdfsStore store(String at) {
    return new HdfsStore(new SharedFiles(() -> {
      Configuration configuration = new Configuration(false);
      configuration.set("fs.failing.at", at);
      FileSystem files = new Failing();
      files.initialize(folder.toUri(), configuration);
      return files;
    }, Duration.ofHours(1), Requests.IN_TURN), new StoreRef("file:" + folder));
  }

  @ParameterizedTest
  @EnumSource(At.class)
  void aFileThatCannotBeWritten(At at) {
    assertEquals(FAILURE, assertThrows(IOException.class, () -> {
      try (FileAppender file = store(at).create("data")) {
        file.write(new byte[10], 0, 10);
        file.sync();
      }
    }).getMessage());
  }

  @ParameterizedTest
  @EnumSource(At.class)
  void aPutThatCannotBeWritten(At at) {
    IOException failed = assertThrows(IOException.class, () -> store(at).putIfAbsent("name", "tmp", new byte[10], PutObserver.NONE));
    assertEquals(FAILURE, failed.getMessage());
  }

  @ParameterizedTest
  @EnumSource(At.class)
  void aFileOfACheckpointElsewhere(At at) throws IOException {
    Map<String, String> settings = Map.of("fs.failing.at", at.name(), "fs.failing.impl", Failing.class.getName(),
        "fs.failing.impl.disable.cache", "true");
    CheckpointFolder checkpoint = HadoopFolder.open("failing:" + folder, settings.entrySet());
    assertEquals(FAILURE, assertThrows(IOException.class, () -> checkpoint.putIfAbsent("name", "tmp", new byte[10])).getMessage());
  }

  /** The SDK of AWS fails so where the answer to a listing is empty, or the page of a proxy. */
  @Test
  void anAnswerThatTheClientDoesNotUnderstand() {
    HdfsStore store = store(LOOK);
    for (Executable look : List.<Executable>of(() -> store.list("folder"), () -> store.rootExists(), () -> store.exists("name"))) {
      assertTrue(assertThrows(IOException.class, look).getMessage().contains("cannot be understood"));
    }
  }

  @Test
  void aFileThatCannotBeClosedWithoutAnySync() {
    assertEquals(FAILURE, assertThrows(IOException.class, () -> store(At.CLOSE).create("data").close()).getMessage());
  }
}
