package io.sparklog.spec;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** To delete the Kafka view is advice for a disk that is full, and for nothing else. */
final class FullDiskTest {
  private static final String ADVICE = "may be deleted";

  @Test
  void onlyAFullDiskIsToldToDeleteTheView() {
    FileSystemException full = new FileSystemException("/log/_partlog/t/data/x", null, "No space left on device");
    for (Exception failure : List.of(full, new IOException("the write failed", full))) {
      assertEquals(true, PartlogException.io(failure, "/log").getMessage().contains(ADVICE));
      assertEquals(true, FullDisk.told("cause", failure, "/log").contains(ADVICE));
      assertEquals("cause", FullDisk.told("cause", failure, "s3a://bucket/log"), "the disk is one of the buffers");
    }
    for (Exception failure : List.of(new AccessDeniedException("/log/x"), new IOException("Input/output error"),
        new FileNotFoundException("Connection refused"), new FileSystemException("/x", null, "Read-only file system"))) {
      assertEquals(false, PartlogException.io(failure, "/log").getMessage().contains(ADVICE));
    }
    assertEquals("cause", FullDisk.told("cause", null, "/log"));
  }
}
