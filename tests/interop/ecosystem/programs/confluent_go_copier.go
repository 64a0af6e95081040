// Copies a topic with confluent-kafka-go: transactions with the offsets in them.
package main

import (
	"context"
	"log"
	"os"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func main() {
	bootstrap, source, target := os.Args[1], os.Args[2], os.Args[3]
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers":        bootstrap,
		"group.id":                 "copier",
		"auto.offset.reset":        "earliest",
		"enable.auto.commit":       false,
		"session.timeout.ms":       2000,
		"heartbeat.interval.ms":    500,
		"reconnect.backoff.max.ms": 200,
	})
	check(err)
	producer, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers":        bootstrap,
		"transactional.id":         "copier",
		"transaction.timeout.ms":   5000,
		"reconnect.backoff.max.ms": 200,
		"linger.ms":                0,
	})
	check(err)
	background := context.Background()
	check(producer.InitTransactions(background))
	check(consumer.Subscribe(source, nil))
	for {
		if message, ok := consumer.Poll(100).(*kafka.Message); ok {
			check(message.TopicPartition.Error)
			check(copied(background, consumer, producer, message, target))
		}
	}
}

// A transaction with the copy of a record and the offset behind it.
func copied(
	background context.Context,
	consumer *kafka.Consumer,
	producer *kafka.Producer,
	message *kafka.Message,
	target string,
) error {
	check(producer.BeginTransaction())
	copy := kafka.Message{
		TopicPartition: kafka.TopicPartition{Topic: &target, Partition: kafka.PartitionAny},
		Value:          message.Value,
	}
	check(producer.Produce(&copy, nil))
	position := message.TopicPartition
	position.Offset++
	group, err := consumer.GetConsumerGroupMetadata()
	check(err)
	positions := []kafka.TopicPartition{position}
	if err := producer.SendOffsetsToTransaction(background, positions, group); err != nil {
		return err
	}
	return producer.CommitTransaction(background)
}

// What failed is begun again by the supervisor, from the offset that was committed.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
