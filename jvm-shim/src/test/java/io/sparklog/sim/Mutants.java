package io.sparklog.sim;

import java.util.List;

/** Each rule of the protocol, broken. */
final class Mutants {
  private Mutants() {}

  /** With a seed at which each is found. */
  static final List<Mutant> FOUND = List.of(
      new Mutant(51, "a failed put is taken for another's", "log/VersionPut", "Outcome found = readBack();",
          "Outcome found = Outcome.LOST;"),
      new Mutant(5, "absent after no answer is failed", "log/VersionPut", "    if (unanswered == null) {\n", "    if (true) {\n"),
      new Mutant(22, "the epoch is looked up once, not after each lost race", "write/Append", "if (!once.isIn(log, newest, records)) {",
          "boolean again = Thread.currentThread().getName().equals(txn);\n    Thread.currentThread().setName(txn);\n"
              + "    if (again || !once.isIn(log, newest, records)) {"),
      new Mutant(
          132, "a commit that fails deletes its files although a put was tried", "log/Committer", "if (!putTried()) {", "if (true) {"),
      new Mutant(0, "a pool is not synced", "write/PieceCollector", "      writer.sync();\n", ""),
      new Mutant(0, "the name of a pool is not synced", "write/PieceCollector", "    store.flush(Names.topicFile(plan.topic(), folder));\n",
          ""),
      new Mutant(0, "a reader that misses a version does not list again", "log/TopicLoad",
          "if (last == lastBefore && now.isAgain(before)) {", "if (true) {"),
      new Mutant(1, "a reader whose file is gone gives up", "read/SplitReader", "        planAgain(gone);\n",
          "        throw gone.missing();\n"),
      new Mutant(5, "a writer does not heed the horizon", "write/TopicPlan", "if (plannedVersion < latest.horizon()) {", "if (false) {"),
      new Mutant(23, "vacuum without a horizon", "admin/Vacuum", "if (horizon > state.horizon()) {", "if (false) {"),
      new Mutant(1, "a deletion of the topic does not raise the horizon", "log/NextVersion", "next.horizon = next.number + 1;", ""),
      new Mutant(6, "version files are deleted without a checkpoint that holds them", "upkeep/CommitLogCleaner",
          "if (checkpoints.isEmpty() || versionOf(checkpoints.get(checkpoints.size() - 1)) < boundary) {", "if (false) {"),
      new Mutant(0, "a data file is deleted though another segment of it is live", "upkeep/ReplacedFiles",
          "filter(file -> !live().contains(file))", "filter(file -> true)"),
      new Mutant(0, "a merge is not rechecked after a lost race", "merge/Merge",
          "return merged.stream().filter(one -> !one.liveIn(newest).isEmpty()).toList();", "return merged;"),
      new Mutant(0, "a merge is not durable before its version", "merge/MergeWriter", "      files.sync();\n", ""),
      new Mutant(86, "a merge deletes its files although a put was unclear", "merge/Merging", "} else if (!committer.putTried()) {",
          "} else {"),
      new Mutant(0, "a merge deletes what it replaces before its commit", "merge/Merging",
          "        Optional<Version> version = committer.commit(merge);\n",
          "        for (MergePlan.Run run : runs) {\n          for (Segment segment : run.segments()) {\n"
              + "            log.store().delete(Names.topicFile(log.topic(), segment.file()));\n          }\n        }\n"
              + "        Optional<Version> version = committer.commit(merge);\n"),
      new Mutant(0, "only what a version adds is published", "view/KafkaView", "if (there == null) {", "if (true) {"),
      new Mutant(0, "a process that knows the view never looks at it again", "view/KafkaView", "if (!all && follow(known, put, state)) {",
          "if (follow(known, put, state)) {"),
      new Mutant(4, "indexes that were replaced by shorter ones stay", "view/KafkaView", "view.look(names, put, all || known == null);",
          "view.look(names, put, known == null);"),
      new Mutant(95, "what was replaced stays in the view", "view/KafkaView",
          "gone.values().forEach(segment -> attempt(() -> segmentView.remove(segment.partition(), segment.base())));", ""),
      new Mutant(256, "a reader looks first whether its version is still there, then for the next", "log/TopicLog",
          "if (files.replay(builder) && isUnchanged(known)) {", "if (isUnchanged(known) && files.replay(builder)) {"),
      new Mutant(1502, "version files are deleted downwards", "upkeep/CommitLogCleaner",
          "filter(name -> numberOf(name).getAsLong() < boundary).toList();",
          "filter(name -> numberOf(name).getAsLong() < boundary).sorted(Comparator.reverseOrder()).toList();"),
      new Mutant(513, "a version need not be durable before what it removed is deleted", "upkeep/ReplacedFiles",
          "      store.flush(Names.topicFolder(state.topic()));\n", ""),
      new Mutant(1401, "a merge does not heed the horizon", "merge/Merge", "&& plannedVersion(planned) >= newest.horizon();", ";"),
      new Mutant(259, "an epoch is known by its number alone", "write/Once", "boolean isLast = last.epoch() == query.epoch();",
          "boolean isLast = last.epoch() == query.epoch();\n    if (query != null) {\n      return true;\n    }"),
      new Mutant(2963, "an epoch that follows another's is taken for new", "write/Once", "if (own != null && !own.equals(last.input())) {",
          "if (false) {"),
      new Mutant(2765, "a write whose put was unclear takes a later reason not to commit for its outcome", "log/Committer",
          "if (unseen != null && unseen.query() == null && !change.isIdempotent()) {", "if (false) {"),
      new Mutant(152, "checkpoints are deleted before that of a deletion is there", "upkeep/CommitLogCleaner",
          "if (checkpoints.isEmpty() || versionOf(checkpoints.get(checkpoints.size() - 1)) < kept) {", "if (false) {"),
      new Mutant(1794, "a checkpoint need not be durable before what it stands for is deleted", "upkeep/CommitLogCleaner",
          "    store.flush(folder);\n", ""),
      new Mutant(2, "a process that starts deletes only what it removes itself", "upkeep/ReplacedFiles",
          "      removals.beginAt(state.boundary());\n      readOn", "      removals.beginAt(state.version());\n      readOn"),
      new Mutant(82, "the boundary rises although replaced files are still there", "upkeep/CommitLogCleaner",
          "long settled = new ReplacedFiles(log, state, clock).settle();", "long settled = kept;"),
      new Mutant(811, "nobody looks after the put whether the version it extends is still there", "log/Committer",
          "Optional<VersionPut.Outcome> seen = put.look(outcome);", "Optional<VersionPut.Outcome> seen = Optional.of(outcome);"),
      new Mutant(1869, "an epoch that another attempt put is not made durable", "log/Committer",
          "    Throwable failure = attempt.sync();\n    if (failure == null) {\n",
          "    Throwable failure = null;\n    if (failure == null) {\n"),
      new Mutant(3, "a version need not be durable before it is extended", "log/Committer", "if (log.isDurable(extended)) {",
          "if (true) {"),
      new Mutant(379, "a version need not be durable before its checkpoint", "log/TopicLog", "if (!isDurable(state)) {", "if (false) {"),
      new Mutant(10, "a write that was planned in an earlier routing epoch is committed", "write/Append",
          "if (!state.router().equals(plan.router())) {", "if (false) {"),
      new Mutant(9, "a re-route has no cut", "log/Replay", "Arrays.copyOf(head.ends(), version.ends().length)",
          "new long[version.ends().length]"),
      new Mutant(9, "the cut of one partition is missing", "log/Routing", "    Past last = new Past(version, ends, reroute.moved());\n",
          "    ends[0] = 0;\n    Past last = new Past(version, ends, reroute.moved());\n"),
      new Mutant(9, "a merge joins segments over a cut", "merge/MergePlan", "if (afterCut.test(group.get(i))) {", "if (false) {"));

  /** Those that take more seeds than a test has time for: {@code make sim-mutants}. */
  static final List<Mutant> SOUGHT = List.of(
      new Mutant(0, "a first version that is absent was never there", "log/VersionPut", ".map(state -> Outcome.THERE);",
          ".map(state -> put);"),
      new Mutant(0, "what somebody else's merge replaced is missing in the view", "view/KafkaView",
          "if (viewed(now, e.segment().partition()).stream().anyMatch(segment -> isSame(segment, e.segment()))) {", "if (true) {"),
      new Mutant(0, "a listing that told of a later version is taken for the same again", "log/TopicLoad",
          "if (last == lastBefore && now.isAgain(before)) {", "if (now.isAgain(before)) {"),
      new Mutant(0, "a reader does not look whether its start is still there", "log/TopicLoad",
          "&& start.tag.equals(files.tag(start.first()));", ";"),
      new Mutant(0, "a reader that began without a checkpoint does not look whether that was right", "log/TopicLoad",
          "(start.version >= 0 || checkpoints.containsAll(checkpoints(files.list())))\n        && start", "start.version < 0 || start"),
      new Mutant(0, "a reader that began without a checkpoint does not list again", "log/TopicLoad",
          "checkpoints.containsAll(checkpoints(files.list()))", "true"),
      new Mutant(0, "a topic in which one listing finds nothing does not exist", "log/VersionFiles",
          "Names.newest(names) < 0 ? store.list(Names.topicFolder(topic)) : names;", "names;"));
}
