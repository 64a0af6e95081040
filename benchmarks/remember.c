/*
 * Stands before a broker and answers from memory what consumers have asked before. With it a client
 * shows how fast it is with a broker that has all answers at hand.
 *
 *   remember port=NUMBER broker=NUMBER
 *
 *   port         where to listen, on the loopback interface
 *   broker       where the broker listens that is asked what is not known yet
 *
 * Of a Fetch with records and of a ListOffsets the answer is kept for good, by the whole request but
 * its header; so neither may the logs change, nor may there be fetch sessions, whose requests are
 * never the same. All else is passed on.
 *
 * Prints a line when it listens.
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
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        FETCH = 1,
        LIST_OFFSETS = 2,
        EMPTY = 400,        /* bytes: a Fetch with less has no records */
        SMALL = 4096,       /* bytes that are sent in one piece */
        HEAD = 8,           /* size, correlation id */
        CLIENT_ID = 12,     /* where its length is */
        SLOTS = 1 << 16,
        CHUNK = 1 << 16,
        EVENTS = 64,
};

struct answer {
        char *key; /* api key, version, and body of the request */
        long key_size;
        off_t at; /* in the file of answers, without its head */
        long size;
        struct answer *next; /* in the same slot */
};

struct piece { /* something that is to be sent */
        char *bytes;
        long size, sent;
        const struct answer *answer; /* what follows, without being copied */
        struct piece *next;
};

struct asked { /* a request that was passed on */
        char *key;
        long key_size;
        struct asked *next;
};

struct connection {
        int socket, is_broker, waits;
        struct connection *other; /* the broker's for the client's, and the reverse */
        char *in;
        long filled, capacity;
        struct piece *first, *last;
        struct asked *oldest, *newest; /* of a client */
};

static struct answer *slots[SLOTS];
static int poller, answers;
static off_t answers_end;

static void die(const char *what) {
        fprintf(stderr, "remember: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void *some(size_t size) {
        void *memory = calloc(1, size ? size : 1);
        if (!memory)
                die("memory");
        return memory;
}

static void *copy(const void *bytes, size_t size) {
        return memcpy(some(size), bytes, size);
}

static uint32_t int32_at(const char *bytes) {
        uint32_t number;
        memcpy(&number, bytes, sizeof number);
        return be32toh(number);
}

static int int16_at(const char *bytes) {
        uint16_t number;
        memcpy(&number, bytes, sizeof number);
        return (int16_t)be16toh(number);
}

static struct answer **slot_of(const char *key, long size) {
        uint64_t hash = 14695981039346656037u; /* FNV-1a */
        for (long n = 0; n < size; n++)
                hash = (hash ^ (unsigned char)key[n]) * 1099511628211u;
        return &slots[hash % SLOTS];
}

static struct answer *known(const char *key, long size) {
        for (struct answer *each = *slot_of(key, size); each; each = each->next)
                if (each->key_size == size && !memcmp(each->key, key, size))
                        return each;
        return 0;
}

static void keep(const struct asked *asked, const char *frame, long size) {
        if (int16_at(asked->key) == FETCH && size < EMPTY)
                return;
        if (known(asked->key, asked->key_size))
                return;
        struct answer *answer = some(sizeof *answer);
        answer->key = copy(asked->key, asked->key_size);
        answer->key_size = asked->key_size;
        answer->at = answers_end;
        answer->size = size - HEAD;
        for (long done = 0; done < answer->size;) {
                ssize_t n = pwrite(
                    answers, frame + HEAD + done, answer->size - done, answers_end + done);
                if (n < 0)
                        die("the file of answers");
                done += n;
        }
        answers_end += answer->size;
        struct answer **slot = slot_of(answer->key, answer->key_size);
        answer->next = *slot;
        *slot = answer;
}

static void await_room(struct connection *to, int waits) {
        if (to->waits == waits)
                return;
        to->waits = waits;
        struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = to};
        epoll_ctl(poller, EPOLL_CTL_MOD, to->socket, &event);
}

/* Whether the connection is still there. */
static int flush(struct connection *to) {
        while (to->first) {
                struct piece *piece = to->first;
                long size = piece->size + (piece->answer ? piece->answer->size : 0);
                ssize_t n;
                if (piece->sent < piece->size) {
                        int flags = MSG_NOSIGNAL | (piece->answer ? MSG_MORE : 0);
                        n = send(to->socket, piece->bytes + piece->sent,
                            piece->size - piece->sent, flags);
                } else {
                        long done = piece->sent - piece->size;
                        off_t at = piece->answer->at + done;
                        n = sendfile(to->socket, answers, &at, piece->answer->size - done);
                }
                if (n < 0 && errno != EAGAIN)
                        return 0;
                if (n > 0)
                        piece->sent += n;
                if (piece->sent < size) {
                        if (n < 0) {
                                await_room(to, 1);
                                return 1;
                        }
                        continue;
                }
                to->first = piece->next;
                free(piece->bytes);
                free(piece);
        }
        await_room(to, 0);
        return 1;
}

static void put(struct connection *to, char *bytes, long size, const struct answer *answer) {
        struct piece *piece = some(sizeof *piece);
        piece->bytes = bytes;
        piece->size = size;
        piece->answer = answer;
        *(to->first ? &to->last->next : &to->first) = piece;
        to->last = piece;
}

static void answer_with(struct connection *client, const struct answer *answer, const char *frame) {
        int is_small = answer->size <= SMALL;
        char *bytes = some(HEAD + (is_small ? answer->size : 0));
        uint32_t size = htobe32(HEAD - sizeof size + answer->size);
        memcpy(bytes, &size, sizeof size);
        memcpy(bytes + 4, frame + 8, 4); /* the correlation id */
        if (is_small && pread(answers, bytes + HEAD, answer->size, answer->at) != answer->size)
                die("the file of answers");
        put(client, bytes, HEAD + (is_small ? answer->size : 0), is_small ? 0 : answer);
}

static void take_request(struct connection *client, const char *frame, long size) {
        struct asked *asked = some(sizeof *asked);
        int api = int16_at(frame + 4);
        if (api == FETCH || api == LIST_OFFSETS) {
                int id = int16_at(frame + CLIENT_ID);
                long body = CLIENT_ID + 2 + (id > 0 ? id : 0);
                asked->key_size = 4 + size - body;
                asked->key = some(asked->key_size);
                memcpy(asked->key, frame + 4, 4);
                memcpy(asked->key + 4, frame + body, size - body);
                const struct answer *answer = known(asked->key, asked->key_size);
                if (answer && !client->oldest) { /* answers keep their order */
                        answer_with(client, answer, frame);
                        free(asked->key);
                        free(asked);
                        return;
                }
        }
        *(client->oldest ? &client->newest->next : &client->oldest) = asked;
        client->newest = asked;
        put(client->other, copy(frame, size), size, 0);
}

static void take_answer(struct connection *broker, const char *frame, long size) {
        struct connection *client = broker->other;
        struct asked *asked = client->oldest;
        if (asked) {
                client->oldest = asked->next;
                if (asked->key)
                        keep(asked, frame, size);
                free(asked->key);
                free(asked);
        }
        put(client, copy(frame, size), size, 0);
}

/* Whether the connection is still there. */
static int receive(struct connection *from) {
        for (;;) {
                long wanted = from->filled >= 4 ? (long)int32_at(from->in) + 4 : 0;
                if (from->filled == from->capacity || wanted > from->capacity) {
                        from->capacity = wanted > CHUNK ? wanted + CHUNK : 2 * CHUNK;
                        if (from->capacity <= from->filled)
                                from->capacity = 2 * from->filled;
                        from->in = realloc(from->in, from->capacity);
                        if (!from->in)
                                die("memory");
                }
                long room = from->capacity - from->filled;
                ssize_t n = recv(from->socket, from->in + from->filled, room, 0);
                if (n <= 0)
                        return n < 0 && errno == EAGAIN;
                from->filled += n;
                long at = 0;
                while (from->filled - at >= 4) {
                        long size = (long)int32_at(from->in + at) + 4;
                        if (from->filled - at < size)
                                break;
                        (from->is_broker ? take_answer : take_request)(from, from->in + at, size);
                        at += size;
                }
                from->filled -= at;
                memmove(from->in, from->in + at, from->filled);
                if (!flush(from->other) || !flush(from))
                        return 0;
                if (n < room)
                        return 1;
        }
}

static struct connection *opened(int socket, int is_broker) {
        struct connection *made = some(sizeof *made);
        int one = 1;
        made->socket = socket;
        made->is_broker = is_broker;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(socket, F_SETFL, O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = made};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event))
                die("epoll");
        return made;
}

static void admit(int listener, const struct sockaddr_in *broker) {
        int client = accept(listener, 0, 0);
        if (client < 0)
                return;
        int behind = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(behind, (const struct sockaddr *)broker, sizeof *broker)) {
                close(client);
                close(behind);
                return;
        }
        struct connection *one = opened(client, 0), *other = opened(behind, 1);
        one->other = other;
        other->other = one;
}

/* What is left of them is little, and events that are at hand may still name them. */
static void end(struct connection *either) {
        struct connection *both[] = {either, either->other};
        for (int n = 0; n < 2; n++) {
                close(both[n]->socket);
                both[n]->socket = -1;
                free(both[n]->in);
        }
}

static struct sockaddr_in address_of(const char *argument, const char *name) {
        size_t length = strlen(name);
        if (!argument || strncmp(argument, name, length) || argument[length] != '=') {
                fprintf(stderr, "usage: remember port=NUMBER broker=NUMBER\n");
                exit(2);
        }
        return (struct sockaddr_in){
            .sin_family = AF_INET,
            .sin_port = htons(atoi(argument + length + 1)),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
}

int main(int count, char **arguments) {
        struct sockaddr_in own = address_of(count > 1 ? arguments[1] : 0, "port");
        struct sockaddr_in broker = address_of(count > 2 ? arguments[2] : 0, "broker");
        int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, EVENTS))
                die("the port");
        answers = memfd_create("answers", MFD_CLOEXEC);
        poller = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = 0}, events[EVENTS];
        if (answers < 0 || poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event))
                die("a descriptor");
        puts("listening");
        fflush(stdout);
        for (;;) {
                int ready = epoll_wait(poller, events, EVENTS, -1);
                if (ready < 0 && errno != EINTR)
                        die("epoll");
                for (int n = 0; n < ready; n++) {
                        struct connection *each = events[n].data.ptr;
                        if (!each)
                                admit(listener, &broker);
                        else if (each->socket >= 0 &&
                            !((!(events[n].events & EPOLLOUT) || flush(each)) &&
                                (!(events[n].events & ~EPOLLOUT) || receive(each))))
                                end(each);
                }
        }
}
