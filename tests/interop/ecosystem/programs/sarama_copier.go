// Copies a topic with sarama: a record is marked after its copy is acknowledged. Marks are committed
// now and then, since a commit waits for the long poll before it.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
)

type copier struct {
	producer sarama.SyncProducer
	target   string
}

func (copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		copied := &sarama.ProducerMessage{Topic: c.target, Value: sarama.ByteEncoder(message.Value)}
		if _, _, err := c.producer.SendMessage(copied); err != nil {
			return err
		}
		session.MarkMessage(message, "")
	}
	return nil
}

func main() {
	bootstrap, source, target := os.Args[1], os.Args[2], os.Args[3]
	sending := sarama.NewConfig()
	sending.Version = sarama.MaxVersion
	sending.Net.MaxOpenRequests = 1
	sending.Producer.Idempotent = true
	sending.Producer.RequiredAcks = sarama.WaitForAll
	sending.Producer.Return.Successes = true
	sending.Producer.Retry.Max = 1000
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, sending)
	if err != nil {
		log.Fatal(err)
	}
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 300 * time.Millisecond
	config.Consumer.Group.Session.Timeout = 2 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, "copier", config)
	if err != nil {
		log.Fatal(err)
	}
	for {
		err := group.Consume(context.Background(), []string{source}, copier{producer, target})
		if err != nil {
			log.Print(err)
			time.Sleep(100 * time.Millisecond)
		}
	}
}
