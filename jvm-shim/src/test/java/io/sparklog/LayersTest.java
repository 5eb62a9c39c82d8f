package io.sparklog;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;

/** Who may use whom: docs/ARCHITECTURE.md. Before you loosen a rule, ask whether the code does not belong elsewhere. */
@AnalyzeClasses(packages = "io.sparklog", importOptions = DoNotIncludeTests.class)
final class LayersTest {
  @ArchTest
  static final ArchRule LAYERS = layeredArchitecture().consideringOnlyDependenciesInLayers()
      .layer("catalog")
      .definedBy("..catalog..")
      .layer("source")
      .definedBy("..source..")
      .layer("sink")
      .definedBy("..sink..")
      .layer("spark")
      .definedBy("io.sparklog.spark..")
      .layer("read")
      .definedBy("..read..")
      .layer("write")
      .definedBy("..write..")
      .layer("upkeep")
      .definedBy("..upkeep..")
      .layer("log")
      .definedBy("io.sparklog.log..")
      .layer("partition")
      .definedBy("..partition..")
      .layer("storage")
      .definedBy("..storage..")
      .layer("format")
      .definedBy("..format..")
      .layer("spec")
      .definedBy("..spec..")
      .whereLayer("catalog")
      .mayNotBeAccessedByAnyLayer()
      .whereLayer("source")
      .mayOnlyBeAccessedByLayers("catalog")
      .whereLayer("sink")
      .mayOnlyBeAccessedByLayers("catalog")
      .whereLayer("spark")
      .mayOnlyBeAccessedByLayers("catalog", "source", "sink")
      .whereLayer("read")
      .mayOnlyBeAccessedByLayers("catalog", "source")
      .whereLayer("write")
      .mayOnlyBeAccessedByLayers("sink")
      .whereLayer("upkeep")
      .mayOnlyBeAccessedByLayers("catalog", "write")
      .whereLayer("log")
      .mayOnlyBeAccessedByLayers("catalog", "source", "sink", "read", "write", "upkeep")
      .whereLayer("partition")
      .mayOnlyBeAccessedByLayers("catalog", "source", "sink", "read", "write", "upkeep", "log")
      .whereLayer("storage")
      .mayOnlyBeAccessedByLayers("catalog", "source", "sink", "read", "write", "upkeep", "log")
      .whereLayer("format")
      .mayOnlyBeAccessedByLayers("catalog", "source", "sink", "read", "write", "upkeep", "log");

  /** The log is tested, and broken on purpose, in processes that start without Spark. */
  @ArchTest
  static final ArchRule SPARK = noClasses().that()
      .resideInAnyPackage("..format..", "..storage..", "..log..", "..read..", "..write..", "..upkeep..", "..partition..", "..spec..")
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

  /** One place decides what is a safe way to a file. */
  @ArchTest
  static final ArchRule FILES = noClasses().that()
      .resideOutsideOfPackage("..storage..")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName("java.nio.file.Files")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("java.nio.channels.FileChannel")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("java.io.File");

  /** A store without links can have everything but the Kafka view. */
  @ArchTest
  static final ArchRule LINKS = noClasses().that()
      .resideOutsideOfPackage("..storage..")
      .and()
      .doNotHaveFullyQualifiedName("io.sparklog.upkeep.Publisher")
      .and()
      .doNotHaveFullyQualifiedName("io.sparklog.upkeep.SegmentView")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.storage.LinkingStore")
      .orShould()
      .dependOnClassesThat()
      .haveFullyQualifiedName("io.sparklog.storage.FileStamper");

  /** Clocks and randomness are handed in where a write begins, so that what follows can be tested at any time and seed. */
  @ArchTest
  static final ArchRule CLOCK = noClasses().that()
      .resideInAnyPackage("..format..", "..storage..", "..log..", "..read..", "..write..", "..upkeep..", "..partition..", "..spec..",
          "..sink..", "..source..")
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
      .doNotHaveFullyQualifiedName("io.sparklog.storage.Step")
      .should()
      .callMethod(Thread.class, "sleep", long.class);
}
