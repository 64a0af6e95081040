// Copies a topic with kafka-go: a record's offset is committed after its copy is acknowledged.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	bootstrap, source, target := os.Args[1], os.Args[2], os.Args[3]
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{bootstrap},
		Topic:             source,
		GroupID:           "copier",
		StartOffset:       kafka.FirstOffset,
		SessionTimeout:    2 * time.Second,
		RebalanceTimeout:  2 * time.Second,
		HeartbeatInterval: 500 * time.Millisecond,
		JoinGroupBackoff:  200 * time.Millisecond,
	})
	writer := kafka.Writer{
		Addr:         kafka.TCP(bootstrap),
		Topic:        target,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
	}
	background := context.Background()
	for {
		message, err := reader.FetchMessage(background)
		if err != nil {
			log.Print(err)
			continue
		}
		for {
			err := writer.WriteMessages(background, kafka.Message{Value: message.Value})
			if err == nil {
				break
			}
			log.Print(err)
		}
		if err := reader.CommitMessages(background, message); err != nil {
			log.Print(err)
		}
	}
}
