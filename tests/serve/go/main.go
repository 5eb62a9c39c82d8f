// Command go-clients writes and reads a topic by clients of Kafka that are written in Go.
//
//	go-clients franz-go|sarama ADDRESS TOPIC GROUP RECORDS
//
// It sends RECORDS records with keys by an idempotent producer, in compressed batches. Then a member of GROUP reads and commits them. Each
// record that was read is a line of JSON on standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"
)

const patience = 110 * time.Second

type record struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"`
	Key       string `json:"key"`
	Value     string `json:"value"`
}

type client interface {
	write(ctx context.Context, keys, values []string) error
	read(ctx context.Context, group string, records int) ([]record, error)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 5 {
		return fmt.Errorf("arguments: franz-go|sarama ADDRESS TOPIC GROUP RECORDS")
	}
	address, topic, group := arguments[1], arguments[2], arguments[3]
	records, err := strconv.Atoi(arguments[4])
	if err != nil {
		return err
	}
	clients := map[string]client{"franz-go": franz{address, topic}, "sarama": sarama{address, topic}}
	chosen, found := clients[arguments[0]]
	if !found {
		return fmt.Errorf("unknown client %q", arguments[0])
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	keys, values := make([]string, records), make([]string, records)
	for i := range records {
		keys[i], values[i] = fmt.Sprintf("key-%d", i%7), strconv.Itoa(i)
	}
	if err := chosen.write(ctx, keys, values); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	read, err := chosen.read(ctx, group, records)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	out := json.NewEncoder(os.Stdout)
	for _, each := range read {
		if err := out.Encode(each); err != nil {
			return err
		}
	}
	return nil
}
