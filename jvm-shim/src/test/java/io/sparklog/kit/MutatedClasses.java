package io.sparklog.kit;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** All classes of this project once more, one of them compiled from a changed source: nothing else in the JVM sees the change. */
public final class MutatedClasses extends ClassLoader {
  private static final String PROJECT = "io.sparklog.";
  private static final Path SOURCES = Path.of(System.getProperty("sparklog.sources", "src/main/java"));
  private static final Map<String, byte[]> COMPILED = new ConcurrentHashMap<>();

  private final Map<String, byte[]> mutated;

  static {
    registerAsParallelCapable();
  }

  private MutatedClasses(Map<String, byte[]> mutated) {
    super(MutatedClasses.class.getClassLoader());
    this.mutated = mutated;
  }

  /**
   * The classes, with {@code from} replaced by {@code to} in the source of one.
   *
   * @param source as {@code log/Committer}
   * @throws IllegalArgumentException if {@code from} is not in it exactly once, or what results is not Java
   */
  public static MutatedClasses of(String source, String from, String to) throws IOException {
    return new MutatedClasses(compiled(source, changed(source, from, to)));
  }

  /**
   * The source of a class, with {@code from} replaced by {@code to}.
   *
   * @param source as {@code log/Committer}
   * @throws IllegalArgumentException if {@code from} is not in it exactly once
   */
  public static String changed(String source, String from, String to) throws IOException {
    String text = Files.readString(SOURCES.resolve("io/sparklog/" + source + ".java"));
    int at = text.indexOf(from);
    if (at < 0 || text.indexOf(from, at + 1) >= 0) {
      throw new IllegalArgumentException(source + " has " + (at < 0 ? "nowhere" : "more than once") + ": " + from);
    }
    return text.substring(0, at) + to + text.substring(at + from.length());
  }

  /** The class of this name among these classes. */
  public Class<?> like(Class<?> original) throws ClassNotFoundException {
    return loadClass(original.getName());
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith(PROJECT) || name.equals(Warned.class.getName())) { // There is one log for all.
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> known = findLoadedClass(name);
      return known != null ? known : define(name);
    }
  }

  private Class<?> define(String name) throws ClassNotFoundException {
    byte[] bytes = mutated.containsKey(name) ? mutated.get(name) : COMPILED.computeIfAbsent(name, this::read);
    if (bytes.length == 0) {
      throw new ClassNotFoundException(name);
    }
    return defineClass(name, bytes, 0, bytes.length);
  }

  private byte[] read(String name) {
    try (InputStream file = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
      return file == null ? new byte[0] : file.readAllBytes();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Map<String, byte[]> compiled(String source, String text) throws IOException {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    DiagnosticCollector<JavaFileObject> errors = new DiagnosticCollector<>();
    Map<String, ByteArrayOutputStream> classes = new HashMap<>();
    try (Outputs outputs = new Outputs(compiler.getStandardFileManager(errors, null, null), classes)) {
      String path = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
      List<String> options = List.of("-cp", path, "-proc:none", "-nowarn", "--release", "17");
      if (!compiler.getTask(null, outputs, errors, options, null, List.of(new Source(source, text))).call()) {
        throw new IllegalArgumentException(errors.getDiagnostics().toString());
      }
    }
    Map<String, byte[]> bytes = new HashMap<>();
    classes.forEach((name, output) -> bytes.put(name, output.toByteArray()));
    return bytes;
  }

  private static final class Source extends SimpleJavaFileObject {
    private final String text;

    private Source(String source, String text) {
      super(URI.create("string:///io/sparklog/" + source + ".java"), Kind.SOURCE);
      this.text = text;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return text;
    }
  }

  /** Keeps in memory what the compiler writes. */
  private static final class Outputs extends ForwardingJavaFileManager<JavaFileManager> {
    private final Map<String, ByteArrayOutputStream> classes;

    private Outputs(JavaFileManager files, Map<String, ByteArrayOutputStream> classes) {
      super(files);
      this.classes = classes;
    }

    @Override
    public JavaFileObject getJavaFileForOutput(Location location, String className, JavaFileObject.Kind kind, FileObject sibling) {
      return new SimpleJavaFileObject(URI.create("memory:///" + className.replace('.', '/') + kind.extension), kind) {
        @Override
        public OutputStream openOutputStream() {
          return classes.computeIfAbsent(className, name -> new ByteArrayOutputStream());
        }
      };
    }
  }
}
