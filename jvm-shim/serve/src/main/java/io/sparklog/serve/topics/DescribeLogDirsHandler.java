package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.security.Rights;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.apache.kafka.common.message.DescribeLogDirsRequestData.DescribableLogDirTopic;
import org.apache.kafka.common.message.DescribeLogDirsResponseData.DescribeLogDirsPartition;
import org.apache.kafka.common.message.DescribeLogDirsResponseData.DescribeLogDirsResult;
import org.apache.kafka.common.message.DescribeLogDirsResponseData.DescribeLogDirsTopic;
import org.apache.kafka.common.message.DescribeLogDirsResponseData;
import org.apache.kafka.common.requests.DescribeLogDirsRequest;
import org.apache.kafka.common.requests.DescribeLogDirsResponse;

/** Tells the bytes of partitions. The root is the one directory. */
public record DescribeLogDirsHandler(ServedTopics topics, Workers work) implements Handler<DescribeLogDirsRequest> {
  @Override
  public CompletableFuture<DescribeLogDirsResponse> answer(ClientRequest asked, DescribeLogDirsRequest request) {
    return work.run(() -> {
      List<DescribeLogDirsTopic> told = new ArrayList<>();
      if (request.isAllTopicPartitions()) {
        topics.all().values().stream().filter(state -> asked.rights().mayRead(state.topic())).forEach(state -> told.add(all(state)));
      } else {
        request.data().topics().forEach(topic -> told.addAll(some(asked.rights(), topic)));
      }
      DescribeLogDirsResult root = new DescribeLogDirsResult().setLogDir(topics.root().location()).setTopics(told);
      return new DescribeLogDirsResponse(new DescribeLogDirsResponseData().setResults(List.of(root)));
    });
  }

  private static DescribeLogDirsTopic all(State state) {
    return topic(state, IntStream.range(0, state.partitions()).boxed().toList());
  }

  private List<DescribeLogDirsTopic> some(Rights rights, DescribableLogDirTopic asked) {
    return topics.newest(asked.topic())
        .filter(state -> rights.mayRead(state.topic()))
        .map(state -> topic(state, asked.partitions().stream().filter(each -> each >= 0 && each < state.partitions()).toList()))
        .stream()
        .toList();
  }

  private static DescribeLogDirsTopic topic(State state, Collection<Integer> partitions) {
    return new DescribeLogDirsTopic().setName(state.topic())
        .setPartitions(partitions.stream()
            .map(each -> new DescribeLogDirsPartition().setPartitionIndex(each)
                .setPartitionSize(state.segments(each).stream().mapToLong(Segment::bytes).sum()))
            .toList());
  }
}
