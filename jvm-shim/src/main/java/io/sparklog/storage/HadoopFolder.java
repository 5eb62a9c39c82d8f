package io.sparklog.storage;

import io.sparklog.spec.Shown;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A checkpoint in a place that no store is for. A rename without overwriting is as exclusive as the file system makes it; callers read the
 * file back. At worst, two drivers that start one query at the same moment begin at two places.
 */
final class HadoopFolder implements CheckpointFolder {
  private final FileSystem files;
  private final Path folder;

  private HadoopFolder(FileSystem files, Path folder) {
    this.files = files;
    this.folder = folder;
  }

  static HadoopFolder open(String location, Iterable<Map.Entry<String, String>> settings) throws IOException {
    Configuration configuration = new Configuration();
    settings.forEach(setting -> configuration.set(setting.getKey(), setting.getValue()));
    Path folder = new Path(location);
    return new HadoopFolder(folder.getFileSystem(configuration), folder);
  }

  @Override
  public String location(String name) {
    return Shown.name(name.isEmpty() ? folder.toString() : new Path(folder, name).toString());
  }

  @Override
  public Optional<String> above(String name) {
    return Optional.empty(); // There are no roots in such a place.
  }

  @Override
  public byte[] read(String name, int bytesMax) throws IOException {
    Path file = new Path(folder, name);
    try {
      FileStatus status = files.getFileStatus(file);
      if (!status.isFile() || status.getLen() > bytesMax) {
        throw new UnfitFileException(location(name), "it is not a file of at most " + bytesMax + " bytes");
      }
      byte[] content = new byte[(int) status.getLen()];
      try (FSDataInputStream in = files.open(file)) {
        in.readFully(0, content);
      }
      return content;
    } catch (FileNotFoundException absent) {
      throw (IOException) new NoSuchFileException(location(name)).initCause(absent);
    }
  }

  @Override
  public void putIfAbsent(String name, String temporary, byte[] content) throws IOException {
    Path file = new Path(folder, name);
    Path unnamed = new Path(folder, temporary);
    files.mkdirs(folder);
    try {
      HadoopStreams.writeWhole(files.create(unnamed, true), content);
      if (files.exists(file) || !files.rename(unnamed, file)) {
        throw new FileAlreadyExistsException(location(name));
      }
    } finally {
      files.delete(unnamed, false);
    }
  }
}
