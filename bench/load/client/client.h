/* A load generator for the HTTP contract: one thread, one epoll, any number of connections. */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a connection does in turn: E enqueues, R reserves, A acks, X posts a fixed body. */
#define STEPS "ERAX"
#define STEP_KINDS 4

struct options {
    int port;
    const char *steps;
    const char *queue;
    const char *path; /* of X */
    const char *body; /* of X */
    int connections;
    int batch; /* tasks a request; 1 takes the routes for single tasks */
    double wait_seconds;
    double dedupe_seconds; /* more than 0: every task has a dedupe key of its own for so long */
    double seconds;
    double warmup_seconds;
    double rate;          /* turns a second, started on time whether or not earlier ones have ended; 0: closed loop */
    bool stop_when_empty; /* a connection ends at the first empty reserve */
    long total;           /* end after so many tasks; 0: by time */
};

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
};

struct latencies {
    uint32_t *microseconds;
    size_t count;
    size_t capacity;
};

/* What was counted inside the window of measurement. */
struct tally {
    long tasks;  /* through the last step */
    long calls;
    long errors; /* refused, broken or unreadable replies */
    long empty;  /* reserves that found nothing */
    double seconds;
    struct latencies of_step[STEP_KINDS];
    struct latencies of_turn; /* from when a turn was due to its last reply */
};

struct reply {
    int status;
    const char *body;
    size_t body_length;
    size_t length; /* with its head; 0 while incomplete, SIZE_MAX if unreadable */
};

void buffer_add(struct buffer *buffer, const char *data, size_t length);
void buffer_print(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write the request of a step; an ack takes its ids and tokens from the reserve's reply. */
void write_request(struct buffer *out, const struct options *options, char step, const struct buffer *reserved);
struct reply read_reply(const struct buffer *in);
/* How many tasks are in a reserve's reply. */
int count_reserved(const char *body, size_t length);
/* How many items of a batch were refused. */
int count_refused(const char *body, size_t length);

void latencies_add(struct latencies *latencies, double seconds);
uint32_t latencies_at(struct latencies *latencies, double quantile);

double now_seconds(void);
void run_load(const struct options *options, struct tally *tally);

#endif
