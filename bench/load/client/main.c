/* Options in, one line of JSON out. */
#define _GNU_SOURCE
#include "client.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct option OPTIONS[] = {
    {"port", required_argument, NULL, 'p'},       {"steps", required_argument, NULL, 's'},
    {"queue", required_argument, NULL, 'q'},      {"path", required_argument, NULL, 'P'},
    {"body", required_argument, NULL, 'B'},       {"connections", required_argument, NULL, 'c'},
    {"batch", required_argument, NULL, 'b'},      {"wait", required_argument, NULL, 'w'},
    {"seconds", required_argument, NULL, 't'},    {"warmup", required_argument, NULL, 'W'},
    {"rate", required_argument, NULL, 'r'},       {"total", required_argument, NULL, 'n'},
    {"stop-when-empty", no_argument, NULL, 'e'},  {"dedupe", required_argument, NULL, 'd'},
    {NULL, 0, NULL, 0},
};

static void set_option(struct options *options, int name, char *value) {
    switch (name) {
    case 'p': options->port = atoi(value); break;
    case 's': options->steps = value; break;
    case 'q': options->queue = value; break;
    case 'P': options->path = value; break;
    case 'B': options->body = value; break;
    case 'c': options->connections = atoi(value); break;
    case 'b': options->batch = atoi(value); break;
    case 'w': options->wait_seconds = atof(value); break;
    case 'd': options->dedupe_seconds = atof(value); break;
    case 't': options->seconds = atof(value); break;
    case 'W': options->warmup_seconds = atof(value); break;
    case 'r': options->rate = atof(value); break;
    case 'n': options->total = atol(value); break;
    case 'e': options->stop_when_empty = true; break;
    default: exit(2);
    }
}

static void print_latencies(const char *name, struct latencies *latencies) {
    if (latencies->count == 0) return;
    printf(",\"%s\":{\"p50\":%.6f,\"p90\":%.6f,\"p99\":%.6f,\"max\":%.6f}", name, latencies_at(latencies, 0.5) / 1e6,
           latencies_at(latencies, 0.9) / 1e6, latencies_at(latencies, 0.99) / 1e6, latencies_at(latencies, 1.0) / 1e6);
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **arguments) {
    struct options options = {
        .steps = "ERA", .queue = "bench", .connections = 1, .batch = 1, .seconds = 1, .path = "/", .body = "{}"};
    struct tally tally = {0};
    int name;
    while ((name = getopt_long(count, arguments, "", OPTIONS, NULL)) != -1) set_option(&options, name, optarg);
    if (strspn(options.steps, STEPS) != strlen(options.steps) || options.batch < 1 || options.connections < 1) exit(2);
    double from = now_seconds(), cpu_from = cpu_seconds();
    run_load(&options, &tally);
    double wall_seconds = now_seconds() - from;
    printf("{\"tasks\":%ld,\"calls\":%ld,\"errors\":%ld,\"empty\":%ld,\"seconds\":%.6f,\"cores\":%.4f", tally.tasks,
           tally.calls, tally.errors, tally.empty, tally.seconds, (cpu_seconds() - cpu_from) / wall_seconds);
    print_latencies("enqueue", &tally.of_step[0]);
    print_latencies("reserve", &tally.of_step[1]);
    print_latencies("ack", &tally.of_step[2]);
    print_latencies("post", &tally.of_step[3]);
    print_latencies("turn", &tally.of_turn);
    printf("}\n");
    return 0;
}
