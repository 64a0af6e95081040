/*
 * Exchanges frames with a broker: sends one request again and again and reads the answers, with no
 * client library in between.
 *
 *   exchange NAME=NUMBER ... request=FILE [follow=FILE]
 *
 *   port         where the broker listens, on the loopback interface
 *   request      a file with a frame, its size included
 *   error_at     where in an answer, its size included, two bytes have to be 0
 *   count        how many requests in all
 *   connections  over how many connections, in turns                       (1)
 *   under_way    how many of each connection may be unanswered             (1)
 *   rate         requests a second, sent when they are due, however many
 *                are unanswered; 0 sends the next one for an answer        (0)
 *   skip         how many of the first requests count for no latency       (0)
 *
 * A latency runs from when a request was due to its answer, so that a broker that stalls is charged
 * with all that waits behind the stall. With follow=FILE, a Fetch, one more connection reads what
 * is written, and a second latency runs until the records of the request have arrived there:
 *
 *   offset_at    where in the Fetch the offset is
 *   records_at   where in its answer the record batches begin
 *   first        the offset that the first record will have
 *   records      how many records a request has
 *
 * Prints one line of JSON: seconds, and for each kind of latency the milliseconds of p50, p95, p99,
 * p99.9 and the worst.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, EVENTS = 256, TIMER = -1, FOLLOWER = -2 };

struct frame {
        char *bytes;
        long size;
};

struct connection {
        int socket;
        long sent, answered; /* requests */
        long *numbers;       /* of those under way, in a ring */
        long unsent;         /* bytes of requests that the socket has not taken yet */
        int waits;           /* until it takes more */
        char *in;
        long filled, capacity;
};

static long port, error_at = -1, count, connections = 1, under_way = 1, rate, skip;
static long offset_at, records_at, first, records = 1;
static const char *request_file, *follow_file;

static struct frame request, copies, follow;
static struct connection *all, follower;
static double *due, *acknowledged, *arrived; /* by number of request */
static long sent, answered, consumed;
static int poller;

static void die(const char *what, const char *why) {
        fprintf(stderr, "exchange: %s: %s\n", what, why);
        exit(1);
}

static double now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec + t.tv_nsec / 1e9;
}

static uint32_t int32_at(const char *bytes) {
        uint32_t number;
        memcpy(&number, bytes, sizeof number);
        return be32toh(number);
}

static uint64_t int64_at(const char *bytes) {
        uint64_t number;
        memcpy(&number, bytes, sizeof number);
        return be64toh(number);
}

static void *some(size_t number, size_t size) {
        void *memory = calloc(number ? number : 1, size);
        if (!memory)
                die("memory", strerror(errno));
        return memory;
}

static void parse(char **arguments) {
        struct { const char *name; long *number; const char **text; } known[] = {
            {"port", &port, 0}, {"error_at", &error_at, 0}, {"count", &count, 0},
            {"connections", &connections, 0}, {"under_way", &under_way, 0}, {"rate", &rate, 0},
            {"skip", &skip, 0}, {"offset_at", &offset_at, 0}, {"records_at", &records_at, 0},
            {"first", &first, 0}, {"records", &records, 0}, {"request", 0, &request_file},
            {"follow", 0, &follow_file},
        };
        for (; *arguments; arguments++) {
                char *value = strchr(*arguments, '=');
                if (!value)
                        die(*arguments, "not NAME=VALUE");
                *value++ = 0;
                unsigned n = 0;
                while (n < sizeof known / sizeof *known && strcmp(known[n].name, *arguments))
                        n++;
                if (n == sizeof known / sizeof *known)
                        die(*arguments, "not known");
                if (known[n].number)
                        *known[n].number = atol(value);
                else
                        *known[n].text = value;
        }
        if (!request_file || count <= 0)
                die("usage", "request=FILE port=N count=N [NAME=NUMBER ...]");
}

static struct frame loaded(const char *path) {
        FILE *file = fopen(path, "rb");
        if (!file)
                die(path, strerror(errno));
        fseek(file, 0, SEEK_END);
        struct frame frame = {0, ftell(file)};
        rewind(file);
        frame.bytes = some(frame.size, 1);
        if (fread(frame.bytes, 1, frame.size, file) != (size_t)frame.size)
                die(path, "cannot be read");
        fclose(file);
        return frame;
}

/* As many requests in a row as one send takes. */
static void prepare_copies(void) {
        long number = under_way < CHUNK / request.size ? under_way : CHUNK / request.size;
        if (number < 1)
                number = 1;
        copies = (struct frame){some(number, request.size), number * request.size};
        for (long n = 0; n < number; n++)
                memcpy(copies.bytes + n * request.size, request.bytes, request.size);
}

static void add(int descriptor, long tag) {
        struct epoll_event event = {EPOLLIN, {.u64 = (uint64_t)tag}};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event))
                die("epoll", strerror(errno));
}

static void open_connection(struct connection *c, long tag) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        c->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&address, sizeof address))
                die("connect", strerror(errno));
        setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        fcntl(c->socket, F_SETFL, O_NONBLOCK);
        c->capacity = tag == FOLLOWER ? 2 * CHUNK : 16 << 10;
        c->in = some(c->capacity, 1);
        c->numbers = some(under_way, sizeof *c->numbers);
        add(c->socket, tag);
}

/* Sends what the connection owes, or as much as its socket takes now. */
static void push(struct connection *c) {
        int waits = 0;
        while (c->unsent > 0 && !waits) {
                long start = (request.size - c->unsent % request.size) % request.size;
                long length = copies.size - start < c->unsent ? copies.size - start : c->unsent;
                ssize_t taken = send(c->socket, copies.bytes + start, length, MSG_NOSIGNAL);
                if (taken < 0 && errno != EAGAIN)
                        die("send", strerror(errno));
                waits = taken < length;
                c->unsent -= taken > 0 ? taken : 0;
        }
        struct epoll_event event = {EPOLLIN | (waits ? EPOLLOUT : 0), {.u64 = c - all}};
        if (c->waits != waits)
                epoll_ctl(poller, EPOLL_CTL_MOD, c->socket, &event);
        c->waits = waits;
}

static void ask(struct connection *c, double when) {
        c->numbers[c->sent++ % under_way] = sent;
        due[sent++] = when;
        c->unsent += request.size;
}

static void take_answers(struct connection *c) {
        long at = 0, size = 0;
        for (; c->filled - at >= 4; at += size) {
                size = 4 + (long)int32_at(c->in + at);
                if (c->filled - at < size)
                        break;
                if (error_at >= 0 && (error_at + 2 > size || c->in[at + error_at] ||
                                      c->in[at + error_at + 1]))
                        die("answer", "an error");
                acknowledged[c->numbers[c->answered++ % under_way]] = now();
                answered++;
        }
        memmove(c->in, c->in + at, c->filled -= at);
        if (size > c->capacity)
                c->in = realloc(c->in, c->capacity = size);
}

static void ask_follower(long offset) {
        uint64_t number = htobe64(offset);
        memcpy(follow.bytes + offset_at, &number, sizeof number);
        if (send(follower.socket, follow.bytes, follow.size, MSG_NOSIGNAL) != follow.size)
                die("follow", "the socket is full");
}

/* The offset behind the last whole batch of an answer to a Fetch, or -1. */
static long end_of(const char *answer, long size) {
        long end = -1;
        for (long at = records_at; at + 61 <= size;) {
                long length = 12 + (long)int32_at(answer + at + 8);
                if (at + length > size)
                        break;
                end = int64_at(answer + at) + int32_at(answer + at + 23) + 1;
                at += length;
        }
        return end;
}

static void take_records(struct connection *c) {
        if (c->filled < 4)
                return;
        long size = 4 + (long)int32_at(c->in);
        if (size > c->capacity)
                c->in = realloc(c->in, c->capacity = size);
        if (c->filled < size)
                return;
        long end = end_of(c->in, size);
        double moment = now();
        while (consumed < count && first + (consumed + 1) * records <= end)
                arrived[consumed++] = moment;
        c->filled = 0;
        if (consumed < count)
                ask_follower(end > 0 ? end : first + consumed * records);
}

static void receive(struct connection *c) {
        ssize_t got = recv(c->socket, c->in + c->filled, c->capacity - c->filled, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN))
                die("receive", got ? strerror(errno) : "the broker closed the connection");
        if (got < 0)
                return;
        c->filled += got;
        if (c == &follower)
                take_records(c);
        else
                take_answers(c);
}

/* For answers that came: as many requests as they make room for. */
static void refill(struct connection *c) {
        double when = now();
        while (sent < count && c->sent - c->answered < under_way)
                ask(c, when);
        push(c);
}

static void set_timer(int timer, double when) {
        struct itimerspec spec = {.it_value = {when, (when - (long)when) * 1e9}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void send_due(int timer, double began) {
        for (; sent < count && began + (double)sent / rate <= now();) {
                struct connection *c = &all[sent % connections];
                if (c->sent - c->answered == under_way)
                        die("rate", "too many requests are unanswered");
                ask(c, began + (double)sent / rate);
                push(c);
        }
        if (sent < count)
                set_timer(timer, began + (double)sent / rate);
}

static void handle(struct epoll_event event, int timer, double began) {
        long tag = (long)event.data.u64;
        if (tag == TIMER) {
                uint64_t times;
                if (read(timer, &times, sizeof times) > 0)
                        send_due(timer, began);
        } else if (tag == FOLLOWER) {
                receive(&follower);
        } else {
                struct connection *c = &all[tag];
                if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                        receive(c);
                if (rate)
                        push(c);
                else
                        refill(c);
        }
}

static double run(void) {
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        add(timer, TIMER);
        if (follow_file)
                ask_follower(first);
        double began = now();
        if (rate)
                send_due(timer, began);
        else
                for (long n = 0; n < connections; n++)
                        refill(&all[n]);
        while (answered < count || (follow_file && consumed < count)) {
                struct epoll_event events[EVENTS];
                int number = epoll_wait(poller, events, EVENTS, 60000);
                if (number == 0)
                        die("wait", "no answer for a minute");
                for (int n = 0; n < number; n++)
                        handle(events[n], timer, began);
        }
        return now() - began;
}

static int ascending(const void *a, const void *b) {
        double difference = *(const double *)a - *(const double *)b;
        return (difference > 0) - (difference < 0);
}

static void print_latencies(const char *name, double *moments) {
        long number = count - skip;
        double *took = some(number, sizeof *took);
        for (long n = 0; n < number; n++)
                took[n] = 1000 * (moments[skip + n] - due[skip + n]);
        qsort(took, number, sizeof *took, ascending);
        printf(", \"%s\": {\"p50\": %.4f, \"p95\": %.4f, \"p99\": %.4f, \"p999\": %.4f, "
               "\"worst\": %.4f}", name, took[number / 2], took[(long)(number * .95)],
               took[(long)(number * .99)], took[(long)(number * .999)], took[number - 1]);
}

int main(int argc, char **argv) {
        (void)argc;
        parse(argv + 1);
        if (rate)
                under_way = count;
        request = loaded(request_file);
        prepare_copies();
        all = some(connections, sizeof *all);
        due = some(count, sizeof *due);
        acknowledged = some(count, sizeof *acknowledged);
        poller = epoll_create1(0);
        for (long n = 0; n < connections; n++)
                open_connection(&all[n], n);
        if (follow_file) {
                follow = loaded(follow_file);
                arrived = some(count, sizeof *arrived);
                open_connection(&follower, FOLLOWER);
        }
        printf("{\"seconds\": %.6f", run());
        print_latencies("acknowledged", acknowledged);
        if (follow_file)
                print_latencies("consumed", arrived);
        printf("}\n");
        return 0;
}
