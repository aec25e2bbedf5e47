/* Requests as bytes, replies from bytes; of JSON only as much as the cycle needs. */
#define _GNU_SOURCE
#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* About 100 bytes, without a key that is searched for below. */
static const char PAYLOAD[] =
    "{\"to\":\"ada@example.com\",\"template\":\"welcome\",\"text\":\"0123456789012345678901234567890123456789\"}";

struct span {
    const char *start;
    size_t length;
};

static void reserve_room(struct buffer *buffer, size_t more) {
    if (buffer->length + more <= buffer->capacity) return;
    while (buffer->capacity < buffer->length + more) buffer->capacity = buffer->capacity ? buffer->capacity * 2 : 1024;
    buffer->data = realloc(buffer->data, buffer->capacity);
    if (buffer->data == NULL) abort();
}

void buffer_add(struct buffer *buffer, const char *data, size_t length) {
    reserve_room(buffer, length);
    memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
}

void buffer_print(struct buffer *buffer, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text) abort();
    buffer_add(buffer, text, (size_t)length);
}

/* The next string value of `"name":` from `*at` on; moves `*at` behind it. */
static bool next_value(const char **at, const char *end, const char *name, struct span *value) {
    size_t length = strlen(name);
    const char *found = memmem(*at, (size_t)(end - *at), name, length);
    if (found == NULL) return false;
    found += length;
    while (found < end && (*found == ' ' || *found == ':')) found++;
    if (found == end || *found++ != '"') return false;
    const char *close = memchr(found, '"', (size_t)(end - found));
    if (close == NULL) return false;
    *value = (struct span){found, (size_t)(close - found)};
    *at = close + 1;
    return true;
}

static int count_text(const char *body, size_t length, const char *text) {
    int count = 0;
    const char *end = body + length;
    while ((body = memmem(body, (size_t)(end - body), text, strlen(text))) != NULL) {
        count++;
        body += strlen(text);
    }
    return count;
}

int count_reserved(const char *body, size_t length) { return count_text(body, length, "\"lease_token\""); }

int count_refused(const char *body, size_t length) { return count_text(body, length, "\"ok\":false"); }

/* The next number of a sequence without order and, for all that matters here, without repetition (splitmix64). */
static uint64_t next_scattered(void) {
    static uint64_t state;
    if (state == 0) state = (uint64_t)(now_seconds() * 1e9) ^ (uint64_t)getpid() << 48;
    uint64_t mixed = state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

/* A key as a job of the pipeline makes it, of the same length and as scattered. */
static void write_dedupe_key(struct buffer *body, double seconds) {
    buffer_print(body, "\"dedupe_key\":\"write-0123456789abcdef:0.%016llx%016llx.1\",\"dedupe_seconds\":%.1f,",
                 (unsigned long long)next_scattered(), (unsigned long long)next_scattered(), seconds);
}

static void write_enqueue(struct buffer *body, const struct options *options) {
    if (options->batch > 1) buffer_print(body, "{\"tasks\":[");
    for (int task = 0; task < options->batch; task++) {
        buffer_print(body, "%s{", task ? "," : "");
        if (options->dedupe_seconds > 0) write_dedupe_key(body, options->dedupe_seconds);
        buffer_print(body, "\"queue\":\"%s\",\"payload\":%s}", options->queue, PAYLOAD);
    }
    if (options->batch > 1) buffer_print(body, "]}");
}

static void write_reserve(struct buffer *body, const struct options *options) {
    buffer_print(body, "{\"queues\":[\"%s\"],\"limit\":%d,\"lease_seconds\":60,\"worker_id\":\"bench\"", options->queue,
                 options->batch);
    if (options->wait_seconds > 0) buffer_print(body, ",\"wait_seconds\":%g", options->wait_seconds);
    buffer_print(body, "}");
}

static void write_ack(struct buffer *path, struct buffer *body, int batch, const struct buffer *reserved) {
    const char *at_id = reserved->data, *at_token = reserved->data, *end = reserved->data + reserved->length;
    struct span id, token;
    int items = 0;
    if (batch > 1) buffer_print(body, "{\"items\":[");
    while (next_value(&at_id, end, "\"id\"", &id) && next_value(&at_token, end, "\"lease_token\"", &token)) {
        if (batch > 1)
            buffer_print(body, "%s{\"id\":\"%.*s\",\"lease_token\":\"%.*s\"}", items++ ? "," : "", (int)id.length,
                         id.start, (int)token.length, token.start);
        else
            buffer_print(body, "{\"lease_token\":\"%.*s\"}", (int)token.length, token.start);
        if (batch == 1) buffer_print(path, "/v1/tasks/%.*s/ack", (int)id.length, id.start);
    }
    if (batch > 1) buffer_print(path, "/v1/tasks/ack");
    if (batch > 1) buffer_print(body, "]}");
}

void write_request(struct buffer *out, const struct options *options, char step, const struct buffer *reserved) {
    static struct buffer path, body;
    path.length = body.length = 0;
    if (step == 'E') {
        buffer_print(&path, options->batch > 1 ? "/v1/tasks/batch" : "/v1/tasks");
        write_enqueue(&body, options);
    } else if (step == 'R') {
        buffer_print(&path, "/v1/reserve");
        write_reserve(&body, options);
    } else if (step == 'A') {
        write_ack(&path, &body, options->batch, reserved);
    } else {
        buffer_print(&path, "%s", options->path);
        buffer_add(&body, options->body, strlen(options->body));
    }
    buffer_print(out,
                 "POST %.*s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 (int)path.length, path.data, options->port, body.length);
    buffer_add(out, body.data, body.length);
}

/* The value of Content-Length, or -1 if there is none. */
static long content_length(const char *head, const char *end) {
    static const char NAME[] = "\r\ncontent-length:";
    for (const char *at = head; at + sizeof NAME < end; at++)
        if (*at == '\r' && strncasecmp(at, NAME, sizeof NAME - 1) == 0) return strtol(at + sizeof NAME - 1, NULL, 10);
    return -1;
}

struct reply read_reply(const struct buffer *in) {
    struct reply reply = {0};
    if (in->length == 0) return reply;
    const char *blank = memmem(in->data, in->length, "\r\n\r\n", 4);
    if (blank == NULL) return reply;
    long length = content_length(in->data, blank + 2);
    if (length < 0 || strncmp(in->data, "HTTP/1.1 ", 9) != 0) {
        reply.length = SIZE_MAX;
        return reply;
    }
    reply.body = blank + 4;
    reply.body_length = (size_t)length;
    size_t whole = (size_t)(reply.body - in->data) + reply.body_length;
    if (in->length < whole) return reply;
    reply.status = atoi(in->data + 9);
    reply.length = whole;
    return reply;
}
