package io.sparklog.storage;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;

/** A look from a place on a disk up to the top of its file system. */
final class FoldersAbove {
  private FoldersAbove() {}

  /**
   * The innermost folder above {@code place} that holds {@code name}; empty if none is seen to. Folders count by the given path, and by the
   * path without symbolic links.
   */
  static Optional<Path> holding(Path place, String name) {
    Path real = place;
    try {
      real = real(place);
    } catch (IOException unseen) {
      // The path as it is given is left.
    }
    return Stream.of(real, place)
        .flatMap(each -> Stream.iterate(each.getParent(), at -> at != null, Path::getParent))
        .filter(at -> Files.exists(at.resolve(name), LinkOption.NOFOLLOW_LINKS))
        .findFirst();
  }

  /** Without symbolic links, so far as it exists. */
  static Path real(Path path) throws IOException {
    for (Path at = path; at != null; at = at.getParent()) {
      if (Files.exists(at)) {
        return at.toRealPath().resolve(at.relativize(path)).normalize();
      }
    }
    return path;
  }
}
