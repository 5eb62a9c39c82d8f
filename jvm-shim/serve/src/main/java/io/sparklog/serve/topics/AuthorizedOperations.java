package io.sparklog.serve.topics;

import io.sparklog.serve.security.Rights;
import java.util.List;
import org.apache.kafka.common.acl.AclOperation;

/** Rights as Kafka tells them: a bit for each operation. */
final class AuthorizedOperations {
  private static final List<AclOperation> READ = List.of(AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS);
  private static final List<AclOperation> WRITE = List.of(AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER,
      AclOperation.ALTER_CONFIGS);

  private AuthorizedOperations() {}

  static int ofTopic(Rights rights, String topic) {
    return (rights.mayRead(topic) ? bits(READ) : 0) | (rights.mayWrite(topic) ? bits(WRITE) : 0);
  }

  static int ofCluster(Rights rights) {
    return bits(List.of(AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS))
        | (rights.readOnly() ? 0 : bits(List.of(AclOperation.CREATE, AclOperation.IDEMPOTENT_WRITE)));
  }

  private static int bits(List<AclOperation> operations) {
    return operations.stream().mapToInt(operation -> 1 << operation.code()).sum();
  }
}
