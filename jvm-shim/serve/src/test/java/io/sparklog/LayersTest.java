package io.sparklog;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnitAccess;
import com.tngtech.archunit.core.domain.JavaConstructorCall;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import com.tngtech.archunit.library.Architectures.LayeredArchitecture;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/** The layers; {@code make docs} writes their order into docs/ARCHITECTURE.md. Ask of a new arrow: does the code belong elsewhere? */
@AnalyzeClasses(packages = "io.sparklog", importOptions = LayersTest.WithoutTests.class)
final class LayersTest {
  /** The packages that each package may use. */
  private static final Map<String, List<String>> MAY_USE = Map.ofEntries(
      entry("serve.records", "serve.protocol", "serve.topics", "serve.security", "serve.records.fetch", "commits", "log", "segment",
          "spec"),
      entry("serve.coordinator", "serve.protocol", "serve.topics", "serve.members", "serve.security", "serve.metrics", "admin", "commits",
          "upkeep", "log", "segment", "format", "spec"),
      entry("serve.topics", "serve.protocol", "serve.members", "serve.security", "admin", "upkeep", "log", "segment", "spec"),
      entry("serve.protocol", "serve.net", "commits", "serve.members", "serve.security", "serve.metrics", "segment", "spec"),
      entry("serve.records.fetch", "feed", "query", "read", "log", "segment", "format", "storage", "spec"),
      entry("commits", "write", "upkeep", "log", "routing", "segment", "format", "storage", "spec"),
      entry("serve.members", "log", "segment", "json", "storage", "spec"), entry("serve.net", "spec"), entry("serve.security", "spec"),
      entry("serve.metrics", "spec"),
      entry("catalog", "source", "sink", "spark", "admin", "transfer", "query", "upkeep", "merge", "view", "read", "log", "routing",
          "segment", "storage", "spec"),
      entry("source", "spark", "stream", "query", "read", "log", "routing", "segment", "format", "storage", "spec"),
      entry("sink", "spark", "write", "log", "routing", "segment", "format", "storage", "spec"), entry("spark", "spec"),
      entry("stream", "feed", "query", "read", "log", "routing", "segment", "storage", "spec"), entry("feed", "log"),
      entry("admin", "upkeep", "view", "log", "routing", "segment", "storage", "spec"),
      entry("transfer", "write", "read", "log", "routing", "segment", "format", "storage", "spec"),
      entry("query", "read", "log", "routing", "segment", "format", "spec"),
      entry("write", "upkeep", "log", "routing", "segment", "format", "storage", "spec"),
      entry("upkeep", "merge", "view", "log", "segment", "storage", "spec"), entry("merge", "log", "segment", "format", "storage", "spec"),
      entry("view", "log", "segment", "format", "storage", "spec"), entry("read", "log", "routing", "segment", "format", "spec"),
      entry("log", "routing", "segment", "json", "format", "storage", "spec"), entry("routing", "json"),
      entry("segment", "json", "format", "storage", "spec"), entry("json", "spec"), entry("storage", "spec"), entry("format", "spec"),
      entry("spec"));

  /** The tests of the connector are in a folder, or in a jar after Maven has packaged them. */
  static final class WithoutTests implements ImportOption {
    @Override
    public boolean includes(Location location) {
      return !location.contains("/test-classes/") && !location.contains("-tests.jar!");
    }
  }

  private static Map.Entry<String, List<String>> entry(String name, String... used) {
    return Map.entry(name, List.of(used));
  }

  @ArchTest
  static final ArchRule LAYERS = layers();

  private static ArchRule layers() {
    LayeredArchitecture layers = layeredArchitecture().consideringOnlyDependenciesInLayers().withOptionalLayers(true);
    for (String name : MAY_USE.keySet()) {
      layers = layers.layer(name).definedBy("io.sparklog." + name);
    }
    for (Map.Entry<String, List<String>> layer : MAY_USE.entrySet()) {
      layers = layer.getValue().isEmpty()
          ? layers.whereLayer(layer.getKey()).mayNotAccessAnyLayer()
          : layers.whereLayer(layer.getKey()).mayOnlyAccessLayers(layer.getValue().toArray(String[]::new));
    }
    return layers;
  }

  /** A package without a row above would be free of all rules. The main program of the server puts all together. */
  @ArchTest
  static final ArchRule PACKAGES = classes().should()
      .resideInAnyPackage(
          Stream.concat(MAY_USE.keySet().stream(), Stream.of("serve")).map(name -> "io.sparklog." + name).toArray(String[]::new));

  /** Kafka's classes may change with each version: few packages know them. The connector is compiled without them. */
  @ArchTest
  static final ArchRule KAFKA = noClasses().that()
      .resideOutsideOfPackages("io.sparklog.serve", "io.sparklog.serve.protocol", "io.sparklog.serve.records", "io.sparklog.serve.topics",
          "io.sparklog.serve.coordinator", "io.sparklog.serve.security")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("org.apache.kafka..");

  /** Netty is the network's, and the buffers of answers are Netty's. Spark brings Netty, so the connector is compiled with it. */
  @ArchTest
  static final ArchRule NETTY = noClasses().that()
      .resideOutsideOfPackages("io.sparklog.serve", "io.sparklog.serve.net", "io.sparklog.serve.protocol", "io.sparklog.serve.records")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("io.netty..");

  /** Public though no bytecode of another package names them: Spark finds the first four by name, constants of Layout are inlined. */
  private static final Set<String> FOUND_BY_NAME = Set.of("catalog.PartlogCatalog", "catalog.PartlogProvider", "catalog.SparklogProvider",
      "serve.Serve", "format.Layout");

  /** Public for tests of other packages alone. */
  private static final Set<String> FOR_TESTS = Set.of("log.Checkpoint", "log.Features", "merge.MergePlan", "read.Keys");

  /** A package shows its entrance alone: a class is public if a class of another package uses the class, or a class in it. */
  @ArchTest
  static final ArchRule ENTRANCES = classes().that()
      .arePublic()
      .and()
      .areTopLevelClasses()
      .and(DescribedPredicate.describe("are no exceptions", LayersTest::isNoException))
      .should(ArchCondition.from(DescribedPredicate.describe("be used by another package", LayersTest::isUsedOutside)));

  private static boolean isNoException(JavaClass type) {
    String name = type.getName().replace("io.sparklog.", "");
    return !FOUND_BY_NAME.contains(name) && !FOR_TESTS.contains(name);
  }

  private static boolean isUsedOutside(JavaClass type) {
    return Stream
        .concat(type.getDirectDependenciesToSelf().stream(),
            type.getPackage()
                .getClasses()
                .stream()
                .filter(inner -> inner.getName().startsWith(type.getName() + "$"))
                .flatMap(inner -> inner.getDirectDependenciesToSelf().stream()))
        .anyMatch(use -> !use.getOriginClass().getPackageName().equals(type.getPackageName()));
  }

  /** A server has no jar of Spark. And the log is tested, and broken on purpose, in processes that start without Spark. */
  @ArchTest
  static final ArchRule SPARK = noClasses().that()
      .resideInAnyPackage("..format..", "..storage..", "..log..", "..read..", "..stream..", "..write..", "..upkeep..", "..view..",
          "..merge..", "..admin..", "..routing..", "..segment..", "..json..", "..query..", "..transfer..", "..spec..", "..feed..",
          "..commits..", "..serve..")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("org.apache.spark..");

  @ArchTest
  static final ArchRule HADOOP = noClasses().that()
      .resideOutsideOfPackage("..storage..")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("org.apache.hadoop..");

  /** No circle among top-level classes: each can be read after those that it uses. */
  @ArchTest
  static final ArchRule CIRCLES = slices().assignedFrom(new SliceAssignment() {
    @Override
    public SliceIdentifier getIdentifierOf(JavaClass javaClass) {
      String name = javaClass.getName();
      return name.startsWith("io.sparklog.") ? SliceIdentifier.of(name.replaceFirst("\\$.*", "")) : SliceIdentifier.ignore();
    }

    @Override
    public String getDescription() {
      return "top-level classes";
    }
  }).should().beFreeOfCycles();

  /** One place decides what is a safe way to a file. The file that releases a test's stop is under no root. */
  @ArchTest
  static final ArchRule FILES = noClasses().that()
      .resideOutsideOfPackage("..storage..")
      .and()
      .doNotHaveFullyQualifiedName("io.sparklog.log.Step")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName("java.nio.file.Files")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("java.nio.channels.FileChannel")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("java.io.File");

  /** Packages that read know topics, not how and where they are kept: so topics of another kind can be read. */
  @ArchTest
  static final ArchRule TOPICS = noClasses().that()
      .resideInAnyPackage("..read..", "..query..", "..stream..", "..source..")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.storage.LogStore")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.storage.ReadStore")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.segment.Names")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.log.Root")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.log.TopicLog");

  /** A reader can change nothing, and reads a store that cannot be written. */
  @ArchTest
  static final ArchRule READERS = classes().that().resideOutsideOfPackage("..storage..").should(new ArchCondition<>("need what they take") {
    @Override
    public void check(JavaClass owner, ConditionEvents events) {
      boolean takes = owner.getFields().stream().anyMatch(field -> isLogStore(field.getRawType()))
          || owner.getCodeUnits().stream().anyMatch(unit -> unit.getRawParameterTypes().stream().anyMatch(LayersTest::isLogStore));
      boolean gives = owner.getMethods().stream().anyMatch(method -> isLogStore(method.getRawReturnType()));
      boolean needs = owner.getCodeUnitAccessesFromSelf()
          .stream()
          .filter(call -> !call.getTargetOwner().equals(owner))
          .anyMatch(call -> call.getTarget().getRawParameterTypes().stream().anyMatch(LayersTest::isLogStore) || isOfLogStoreAlone(call));
      if (takes && !gives && !needs) {
        events.add(SimpleConditionEvent.violated(owner, owner.getName() + " takes a LogStore, and a ReadStore would do"));
      }
    }
  });

  private static boolean isLogStore(JavaClass type) {
    return type.getName().equals("io.sparklog.storage.LogStore");
  }

  /** A call names the type of the variable, so a method of {@code ReadStore} is asked of a {@code LogStore} too. */
  private static boolean isOfLogStoreAlone(JavaCodeUnitAccess<?> call) {
    return isLogStore(call.getTargetOwner())
        && call.getTargetOwner().getMethods().stream().anyMatch(declared -> declared.getName().equals(call.getTarget().getName()));
  }

  /** One class commits what others want changed, and always does what follows: no caller can forget it. */
  @ArchTest
  static final ArchRule COMMITS = noClasses().that()
      .resideOutsideOfPackages("..log..", "..merge..", "..upkeep..")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.log.Committer")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.log.Committers");

  /** Below that class, merging and retention commit too, with what it hands them. */
  @ArchTest
  static final ArchRule COMMITTERS = noClasses().that()
      .doNotHaveFullyQualifiedName("io.sparklog.upkeep.TopicWork")
      .should()
      .callConstructorWhere(isOf("io.sparklog.log.Committers", "io.sparklog.upkeep.Upkeep"));

  @ArchTest
  static final ArchRule COMMITTER = noClasses().that()
      .doNotHaveFullyQualifiedName("io.sparklog.log.Committers")
      .should()
      .callConstructorWhere(isOf("io.sparklog.log.Committer"));

  private static DescribedPredicate<JavaConstructorCall> isOf(String... classes) {
    return DescribedPredicate.describe("it is one of " + String.join(", ", classes),
        call -> List.of(classes).contains(call.getTargetOwner().getName()));
  }

  /** A store without links can have everything but the Kafka view. */
  @ArchTest
  static final ArchRule LINKS = noClasses().that()
      .resideOutsideOfPackage("..storage..")
      .and()
      .doNotHaveFullyQualifiedName("io.sparklog.view.KafkaView")
      .and()
      .doNotHaveFullyQualifiedName("io.sparklog.view.SegmentView")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.storage.LinkingStore")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.storage.FileStamper");

  /** Clocks and randomness are handed in where a write begins, so that what follows can be tested at any time and seed. */
  @ArchTest
  static final ArchRule CLOCK = noClasses().that()
      .resideInAnyPackage("..format..", "..storage..", "..log..", "..read..", "..stream..", "..write..", "..upkeep..", "..view..",
          "..merge..", "..admin..", "..routing..", "..segment..", "..json..", "..query..", "..transfer..", "..spec..", "..sink..",
          "..source..")
      .should()
      .callMethod(System.class, "currentTimeMillis")
      .orShould()
      .callMethod(System.class, "nanoTime")
      .orShould()
      .callMethod(Math.class, "random");

  /** A logger in a constant starts the logging of the process with its class, which costs each small JVM a fifth of a second. */
  @ArchTest
  static final ArchRule LOGGERS = noClasses().that()
      .doNotHaveFullyQualifiedName("io.sparklog.spec.Warnings")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("org.slf4j..");

  /** A commit waits after a lost put, and a test's stop for its release; nothing else waits for time to pass. */
  @ArchTest
  static final ArchRule SLEEP = noClasses().that()
      .doNotHaveFullyQualifiedName("io.sparklog.log.Pace")
      .and()
      .doNotHaveFullyQualifiedName("io.sparklog.log.Step")
      .should()
      .callMethod(Thread.class, "sleep", long.class);
}
