// Copies a topic with Watermill: a message is acknowledged after its copy is published.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	bootstrap, source, target := os.Args[1], os.Args[2], os.Args[3]
	logger := watermill.NewStdLogger(false, false)
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = 2 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	subscriber := must(kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers:               []string{bootstrap},
		Unmarshaler:           kafka.DefaultMarshaler{},
		ConsumerGroup:         "copier",
		OverwriteSaramaConfig: config,
	}, logger))
	publisher := must(kafka.NewPublisher(kafka.PublisherConfig{
		Brokers:   []string{bootstrap},
		Marshaler: kafka.DefaultMarshaler{},
	}, logger))
	router := must(message.NewRouter(message.RouterConfig{}, logger))
	router.AddHandler("copy", source, subscriber, target, publisher,
		func(received *message.Message) ([]*message.Message, error) {
			return message.Messages{message.NewMessage(watermill.NewUUID(), received.Payload)}, nil
		})
	log.Fatal(router.Run(context.Background()))
}
