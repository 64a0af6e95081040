/*
 * Loads a broker through librdkafka, as fast as that library goes.
 *
 *   load produce BOOTSTRAP TOPIC PARTITION COUNT SIZE [NAME=VALUE ...]
 *   load consume BOOTSTRAP TOPIC PARTITION COUNT      [NAME=VALUE ...]
 *
 * Both print seconds: from the first record that is sent until the last one is acknowledged, or from
 * the first one that comes, that at offset 0, to the last. NAME=VALUE are librdkafka's settings.
 *
 * The library is the one inside the confluent-kafka wheel, which ships without its header: what is
 * used of it is declared here. Its ABI has not changed since 1.0.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;

typedef struct {
        int err;
        rd_kafka_topic_t *rkt;
        int32_t partition;
        void *payload;
        size_t len;
        void *key;
        size_t key_len;
        int64_t offset;
        void *_private;
} rd_kafka_message_t;

enum { PRODUCER = 0, CONSUMER = 1 };
enum { QUEUE_FULL = -184 };
enum { BATCH = 10000 };

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(
    rd_kafka_conf_t *, void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, rd_kafka_topic_conf_t *);
int rd_kafka_produce(
    rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
int rd_kafka_poll(rd_kafka_t *, int);
int rd_kafka_last_error(void);
const char *rd_kafka_err2str(int);
int rd_kafka_consume_start(rd_kafka_topic_t *, int32_t, int64_t);
ssize_t rd_kafka_consume_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t **, size_t);
int rd_kafka_consume_stop(rd_kafka_topic_t *, int32_t);
void rd_kafka_message_destroy(rd_kafka_message_t *);

static long delivered;

static void die(const char *what, const char *why) {
        fprintf(stderr, "load: %s: %s\n", what, why);
        exit(1);
}

static double now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec + t.tv_nsec / 1e9;
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
        (void)client, (void)opaque;
        if (message->err)
                die("not delivered", rd_kafka_err2str(message->err));
        delivered++;
}

static rd_kafka_conf_t *configuration(const char *bootstrap, char **settings) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char error[512];
        if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, error, sizeof error))
                die("bootstrap.servers", error);
        for (; *settings; settings++) {
                char *value = strchr(*settings, '=');
                if (!value)
                        die(*settings, "not NAME=VALUE");
                *value++ = 0;
                if (rd_kafka_conf_set(conf, *settings, value, error, sizeof error))
                        die(*settings, error);
        }
        return conf;
}

static rd_kafka_t *client(int type, rd_kafka_conf_t *conf) {
        char error[512];
        rd_kafka_t *made = rd_kafka_new(type, conf, error, sizeof error);
        if (!made)
                die("cannot make a client", error);
        return made;
}

/* Text of a few thousand words: compresses about as real records do, unlike one repeated byte. */
static char *payloads(long size, long *period) {
        static const char *words[] = {"broker ", "segment ", "offset ", "batch ", "epoch ",
                                      "leader ", "index ",   "record "};
        char *text = malloc(size + 4096 + 16);
        unsigned state = 1;
        for (long at = 0; at < size + 4096;) {
                state = state * 1103515245 + 12345;
                if (state >> 30 == 0)
                        at += sprintf(text + at, "%u ", state >> 12 & 0xfffff);
                else
                        at += sprintf(text + at, "%s", words[state >> 16 & 7]);
        }
        *period = 4096;
        return text;
}

static void produce(
    const char *bootstrap, const char *name, int partition, long count, long size, char **settings) {
        rd_kafka_conf_t *conf = configuration(bootstrap, settings);
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_t *producer = client(PRODUCER, conf);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, name, NULL);
        long period;
        char *text = payloads(size, &period);
        double began = now();
        for (long n = 0; n < count; n++) {
                char *value = text + n * 61 % period;
                while (rd_kafka_produce(topic, partition, 0, value, size, NULL, 0, NULL)) {
                        if (rd_kafka_last_error() != QUEUE_FULL)
                                die("produce", rd_kafka_err2str(rd_kafka_last_error()));
                        rd_kafka_poll(producer, 5);
                }
                if (n % 1000 == 0)
                        rd_kafka_poll(producer, 0);
        }
        while (delivered < count)
                rd_kafka_poll(producer, 100);
        printf("%.6f\n", now() - began);
}

static void consume(
    const char *bootstrap, const char *name, int partition, long count, char **settings) {
        static rd_kafka_message_t *messages[BATCH];
        rd_kafka_t *consumer = client(CONSUMER, configuration(bootstrap, settings));
        rd_kafka_topic_t *topic = rd_kafka_topic_new(consumer, name, NULL);
        double began = 0;
        if (rd_kafka_consume_start(topic, partition, 0))
                die("consume", rd_kafka_err2str(rd_kafka_last_error()));
        for (long seen = 0; seen < count;) {
                long wanted = !seen ? 1 : count - seen < BATCH ? count - seen : BATCH;
                ssize_t got = rd_kafka_consume_batch(topic, partition, 1000, messages, wanted);
                if (got < 0)
                        die("consume", rd_kafka_err2str(rd_kafka_last_error()));
                if (!seen)
                        began = now();
                for (ssize_t n = 0; n < got; n++) {
                        if (!messages[n]->err)
                                seen++;
                        rd_kafka_message_destroy(messages[n]);
                }
        }
        printf("%.6f\n", now() - began);
        fflush(stdout);
        rd_kafka_consume_stop(topic, partition);
}

int main(int argc, char **argv) {
        if (argc >= 7 && !strcmp(argv[1], "produce"))
                produce(argv[2], argv[3], atoi(argv[4]), atol(argv[5]), atol(argv[6]), argv + 7);
        else if (argc >= 6 && !strcmp(argv[1], "consume"))
                consume(argv[2], argv[3], atoi(argv[4]), atol(argv[5]), argv + 6);
        else
                die("usage", "produce BOOTSTRAP TOPIC PARTITION COUNT SIZE | "
                             "consume BOOTSTRAP TOPIC PARTITION COUNT");
        return 0;
}
