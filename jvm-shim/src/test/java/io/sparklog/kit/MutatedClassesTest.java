package io.sparklog.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A mutant names a method, and Java of the method in any format. */
final class MutatedClassesTest {
  private static final String SOURCE = """
                                       package p;
                                       class A {
                                         int f() { return g(1,
                                             "a  b"); }
                                         int g(int a, String b) { return 1; }
                                         int g() { return 2; }
                                         class B { int f() { return 3; } }
                                       }
                                       """;

  @Test
  void theFormatOfAMethodDoesNotMatter() throws IOException {
    assertEquals(SOURCE.replaceFirst("g\\(1,\\s*\"a  b\"\\)", "0"), MutatedClasses.changed(SOURCE, "p/A.f", "g( 1, \"a  b\" )", "0"));
  }

  @Test
  void methodsOfOtherNamesAndClassesDoNotMatter() throws IOException {
    assertEquals(SOURCE.replace("return 2", "return 4"), MutatedClasses.changed(SOURCE, "p/A.g", "2", "4"));
    assertEquals(SOURCE.replace("return 3", "return 4"), MutatedClasses.changed(SOURCE, "p/A.B.f", "3", "4"));
  }

  @ParameterizedTest
  @CsvSource({"p/A.h, return, p/A.h does not exist", "p/A.C.f, return, p/A.C.f does not exist",
      "p/A.g, return, 'p/A.g has 2 times, not once: return'", "p/A.f, 2, 'p/A.f has 0 times, not once: 2'"})
  void aMutantOfAMethodThatChangedIsRefused(String method, String from, String error) {
    assertEquals(error, assertThrows(IllegalArgumentException.class, () -> MutatedClasses.changed(SOURCE, method, from, "")).getMessage());
  }
}
