package main

import (
	"context"
	"errors"

	shopify "github.com/IBM/sarama"
)

type sarama struct{ address, topic string }

func (s sarama) settings() *shopify.Config {
	config := shopify.NewConfig()
	config.Version = shopify.MaxVersion
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1 // sarama demands it of an idempotent producer
	config.Producer.RequiredAcks = shopify.WaitForAll
	config.Producer.Compression = shopify.CompressionLZ4
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = shopify.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func (s sarama) write(_ context.Context, keys, values []string) error {
	producer, err := shopify.NewSyncProducer([]string{s.address}, s.settings())
	if err != nil {
		return err
	}
	messages := make([]*shopify.ProducerMessage, len(keys))
	for i := range keys {
		messages[i] = &shopify.ProducerMessage{Topic: s.topic, Key: shopify.StringEncoder(keys[i]), Value: shopify.StringEncoder(values[i])}
	}
	return errors.Join(producer.SendMessages(messages), producer.Close())
}

// member takes records of all partitions until it has enough, and commits the positions.
type member struct {
	records int
	taken   chan record
	done    context.CancelFunc
}

func (m member) Setup(shopify.ConsumerGroupSession) error { return nil }

func (m member) Cleanup(session shopify.ConsumerGroupSession) error {
	session.Commit()
	return nil
}

func (m member) ConsumeClaim(session shopify.ConsumerGroupSession, claim shopify.ConsumerGroupClaim) error {
	for {
		select {
		case each, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(each, "")
			m.taken <- record{each.Partition, each.Offset, each.Timestamp.UnixMilli(), string(each.Key), string(each.Value)}
			if len(m.taken) == m.records {
				m.done()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (s sarama) read(ctx context.Context, group string, records int) ([]record, error) {
	consumer, err := shopify.NewConsumerGroup([]string{s.address}, group, s.settings())
	if err != nil {
		return nil, err
	}
	reading, done := context.WithCancel(ctx)
	defer done()
	taker := member{records, make(chan record, records), done}
	for reading.Err() == nil {
		if err := consumer.Consume(reading, []string{s.topic}, taker); err != nil {
			return nil, err
		}
	}
	close(taker.taken)
	var found []record
	for each := range taker.taken {
		found = append(found, each)
	}
	return found, errors.Join(ctx.Err(), consumer.Close())
}
