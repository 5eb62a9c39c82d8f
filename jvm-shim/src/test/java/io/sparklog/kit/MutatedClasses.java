package io.sparklog.kit;

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** All classes of this project once more, one method of them changed and compiled: nothing else in the JVM sees the change. */
public final class MutatedClasses extends ClassLoader {
  private static final String PROJECT = "io.sparklog.";
  private static final Path SOURCES = Path.of(System.getProperty("sparklog.sources", "src/main/java"));
  private static final Pattern TOKEN = Pattern.compile("\"(?:\\\\.|[^\"\\\\])*\"|\\w+|\\S");
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
   * The classes, with {@code from} replaced by {@code to} in one method.
   *
   * @param method such as {@code log/Committer.commit}; a method of a nested class is {@code log/Committer.Nested.commit}
   * @param from Java of the method, in any format
   * @throws IllegalArgumentException if the class has no such method, if the methods of the name do not have {@code from} exactly once, or
   *     if the result is not Java
   */
  public static MutatedClasses of(String method, String from, String to) throws IOException {
    String source = sourceOf(method);
    return new MutatedClasses(compiled(source, changed(method, from, to)));
  }

  /** Writes the classes that differ into a folder, for the class path of another JVM: {@code <folder> <method> <from> <to>}. */
  public static void main(String[] words) throws IOException {
    for (Map.Entry<String, byte[]> each : of(words[1], words[2], words[3]).mutated.entrySet()) {
      Path file = Path.of(words[0]).resolve(each.getKey().replace('.', '/') + ".class");
      Files.createDirectories(file.getParent());
      Files.write(file, each.getValue());
    }
  }

  /** The source of the class, with {@code from} replaced by {@code to} in one method: {@link #of}. */
  public static String changed(String method, String from, String to) throws IOException {
    String source = sourceOf(method);
    return changed(Files.readString(SOURCES.resolve("io/sparklog/" + source + ".java")), method, from, to);
  }

  static String changed(String text, String method, String from, String to) throws IOException {
    List<int[]> places = new ArrayList<>();
    Matcher found = inAnyFormat(from).matcher(text);
    for (int[] body : methods(text, method)) {
      found.region(body[0], body[1]);
      while (found.find()) {
        places.add(new int[] {found.start(), found.end()});
      }
    }
    if (places.size() != 1) {
      throw new IllegalArgumentException(method + " has " + places.size() + " times, not once: " + from);
    }
    return text.substring(0, places.get(0)[0]) + to + text.substring(places.get(0)[1]);
  }

  private static String sourceOf(String method) {
    return method.substring(0, method.indexOf('.'));
  }

  /** Where the methods of a name begin and end in the source. */
  private static List<int[]> methods(String text, String method) throws IOException {
    String source = sourceOf(method);
    JavacTask task = (JavacTask) ToolProvider.getSystemJavaCompiler()
        .getTask(null, null, null, null, null, List.of(new Source(source, text)));
    CompilationUnitTree unit = task.parse().iterator().next();
    SourcePositions positions = Trees.instance(task).getSourcePositions();
    List<int[]> found = new ArrayList<>();
    new TreeScanner<Void, String>() {
      @Override
      public Void visitClass(ClassTree type, String outer) {
        return super.visitClass(type, outer == null ? source : outer + "." + type.getSimpleName());
      }

      @Override
      public Void visitMethod(MethodTree each, String type) {
        if (method.equals(type + "." + each.getName())) {
          found.add(new int[] {(int) positions.getStartPosition(unit, each), (int) positions.getEndPosition(unit, each)});
        }
        return super.visitMethod(each, type);
      }
    }.scan(unit, null);
    if (found.isEmpty()) {
      throw new IllegalArgumentException(method + " does not exist");
    }
    return found;
  }

  private static Pattern inAnyFormat(String java) {
    return Pattern.compile(TOKEN.matcher(java).results().map(MatchResult::group).map(Pattern::quote).collect(Collectors.joining("\\s*")));
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
