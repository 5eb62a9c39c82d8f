package io.sparklog.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A store without links that keeps few files open for writing, such as HDFS. */
final class OpenFilesTest {
  private final List<String> appends = new ArrayList<>();

  private LogStore twoFiles(LogStore real) {
    return (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("isRemote")) {
            return true;
          }
          if (method.getName().equals("openFilesMax")) {
            return 2;
          }
          if (method.getName().equals("append")) {
            appends.add((String) arguments[0]);
          }
          try {
            return method.invoke(real, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
  }

  @Test
  void anIndexIsWrittenWhileItsFileIsOpen(@TempDir Path directory) throws IOException {
    LogStore store = twoFiles(Stores.open(new StoreRef(directory.toString())));
    TreeMap<String, String> config = Writes.config();
    config.put("partitions", "5");
    TopicPlan plan = TopicPlan.of("t", new Root(store).topic("t").newest(), config);
    List<TopicReport> reports = new Writes("x", 1, 6000, 2000, 1 << 14, 64 << 20, 0, 1000).reports(store, plan,
        Names.identity(new Random(1)));
    List<Segment> segments = reports.get(0).pieces().stream().map(piece -> ((TopicReport.Piece.InFile) piece).segment()).toList();
    assertEquals(5, segments.size());
    assertTrue(segments.stream().allMatch(segment -> segment.indexBytes() > 0), segments::toString);
    assertEquals(List.of(), appends);
  }
}
