// Copies a topic with Telegraf, of which only the plugins for Kafka are built.
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/influxdata/telegraf/agent"
	"github.com/influxdata/telegraf/config"
	_ "github.com/influxdata/telegraf/plugins/inputs/kafka_consumer"
	_ "github.com/influxdata/telegraf/plugins/outputs/kafka"
	_ "github.com/influxdata/telegraf/plugins/parsers/value"
	_ "github.com/influxdata/telegraf/plugins/serializers/template"
)

const configuration = `
[agent]
  interval = "100ms"
  flush_interval = "100ms"
  omit_hostname = true
  skip_processors_after_aggregators = true

[[inputs.kafka_consumer]]
  brokers = ["BOOTSTRAP"]
  version = "2.1.0"
  topics = ["SOURCE"]
  consumer_group = "copier"
  offset = "oldest"
  data_format = "value"
  data_type = "string"

[[outputs.kafka]]
  brokers = ["BOOTSTRAP"]
  version = "2.1.0"
  topic = "TARGET"
  required_acks = -1
  data_format = "template"
  template = '{{.Field "value"}}'
`

func main() {
	names := strings.NewReplacer("BOOTSTRAP", os.Args[1], "SOURCE", os.Args[2], "TARGET", os.Args[3])
	given := config.NewConfig()
	check(given.LoadConfigData([]byte(names.Replace(configuration)), "copier.toml"))
	check(agent.NewAgent(given).Run(context.Background()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
