/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: rings of events, one a thread, and the file.
 *
 * A ring has one writer (its thread) and one reader (who holds the lock); head and tail are released by the one and acquired
 * by the other. The end of a trace switches it off, waits for the few threads that are inside (`writers`), and frees the
 * rings; a thread knows by the trace's number that its ring is gone. There are at most RINGS_MAX. The file ends with a
 * footer that the next flush overwrites. */
#include "runtime/trace.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/mutex.h"
#include "os/thread.h"

enum {
    RING_EVENTS = 4096,
    RINGS_MAX = 512,
    NAME_BYTES = 56,
    PATH_BYTES = 72,
    TEXT_BYTES = 1 << 16
};

struct event {
    char name[NAME_BYTES];
    char path[PATH_BYTES]; /* the end of a long one */
    const char *category;
    int64_t start_ns;
    int64_t end_ns;
    int64_t query;
    int64_t offset;
    int64_t bytes;
    int64_t rows;
    char phase; /* 'X' span, 'b' and 'e' of a query */
};

struct ring {
    struct ring *next; /* of the list; constant once published */
    int64_t thread_id;
    char thread_name[16];
    bool is_named;                            /* under the lock: its name is in the file */
    int64_t head;                             /* atomic: events written, by the thread */
    int64_t dropped;                          /* atomic: by the thread */
    GAR_ALIGNED(GAR_CACHE_LINE) int64_t tail; /* atomic: events taken, under the lock */
    struct event events[RING_EVENTS];
};

int32_t gar_trace_on;

static struct gar_mutex lock = GAR_MUTEX_INIT;
static struct {
    int fd;
    char *path;     /* owned; NULL: no trace */
    int64_t offset; /* of the footer */
    int64_t start_ns;
    bool has_events;
} synced GAR_GUARDED = {.fd = -1};

static struct ring *rings;   /* atomic: newest first */
static int32_t ring_count;   /* atomic */
static int64_t writers;      /* atomic: threads inside put_event */
static int64_t trace_number; /* atomic: changes when rings are freed */
static _Thread_local struct ring *own;
static _Thread_local int64_t own_number; /* the trace of own */
static struct gar_once fork_once = GAR_ONCE_INIT;

static const char footer[] = "\n]}\n";

/* ---- writers ---- */

static struct ring *own_ring(void)
{
    const int64_t number = __atomic_load_n(&trace_number, __ATOMIC_ACQUIRE);
    if (own != NULL && own_number == number) {
        return own;
    }
    own = NULL;
    if (__atomic_add_fetch(&ring_count, 1, __ATOMIC_RELAXED) > RINGS_MAX) {
        (void)__atomic_sub_fetch(&ring_count, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    struct ring *ring = gar_calloc(1, (int64_t)sizeof *ring);
    if (ring == NULL) {
        (void)__atomic_sub_fetch(&ring_count, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    ring->thread_id = gar_thread_id();
    gar_thread_name(ring->thread_name, (int64_t)sizeof ring->thread_name);
    ring->next = __atomic_load_n(&rings, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&rings, &ring->next, ring, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    own = ring;
    own_number = number;
    return ring;
}

static void put_into(struct ring *ring, const struct event *event)
{
    const int64_t head = ring->head;
    if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == RING_EVENTS) {
        (void)__atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELAXED);
        return;
    }
    ring->events[head % RING_EVENTS] = *event;
    __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

/* Counted before it looks whether the trace is on: either the end sees us, or we see the end. */
static void put_event(const struct event *event)
{
    (void)__atomic_fetch_add(&writers, 1, __ATOMIC_SEQ_CST);
    struct ring *ring = __atomic_load_n(&gar_trace_on, __ATOMIC_SEQ_CST) != 0 ? own_ring() : NULL;
    if (ring != NULL) {
        put_into(ring, event);
    }
    (void)__atomic_fetch_sub(&writers, 1, __ATOMIC_RELEASE);
}

void gar_trace_span(const char *category, const char *name, int64_t start_ns,
                    const struct gar_trace_args *args)
{
    struct event event = {
        .category = category, .start_ns = start_ns, .end_ns = gar_clock_ns(), .phase = 'X'};
    (void)snprintf(event.name, sizeof event.name, "%s", name);
    if (args != NULL) {
        event.query = args->query;
        event.offset = args->offset;
        event.bytes = args->bytes;
        event.rows = args->rows;
        if (args->path != NULL) {
            const size_t length = strlen(args->path);
            const size_t cut = length < sizeof event.path ? 0 : length + 1 - sizeof event.path;
            memcpy(event.path, args->path + cut, length - cut + 1);
        }
    }
    put_event(&event);
}

static void put_query(int64_t query, const char *name, char phase)
{
    if (gar_trace_is_on()) {
        struct event event = {
            .category = "query", .start_ns = gar_clock_ns(), .query = query, .phase = phase};
        (void)snprintf(event.name, sizeof event.name, "%s", name);
        put_event(&event);
    }
}

void gar_trace_query_begin(int64_t query, const char *name)
{
    put_query(query, name, 'b');
}

void gar_trace_query_end(int64_t query, const char *name)
{
    put_query(query, name, 'e');
}

/* ---- the file ---- */

/* Text as a JSON string. Bytes that are no UTF-8 (a cut character, a path) and control characters become '?'. */
static void print_text(struct gar_strbuf *out, const char *text)
{
    int64_t left = (int64_t)strlen(text);
    int64_t bad = gar_utf8_first_bad(text, left);
    gar_strbuf_append_char(out, '"');
    for (; left > 0; left--, text++, bad--) {
        if (bad == 0) {
            gar_strbuf_append_char(out, '?');
            bad = gar_utf8_first_bad(text + 1, left - 1);
            bad = bad < 0 ? -1 : bad + 1;
            continue;
        }
        if (*text == '"' || *text == '\\') {
            gar_strbuf_append_char(out, '\\');
        }
        gar_strbuf_append_char(out, (unsigned char)*text < 0x20 ? '?' : *text);
    }
    gar_strbuf_append_char(out, '"');
}

static void begin_event(struct gar_strbuf *out) GAR_REQUIRES(lock)
{
    gar_strbuf_append(out, synced.has_events ? ",\n" : "\n");
    synced.has_events = true;
}

/* Microseconds with three digits behind the point: exact, so that spans nest in the file as they did. */
static void print_time(struct gar_strbuf *out, const char *key, int64_t ns)
{
    gar_strbuf_printf(out, ",\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

static void print_args(struct gar_strbuf *out, const struct event *event)
{
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"query", event->query},
                   {"offset", event->offset},
                   {"bytes", event->bytes},
                   {"rows", event->rows}};
    const char *comma = "";
    gar_strbuf_append(out, ",\"args\":{");
    if (event->path[0] != '\0') {
        gar_strbuf_append(out, "\"path\":");
        print_text(out, event->path);
        comma = ",";
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(numbers); i++) {
        if (numbers[i].value != 0) {
            gar_strbuf_printf(out, "%s\"%s\":%lld", comma, numbers[i].key,
                              (long long)numbers[i].value);
            comma = ",";
        }
    }
    gar_strbuf_append(out, "}}");
}

static void print_event(struct gar_strbuf *out, const struct ring *ring, const struct event *event)
    GAR_REQUIRES(lock)
{
    begin_event(out);
    gar_strbuf_printf(out, "{\"ph\":\"%c\",\"pid\":1,\"tid\":%lld,\"cat\":\"%s\",\"name\":",
                      event->phase, (long long)ring->thread_id, event->category);
    print_text(out, event->name);
    print_time(out, "ts", gar_max_i64(event->start_ns - synced.start_ns, 0));
    if (event->phase == 'X') {
        const int64_t start_ns = gar_max_i64(event->start_ns, synced.start_ns);
        print_time(out, "dur", gar_max_i64(event->end_ns - start_ns, 0));
    } else {
        gar_strbuf_printf(out, ",\"id\":%lld", (long long)event->query);
    }
    print_args(out, event);
}

static void print_thread(struct gar_strbuf *out, struct ring *ring) GAR_REQUIRES(lock)
{
    begin_event(out);
    gar_strbuf_printf(
        out, "{\"ph\":\"M\",\"pid\":1,\"tid\":%lld,\"name\":\"thread_name\",\"args\":{\"name\":",
        (long long)ring->thread_id);
    print_text(out, ring->thread_name);
    gar_strbuf_append(out, "}}");
    ring->is_named = true;
}

/* What is in `out`, then the footer. */
static enum gar_status write_out(struct gar_strbuf *out, struct gar_error *err) GAR_REQUIRES(lock)
{
    const int64_t bytes = out->size;
    gar_strbuf_append(out, footer);
    if (out->failed) {
        return gar_error_nomem(err, out->size);
    }
    GAR_TRY(gar_file_write_at(synced.fd, synced.path, out->data, out->size, synced.offset, err));
    synced.offset += bytes;
    gar_strbuf_clear(out);
    return GAR_OK;
}

static enum gar_status flush_ring(struct ring *ring, struct gar_strbuf *out, struct gar_error *err)
    GAR_REQUIRES(lock)
{
    const int64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
    if (head > ring->tail && !ring->is_named) {
        print_thread(out, ring);
    }
    for (int64_t i = ring->tail; i < head; i++) {
        print_event(out, ring, &ring->events[i % RING_EVENTS]);
        if (out->size >= TEXT_BYTES) {
            GAR_TRY(write_out(out, err));
        }
    }
    __atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
    const int64_t dropped = __atomic_exchange_n(&ring->dropped, 0, __ATOMIC_RELAXED);
    if (dropped > 0) {
        begin_event(out);
        gar_strbuf_printf(
            out,
            "{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":%lld,\"name\":\"%lld events dropped\"",
            (long long)ring->thread_id, (long long)dropped);
        print_time(out, "ts", gar_clock_ns() - synced.start_ns);
        gar_strbuf_append(out, "}");
    }
    return GAR_OK;
}

static enum gar_status flush_locked(struct gar_error *err) GAR_REQUIRES(lock)
{
    struct gar_strbuf out = {0};
    enum gar_status status = GAR_OK;
    for (struct ring *ring = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
         ring != NULL && status == GAR_OK; ring = ring->next) {
        status = flush_ring(ring, &out, err);
    }
    if (status == GAR_OK && out.size > 0) {
        status = write_out(&out, err);
    }
    gar_strbuf_destroy(&out);
    return status;
}

static void free_rings(void) GAR_REQUIRES(lock)
{
    struct ring *ring = __atomic_exchange_n(&rings, NULL, __ATOMIC_ACQUIRE);
    (void)__atomic_add_fetch(&trace_number, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&ring_count, 0, __ATOMIC_RELAXED);
    while (ring != NULL) {
        struct ring *next = ring->next;
        gar_free(ring);
        ring = next;
    }
}

/* No event is taken any more, and nobody is inside. */
static void switch_off(void)
{
    __atomic_store_n(&gar_trace_on, 0, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&writers, __ATOMIC_SEQ_CST) > 0) {
        gar_thread_yield();
    }
}

static enum gar_status close_locked(struct gar_error *err) GAR_REQUIRES(lock)
{
    switch_off();
    free_rings();
    const enum gar_status status = gar_file_close(synced.fd, synced.path, err);
    gar_free(synced.path);
    synced.path = NULL;
    synced.fd = -1;
    return status;
}

/* ---- forks: the child has no trace ---- */

static void before_fork(void) GAR_NO_TSA
{
    gar_mutex_lock(&lock);
}

static void after_in_parent(void) GAR_NO_TSA
{
    gar_mutex_unlock(&lock);
}

static void after_in_child(void) GAR_NO_TSA
{
    __atomic_store_n(&writers, 0, __ATOMIC_RELAXED); /* those threads are not here */
    if (synced.path != NULL) {
        const enum gar_status status = close_locked(NULL);
        (void)status; /* nothing was written through this descriptor */
    }
    gar_mutex_unlock(&lock);
}

static void register_fork(void)
{
    static struct gar_fork_handler handler = {.before = before_fork,
                                              .after_in_parent = after_in_parent,
                                              .after_in_child = after_in_child};
    gar_fork_register(&handler);
}

/* ---- begin, flush, end ---- */

static enum gar_status begin_locked(const char *path, struct gar_error *err) GAR_REQUIRES(lock)
{
    if (synced.path != NULL) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "a trace is being written to '%s' already; one at a time",
                             synced.path);
    }
    char *copy = gar_strdup(path);
    if (copy == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(path));
    }
    int fd = -1;
    const enum gar_status status = gar_file_open(path, GAR_FILE_CREATE, &fd, err);
    if (status < 0) {
        gar_free(copy);
        return status;
    }
    synced.path = copy;
    synced.fd = fd;
    synced.offset = 0;
    synced.start_ns = gar_clock_ns();
    synced.has_events = false;
    struct gar_strbuf head = {0};
    gar_strbuf_append(&head, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    begin_event(&head);
    gar_strbuf_append(
        &head, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"gar\"}}");
    const enum gar_status written = write_out(&head, err);
    gar_strbuf_destroy(&head);
    if (written < 0) {
        const enum gar_status closed = close_locked(NULL);
        (void)closed; /* the first error counts */
        return written;
    }
    __atomic_store_n(&gar_trace_on, 1, __ATOMIC_SEQ_CST);
    return GAR_OK;
}

enum gar_status gar_trace_begin(const char *path, struct gar_error *err)
{
    gar_once_run(&fork_once, register_fork);
    gar_mutex_lock(&lock);
    const enum gar_status status = begin_locked(path, err);
    gar_mutex_unlock(&lock);
    return status;
}

enum gar_status gar_trace_flush(struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    gar_mutex_lock(&lock);
    if (synced.path != NULL) {
        status = flush_locked(err);
        if (status < 0) {
            const enum gar_status closed = close_locked(NULL);
            (void)closed; /* the first error counts */
        }
    }
    gar_mutex_unlock(&lock);
    return status;
}

enum gar_status gar_trace_end(struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    gar_mutex_lock(&lock);
    if (synced.path != NULL) {
        switch_off();
        status = flush_locked(err);
        const enum gar_status closed = close_locked(status < 0 ? NULL : err);
        status = status < 0 ? status : closed;
    }
    gar_mutex_unlock(&lock);
    return status;
}
