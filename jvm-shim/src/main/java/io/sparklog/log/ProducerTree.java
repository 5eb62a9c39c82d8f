package io.sparklog.log;

import io.sparklog.log.ProducerBatches.Producer;
import java.util.List;
import java.util.function.Consumer;

/**
 * A balanced tree of the newest batches by producer, which also finds the oldest ones. Never changes: a change gives another tree, which
 * shares all nodes with this tree but the nodes on a path. Null is the empty tree.
 */
final class ProducerTree {
  private final ProducerTree left;
  private final ProducerBatches last;
  private final ProducerTree right;
  private final int height;
  private final int size;
  /** The batches of the lowest time in this tree, and of the first producer with this time. */
  private final ProducerBatches oldest;

  private ProducerTree(ProducerTree left, ProducerBatches last, ProducerTree right) {
    this.left = left;
    this.last = last;
    this.right = right;
    this.height = 1 + Math.max(height(left), height(right));
    this.size = size(left) + 1 + size(right);
    ProducerBatches first = left != null && left.oldest.time() <= last.time() ? left.oldest : last;
    this.oldest = right != null && right.oldest.time() < first.time() ? right.oldest : first;
  }

  /** The tree of these batches, in the order of their producers. */
  static ProducerTree of(List<ProducerBatches> sorted) {
    int middle = sorted.size() / 2;
    return sorted.isEmpty()
        ? null
        : new ProducerTree(of(sorted.subList(0, middle)), sorted.get(middle), of(sorted.subList(middle + 1, sorted.size())));
  }

  static int height(ProducerTree tree) {
    return tree == null ? 0 : tree.height;
  }

  static int size(ProducerTree tree) {
    return tree == null ? 0 : tree.size;
  }

  ProducerBatches oldest() {
    return oldest;
  }

  /** The batches of a producer; null without batches. */
  static ProducerBatches get(ProducerTree tree, Producer producer) {
    ProducerTree at = tree;
    while (at != null) {
      int order = producer.compareTo(at.last.producer());
      if (order == 0) {
        return at.last;
      }
      at = order < 0 ? at.left : at.right;
    }
    return null;
  }

  /** The tree with these batches, in place of others of the producer. */
  static ProducerTree with(ProducerTree tree, ProducerBatches last) {
    if (tree == null) {
      return new ProducerTree(null, last, null);
    }
    int order = last.producer().compareTo(tree.last.producer());
    if (order == 0) {
      return new ProducerTree(tree.left, last, tree.right);
    }
    return order < 0 ? balanced(with(tree.left, last), tree.last, tree.right) : balanced(tree.left, tree.last, with(tree.right, last));
  }

  /** The tree without the batches of a producer that it has. */
  static ProducerTree without(ProducerTree tree, Producer producer) {
    int order = producer.compareTo(tree.last.producer());
    if (order < 0) {
      return balanced(without(tree.left, producer), tree.last, tree.right);
    }
    if (order > 0) {
      return balanced(tree.left, tree.last, without(tree.right, producer));
    }
    if (tree.left == null || tree.right == null) {
      return tree.left == null ? tree.right : tree.left;
    }
    ProducerBatches next = tree.right.first();
    return balanced(tree.left, next, without(tree.right, next.producer()));
  }

  private ProducerBatches first() {
    ProducerTree at = this;
    while (at.left != null) {
      at = at.left;
    }
    return at.last;
  }

  /** A tree of two trees whose heights differ by at most two. */
  private static ProducerTree balanced(ProducerTree left, ProducerBatches last, ProducerTree right) {
    if (height(left) > height(right) + 1) {
      return height(left.left) >= height(left.right)
          ? new ProducerTree(left.left, left.last, new ProducerTree(left.right, last, right))
          : new ProducerTree(new ProducerTree(left.left, left.last, left.right.left), left.right.last,
              new ProducerTree(left.right.right, last, right));
    }
    if (height(right) > height(left) + 1) {
      return height(right.right) >= height(right.left)
          ? new ProducerTree(new ProducerTree(left, last, right.left), right.last, right.right)
          : new ProducerTree(new ProducerTree(left, last, right.left.left), right.left.last,
              new ProducerTree(right.left.right, right.last, right.right));
    }
    return new ProducerTree(left, last, right);
  }

  /** Takes all batches, in the order of their producers. */
  static void forEach(ProducerTree tree, Consumer<ProducerBatches> taker) {
    if (tree != null) {
      forEach(tree.left, taker);
      taker.accept(tree.last);
      forEach(tree.right, taker);
    }
  }
}
