package io.sparklog.sim;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;
import java.util.stream.Stream;

/** {@code MutantSearch <seeds> <rounds> [<part of a rule>]}: how many seeds it takes to find each mutant, in the median. */
final class MutantSearch {
  private MutantSearch() {}

  private record Found(long seed, String what) {}

  public static void main(String[] words) throws Exception {
    long seeds = Long.parseLong(words[0]);
    int rounds = Integer.parseInt(words[1]);
    ExecutorService cores = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
    List<Future<?>> searches = new ArrayList<>();
    for (Mutant mutant : Stream.concat(Mutants.FOUND.stream(), Mutants.SOUGHT.stream()).toList()) {
      if (words.length < 3 || mutant.rule().contains(words[2])) {
        searches.add(cores.submit(() -> search(mutant, seeds, rounds)));
      }
    }
    cores.shutdown();
    cores.awaitTermination(1, TimeUnit.DAYS);
    for (Future<?> search : searches) {
      search.get();
    }
  }

  private static Void search(Mutant mutant, long seeds, int rounds) throws Exception {
    LongFunction<String> finder = mutant.finder();
    List<Long> tries = new ArrayList<>();
    Found first = null;
    int failed = 0;
    for (int round = 0; round < rounds && failed <= rounds / 2; round++) { // The rounds that are left cannot change the median.
      Found found = find(finder, round * seeds, seeds);
      tries.add(found == null ? Long.MAX_VALUE : found.seed() - round * seeds + 1);
      failed += found == null ? 1 : 0;
      first = first == null ? found : first;
    }
    tries.sort(null);
    long median = failed > rounds / 2 ? Long.MAX_VALUE : tries.get(rounds / 2);
    String what = first == null ? "NOT FOUND" : "seed " + first.seed() + ": " + first.what();
    System.out.println(String.format("%-90s %8s %s", mutant.rule(), median == Long.MAX_VALUE ? "> " + seeds : median, what));
    return null;
  }

  private static Found find(LongFunction<String> finder, long first, long count) {
    for (long seed = first; seed < first + count; seed++) {
      String what = finder.apply(seed);
      if (what != null) {
        return new Found(seed, what.substring(0, Math.min(150, what.length())));
      }
    }
    return null;
  }
}
