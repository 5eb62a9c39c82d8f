package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct{ address, topic string }

func (f franz) write(ctx context.Context, keys, values []string) error {
	producer, err := kgo.NewClient(
		kgo.SeedBrokers(f.address),
		kgo.DefaultProduceTopic(f.topic),
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()),
	)
	if err != nil {
		return err
	}
	defer producer.Close()
	records := make([]*kgo.Record, len(keys))
	for i := range keys {
		records[i] = &kgo.Record{Key: []byte(keys[i]), Value: []byte(values[i])}
	}
	return producer.ProduceSync(ctx, records...).FirstErr()
}

func (f franz) read(ctx context.Context, group string, records int) ([]record, error) {
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(f.address),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(f.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var found []record
	for len(found) < records {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(each *kgo.Record) {
			found = append(found, record{each.Partition, each.Offset, each.Timestamp.UnixMilli(), string(each.Key), string(each.Value)})
		})
	}
	return found, consumer.CommitUncommittedOffsets(ctx)
}
