package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.storage.FaultyStore.Answer;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every check of the contracts can fail: each is run against a store that breaks the promise it is about. */
final class BrokenStoresTest {
  @TempDir
  private Path folder;

  /** A local store but for one call. */
  private record Broken(String check, String how, String call, Answer answer) {
    @Override
    public String toString() {
      return check + ": " + how;
    }
  }

  static List<Broken> stores() {
    List<Broken> all = new ArrayList<>();
    all.add(new Broken("aRootExistsOnceAFolderIsCreated", "is always there", "rootExists", (real, with) -> true));
    all.add(new Broken("whatIsBesideTheRootIsSeen", "sees nothing", "existsBeside", (real, with) -> false));
    all.add(new Broken("theInnermostFolderAboveTheRootIsFound", "finds nothing", "above", (real, with) -> Optional.empty()));
    all.add(new Broken("aPutCanBeReadAndLeavesNothingElse", "keeps the temporary file", "putIfAbsent", (real, with) -> {
      put(real, with);
      real.create((String) with[1]).close();
      return null;
    }));
    all.add(new Broken("aPutNeverReplaces", "replaces", "putIfAbsent", (real, with) -> {
      real.delete(name(with));
      return put(real, with);
    }));
    all.add(new Broken("whatAnEarlierPutLeftIsReplaced", "needs a new temporary file", "putIfAbsent", (real, with) -> {
      real.create((String) with[1]).close();
      return put(real, with);
    }));
    all.add(new Broken("ofEightPutsOneWins", "looks before it replaces", "putIfAbsent", (real, with) -> {
      requireAbsent(real, with);
      Thread.sleep(50);
      real.delete(name(with));
      return put(real, with);
    }));
    all.add(new Broken("ofEightPutsOneWins", "writes in place", "putIfAbsent", (real, with) -> {
      byte[] content = (byte[]) with[2];
      try (FileAppender file = real.create(name(with))) {
        file.write(content, 0, content.length / 2);
        Thread.sleep(50);
        file.write(content, content.length / 2, content.length - content.length / 2);
      }
      return null;
    }));
    all.add(new Broken("eightCreateOneFolder", "has to be the first", "createFolder", (real, with) -> {
      synchronized (real) {
        if (name(with).endsWith("/c")) {
          requireAbsent(real, with);
        }
        real.createFolder(name(with));
      }
      return null;
    }));
    all.add(new Broken("anInterruptedPutIsWholeOrAbsent", "writes in place until it is interrupted", "putIfAbsent", (real, with) -> {
      if (Thread.interrupted()) {
        real.create(name(with)).close();
        throw new IOException("interrupted");
      }
      return put(real, with);
    }));
    Object[][] failed = {null};
    all.add(new Broken("aPutThatFailedIsOver", "does it before the next one", "putIfAbsent", (real, with) -> {
      if (Thread.interrupted()) {
        failed[0] = with;
        throw new IOException("interrupted");
      }
      put(real, failed[0]);
      return put(real, with);
    }));
    all.add(new Broken("aPutWithoutAnAnswerTakesEffectLater", "in half", "putIfAbsent", (real, with) -> {
      with[2] = Arrays.copyOf((byte[]) with[2], 1);
      return put(real, with);
    }));
    all.add(new Broken("aPutThatTakesEffectLaterNeverReplaces", "replaces", "putIfAbsent", (real, with) -> {
      real.delete(name(with));
      return put(real, with);
    }));
    all.add(new Broken("aFolderIsListed", "fails if it is empty", "list", (real, with) -> {
      List<String> names = real.list(name(with));
      if (names.isEmpty()) {
        throw new NoSuchFileException(name(with));
      }
      return names;
    }));
    all.add(new Broken("readIsLimited", "reads all", "read", (real, with) -> real.read(name(with), 1 << 20)));
    all.add(new Broken("anAbsentFileIsNoSuchFile", "reads it as empty", "read",
        (real, with) -> real.exists(name(with)) ? real.read(name(with), (int) with[1]) : new byte[0]));
    all.add(new Broken("anAbsentFileIsNoSuchFile", "creates it", "open", (real, with) -> {
      real.create(name(with)).close();
      return real.open(name(with));
    }));
    all.add(new Broken("aFileIsToldFromTheOneAfterIt", "goes by its name", "tag",
        (real, with) -> real.exists(name(with)) ? Optional.of(name(with)) : Optional.empty()));
    all.add(new Broken("deletingIsRepeatable", "fails if it is absent", "delete", (real, with) -> {
      if (!real.exists(name(with))) {
        throw new NoSuchFileException(name(with));
      }
      real.delete(name(with));
      return null;
    }));
    all.add(new Broken("onlyAnEmptyFolderIsDeleted", "deletes what is in it", "deleteFolderIfEmpty", (real, with) -> {
      for (String file : real.list(name(with))) {
        real.delete(name(with) + "/" + file);
      }
      real.deleteFolderIfEmpty(name(with));
      return null;
    }));
    all.add(new Broken("aFileTellsItsLengthAndWhenItWasWritten", "in seconds", "modifiedMs",
        (real, with) -> real.modifiedMs(name(with)) / 1000));
    all.add(new Broken("aCreatedFileIsAppendedTo", "replaces", "create", (real, with) -> {
      real.delete(name(with));
      return real.create(name(with));
    }));
    all.add(new Broken("anOpenFileIsReadAnywhere", "reads what is left", "open", (real, with) -> new Short(real.open(name(with)))));
    all.add(new Broken("aFileOfAKnownLengthIsRead", "reads what is left", "open", (real, with) -> new Short(real.open(name(with)))));
    all.add(new Broken("namesAreTakenLiterally", "hides names", "list",
        (real, with) -> real.list(name(with)).stream().filter(name -> !name.startsWith(".")).toList()));
    all.add(new Broken("noNameLeadsOutOfTheRoot", "lets it pass", "delete", (real, with) -> null));
    all.add(new Broken("aReferenceOpensTheSameRoot", "does not know its root", "root", (real, with) -> real.root() + "2"));
    all.add(new Broken("aLinkIsTheSameFile", "copies", "link", (real, with) -> {
      byte[] content = real.read(name(with), 1 << 20);
      try (FileAppender file = real.create((String) with[1])) {
        file.write(content, 0, content.length);
      }
      return null;
    }));
    all.add(new Broken("aCopyIsNotTheSameFile", "compares the content", "isSameFile",
        (real, with) -> Arrays.equals(real.read(name(with), 100), real.read((String) with[1], 100))));
    all.add(new Broken("aLinkNeverReplaces", "replaces", "link", (real, with) -> {
      real.delete((String) with[1]);
      ((LinkingStore) real).link(name(with), (String) with[1]);
      return null;
    }));
    all.add(new Broken("anAbsentFileIsNotLinked", "creates what is absent", "link", (real, with) -> {
      real.create((String) with[1]).close();
      return null;
    }));
    all.add(new Broken("aFolderThatIsDeletedMeanwhileIsMadeAgain", "makes it once", "link", (real, with) -> {
      String to = (String) with[1];
      real.createFolder(to.substring(0, to.indexOf('/')));
      Files.createLink(Path.of(real.location(to)), Path.of(real.location(name(with))));
      return null;
    }));
    all.add(new Broken("aStampReplacesBytesInPlace", "creates what is absent", "stamp", (real, with) -> {
      if (!real.exists(name(with))) {
        real.create(name(with)).close();
      }
      return ((LinkingStore) real).stamp(name(with));
    }));
    return all;
  }

  private static String name(Object[] with) {
    return (String) with[0];
  }

  private static Object put(LogStore real, Object[] with) throws IOException {
    real.putIfAbsent(name(with), (String) with[1], (byte[]) with[2], (PutObserver) with[3]);
    return null;
  }

  private static void requireAbsent(LogStore real, Object[] with) throws IOException {
    if (real.exists(name(with))) {
      throw new FileAlreadyExistsException(name(with));
    }
  }

  /** Reads to the end of the file, and leaves the rest of the buffer as it is. */
  private record Short(FileReader real) implements FileReader {
    @Override
    public long bytes() throws IOException {
      return real.bytes();
    }

    @Override
    public void read(long position, ByteBuffer to) throws IOException {
      int length = (int) Math.max(0, Math.min(to.remaining(), bytes() - position));
      real.read(position, to.slice(to.position(), length));
      to.position(to.limit());
    }

    @Override
    public void close() throws IOException {
      real.close();
    }
  }

  private static final class Contract extends LinkingStoreContract {
    private final FaultyStore broken;

    private Contract(FaultyStore broken) {
      this.broken = broken;
    }

    @Override
    LogStore newStore() {
      return broken.store();
    }

    @Override
    Optional<Executable> holdBack() {
      broken.holdBack(1);
      return Optional.of(broken::land);
    }
  }

  private static Stream<Method> checks() {
    return Stream.of(LogStoreContract.class, LinkingStoreContract.class)
        .flatMap(contract -> Arrays.stream(contract.getDeclaredMethods()))
        .filter(method -> method.isAnnotationPresent(Test.class));
  }

  @ParameterizedTest
  @MethodSource("stores")
  void aBrokenStoreIsFound(Broken broken) throws IOException, IllegalAccessException {
    Contract contract = new Contract(FaultyStore.of(new LocalStore(folder.resolve("root"))).answer(broken.call(), broken.answer()));
    contract.begin();
    Method check = checks().filter(method -> method.getName().equals(broken.check())).findFirst().orElseThrow();
    try {
      assertThrows(InvocationTargetException.class, () -> check.invoke(contract));
    } finally {
      Thread.interrupted();
    }
  }

  @Test
  void everyCheckHasABrokenStore() {
    Set<String> broken = stores().stream().map(Broken::check).collect(Collectors.toCollection(TreeSet::new));
    assertEquals(checks().map(Method::getName).collect(Collectors.toCollection(TreeSet::new)), broken);
  }
}
