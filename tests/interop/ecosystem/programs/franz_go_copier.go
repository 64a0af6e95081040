// Copies a topic with franz-go, in transactions: copies and offsets are committed together.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap, source, target := os.Args[1], os.Args[2], os.Args[3]
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap),
		kgo.TransactionalID("copier"),
		kgo.TransactionTimeout(4*time.Second),
		kgo.DefaultProduceTopic(target),
		kgo.ConsumerGroup("copier"),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.SessionTimeout(2*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
	)
	if err != nil {
		log.Fatal(err)
	}
	background := context.Background()
	for {
		fetches := session.PollFetches(background)
		fetches.EachError(func(topic string, partition int32, err error) {
			log.Print(topic, partition, err)
		})
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			log.Fatal(err)
		}
		promise := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(background, &kgo.Record{Value: record.Value}, promise.Promise())
		})
		if _, err := session.End(background, promise.Err() == nil); err != nil {
			log.Fatal(err)
		}
	}
}
