/* The connections, their turns, and the clock. */
#define _GNU_SOURCE
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
/* How long a run may go on after its window for replies that are still out. */
#define GRACE_SECONDS 35.0
/* How long a warm-up may take in all, and how often a window may be doubled, on a machine that is slow just now. */
#define WARMUP_LIMIT_SECONDS 10.0
#define WINDOW_LIMIT 4.0
#define GLANCE_SECONDS 0.05

struct connection {
    int socket;
    int step;           /* index into the steps */
    bool busy;          /* a turn is under way */
    bool finished;      /* takes no more turns */
    double turn_due_at; /* when its turn should have started */
    double sent_at;
    size_t sent;
    struct buffer out, in, reserved;
};

struct load {
    const struct options *options;
    struct tally *tally;
    struct connection *connections;
    int epoll;
    double started_at, window_from, window_to, last_done_at;
    long turns;         /* started so far */
    long turns_done;    /* ended so far */
    long turns_counted; /* ended in the window */
    long all_done;      /* tasks, in the window or not */
    int busy;
    bool told;
};

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void latencies_add(struct latencies *latencies, double seconds) {
    if (latencies->count == latencies->capacity) {
        latencies->capacity = latencies->capacity ? latencies->capacity * 2 : 4096;
        latencies->microseconds = realloc(latencies->microseconds, latencies->capacity * sizeof(uint32_t));
        if (latencies->microseconds == NULL) abort();
    }
    latencies->microseconds[latencies->count++] = (uint32_t)(seconds * 1e6);
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

uint32_t latencies_at(struct latencies *latencies, double quantile) {
    if (latencies->count == 0) return 0;
    qsort(latencies->microseconds, latencies->count, sizeof(uint32_t), ascending);
    return latencies->microseconds[(size_t)(quantile * (double)(latencies->count - 1))];
}

static bool in_window(const struct load *load, double at) { return at >= load->window_from && at < load->window_to; }

static bool goes_by_count(const struct options *options) { return options->stop_when_empty || options->total > 0; }

/* The window opens when every connection has had its first turn, and closes when each has had two more; at a fixed
   rate, where connections are spare, it goes by time alone. */
static void move_window(struct load *load) {
    const struct options *options = load->options;
    long every_connection = options->rate > 0 ? 0 : options->connections;
    double now = now_seconds(), warm_at = load->started_at + options->warmup_seconds;
    if (load->window_from == INFINITY) {
        bool warm = load->turns_done >= every_connection || now >= warm_at + WARMUP_LIMIT_SECONDS;
        if (now >= warm_at && warm) load->window_from = now;
    } else if (load->window_to == INFINITY && now >= load->window_from + options->seconds) {
        bool enough = load->turns_counted >= 2 * every_connection || goes_by_count(options);
        if (enough || now >= load->window_from + WINDOW_LIMIT * options->seconds) load->window_to = now;
    }
}

static void tell_first_error(struct load *load, const char *what, const char *detail, size_t length) {
    if (!load->told) fprintf(stderr, "%s %.*s\n", what, (int)(length > 300 ? 300 : length), detail);
    load->told = true;
}

static void connect_one(struct load *load, struct connection *connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)load->options->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->socket < 0 || connect(connection->socket, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        exit(1);
    }
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->socket, &event);
    connection->in.length = 0;
}

static void watch(struct load *load, struct connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    epoll_ctl(load->epoll, EPOLL_CTL_MOD, connection->socket, &event);
}

static void flush(struct load *load, struct connection *connection) {
    while (connection->sent < connection->out.length) {
        ssize_t written = send(connection->socket, connection->out.data + connection->sent,
                               connection->out.length - connection->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written < 0) {
            /* A connection that is lost shows when it is read. */
            if (errno == EAGAIN) watch(load, connection, EPOLLIN | EPOLLOUT);
            return;
        }
        connection->sent += (size_t)written;
    }
}

static void send_step(struct load *load, struct connection *connection) {
    connection->out.length = connection->sent = 0;
    write_request(&connection->out, load->options, load->options->steps[connection->step], &connection->reserved);
    connection->sent_at = now_seconds();
    flush(load, connection);
}

static void start_turn(struct load *load, struct connection *connection, double due_at) {
    connection->busy = true;
    load->busy++;
    load->turns++;
    connection->step = 0;
    connection->turn_due_at = due_at;
    send_step(load, connection);
}

static void end_turn(struct load *load, struct connection *connection) {
    connection->busy = false;
    load->busy--;
}

static void count_done(struct load *load, struct connection *connection, int tasks, double at) {
    load->all_done += tasks;
    load->turns_done++;
    load->last_done_at = at;
    if (!in_window(load, at)) return;
    load->turns_counted++;
    load->tally->tasks += tasks;
    latencies_add(&load->tally->of_turn, at - connection->turn_due_at);
}

/* Tasks that the step moved on, or -1 if its reply is an error. */
static int read_step(struct load *load, struct connection *connection, char step, const struct reply *reply) {
    if (reply->status >= 300) {
        tell_first_error(load, "refused:", reply->body, reply->body_length);
        return -1;
    }
    if (step == 'R') {
        connection->reserved.length = 0;
        buffer_add(&connection->reserved, reply->body, reply->body_length);
        return count_reserved(reply->body, reply->body_length);
    }
    if (step == 'A' && load->options->batch > 1) {
        int refused = count_refused(reply->body, reply->body_length);
        if (refused) tell_first_error(load, "refused:", reply->body, reply->body_length);
        load->tally->errors += refused;
        return count_reserved(connection->reserved.data, connection->reserved.length) - refused;
    }
    return step == 'X' ? 1 : load->options->batch;
}

static bool is_over(const struct load *load, double now) {
    return now >= load->window_to || (load->options->total > 0 && load->all_done >= load->options->total);
}

static void handle_reply(struct load *load, struct connection *connection, const struct reply *reply) {
    const char *steps = load->options->steps;
    char step = steps[connection->step];
    double now = now_seconds();
    int tasks = read_step(load, connection, step, reply);
    if (in_window(load, now)) {
        load->tally->calls++;
        latencies_add(&load->tally->of_step[strchr(STEPS, step) - STEPS], now - connection->sent_at);
    }
    if (tasks < 0) {
        load->tally->errors++;
        end_turn(load, connection);
    } else if (step == 'R' && tasks == 0) {
        load->tally->empty += in_window(load, now);
        connection->finished = load->options->stop_when_empty;
        if (connection->finished || is_over(load, now))
            end_turn(load, connection);
        else
            send_step(load, connection);
    } else if (steps[connection->step + 1] != '\0') {
        connection->step++;
        send_step(load, connection);
    } else {
        count_done(load, connection, tasks, now);
        end_turn(load, connection);
    }
}

static void lose(struct load *load, struct connection *connection, const char *why) {
    close(connection->socket);
    if (connection->busy) {
        tell_first_error(load, "connection lost:", why, strlen(why));
        load->tally->errors++;
        end_turn(load, connection);
    }
    connect_one(load, connection);
}

static void receive(struct load *load, struct connection *connection) {
    static char chunk[1 << 16];
    ssize_t length = recv(connection->socket, chunk, sizeof chunk, MSG_DONTWAIT);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        lose(load, connection, length < 0 ? strerror(errno) : "closed by the server");
        return;
    }
    buffer_add(&connection->in, chunk, (size_t)length);
    struct reply reply = read_reply(&connection->in);
    if (reply.length == SIZE_MAX) {
        lose(load, connection, "a reply that cannot be read");
    } else if (reply.length > 0) {
        connection->in.length = 0; /* There is one request at a time. */
        handle_reply(load, connection, &reply);
    }
}

/* Start the turns that are due; return when the next one is, or 0 if that waits for a reply. */
static double start_due_turns(struct load *load) {
    double now = now_seconds();
    if (is_over(load, now)) return 0;
    for (int i = 0; i < load->options->connections; i++) {
        struct connection *connection = &load->connections[i];
        if (connection->busy || connection->finished) continue;
        double due_at = now;
        if (load->options->rate > 0) due_at = load->started_at + (double)load->turns / load->options->rate;
        if (due_at > now) return due_at;
        start_turn(load, connection, due_at);
    }
    return 0;
}

static void wait_until(const struct load *load, double due_at) {
    double left = due_at > 0 ? due_at - now_seconds() : GLANCE_SECONDS;
    left = fmin(fmax(left, 0), GLANCE_SECONDS);
    struct timespec timeout = {.tv_nsec = (long)(left * 1e9)};
    struct pollfd ready = {.fd = load->epoll, .events = POLLIN};
    ppoll(&ready, 1, &timeout, NULL);
}

static void handle_events(struct load *load) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(load->epoll, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) {
            watch(load, connection, EPOLLIN);
            flush(load, connection);
        }
        if (events[i].events & ~(uint32_t)EPOLLOUT) receive(load, connection);
    }
}

static void open_load(struct load *load) {
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->connections = calloc((size_t)load->options->connections, sizeof *load->connections);
    if (load->epoll < 0 || load->connections == NULL) abort();
    for (int i = 0; i < load->options->connections; i++) connect_one(load, &load->connections[i]);
    load->started_at = load->last_done_at = now_seconds();
    load->window_from = goes_by_count(load->options) ? load->started_at : INFINITY;
    load->window_to = INFINITY;
}

void run_load(const struct options *options, struct tally *tally) {
    struct load load = {.options = options, .tally = tally};
    open_load(&load);
    double due_at = start_due_turns(&load);
    while (load.busy > 0 || due_at > 0) {
        wait_until(&load, due_at);
        handle_events(&load);
        move_window(&load);
        due_at = start_due_turns(&load);
        if (now_seconds() > load.window_to + GRACE_SECONDS) break;
    }
    tally->seconds = (goes_by_count(options) ? load.last_done_at : load.window_to) - load.window_from;
}
