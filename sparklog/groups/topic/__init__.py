"""Groups of Kafka's clients, in the topic that `sparklog serve` keeps them in."""
