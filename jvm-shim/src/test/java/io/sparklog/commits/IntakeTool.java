package io.sparklog.commits;

import io.sparklog.format.MutatedBatches;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * Sends mutated batches to an existing topic: {@code <root> <topic> <seed> <batches>}. Prints how many batches and records were let in. An
 * exception that is no refusal ends the process.
 */
public final class IntakeTool {
  private IntakeTool() {}

  public static void main(String[] args) throws Exception {
    Root root = Root.of(args[0]);
    Random random = new Random(Long.parseLong(args[2]));
    Supplier<byte[]> batches = MutatedBatches.of(random.nextLong());
    int accepted = 0;
    long records = 0;
    try (TopicWriters writers = new TopicWriters(root, CommitSettings.USUAL, topic -> {}, Clock.systemUTC(), random)) {
      State state = root.state(args[1]);
      Intake intake = new Intake(state, Clock.systemUTC());
      List<CompletableFuture<AppendResult>> sent = new ArrayList<>();
      for (int left = Integer.parseInt(args[3]); left > 0; left--) {
        int partition = random.nextInt(state.partitions());
        byte[] batch = batches.get();
        try {
          PreparedAppend checked = intake.prepared(partition, ByteBuffer.wrap(batch));
          sent.add(writers.append(args[1], partition, ByteBuffer.wrap(batch), CompletableFuture.completedFuture(checked)));
        } catch (AppendRefused refused) {
          // As most are.
        }
      }
      for (CompletableFuture<AppendResult> each : sent) {
        AppendResult appended = each.get();
        accepted++;
        records += appended.end() - appended.base();
      }
    }
    System.out.println(accepted + " " + records);
  }
}
