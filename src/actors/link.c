/* SPDX-License-Identifier: Apache-2.0 */
/* One life of one worker process.
 *
 * Born on the spawn thread: arenas, socket, pipes, setup block, process. Then the loop watches socket, pidfd and pipes.
 * Batches are written into the inbound arena one at a time, small ones on the loop, others by a compute task; the book of
 * that arena belongs to whoever writes. The end comes by the pidfd alone (a grandchild may hold the socket open); before it
 * is told, messages and output that are there are taken, and tasks at work are waited for. */
#include "actors/link.h"

#include <stdio.h>
#include <string.h>

#include "actors/setup.h"
#include "arrow/abi.h"
#include "base/alloc.h"
#include "os/clock.h"
#include "os/socket.h"

/* Batches up to this are written on the loop itself: about 25 us, less than handing them to another thread and back. */
#define SMALL_BYTES (INT64_C(256) << 10)
/* Texts of so many rows are counted to know their size. */
#define COUNTED_ROWS  2048
#define LOG_BYTES     8192
#define OUTPUT_BYTES  32768
#define MESSAGES_MAX  64 /* taken in one turn of the loop */
#define AHEAD_MAX     4
#define TEXT_PART_MAX INT64_C(65536)
/* A worker that has closed its socket has so long to end. */
#define HANGUP_NS GAR_NS_PER_S

enum { PIPE_OUT, PIPE_ERR, PIPE_COUNT };

struct pipe {
    struct gar_watch watch;
    struct gar_link *link;
};

struct slot {
    int64_t offset;
    int64_t bytes; /* 0: free */
};

struct work {
    struct gar_batch *batch; /* owned */
    int64_t offset;
    int64_t rows;
};

struct gar_link {
    const struct gar_link_common *common;
    struct gar_loop *loop;
    void *owner;
    int32_t index;
    const char *const *environment; /* the seat's; borrowed */

    struct gar_task spawn_task;
    struct gar_message spawned;
    enum gar_status spawn_status;
    struct gar_error error;
    int64_t oom_kills; /* before the start */

    struct gar_exchange *exchange; /* owned */
    struct gar_process process;
    struct gar_watch exit;
    struct gar_watch socket;
    struct pipe pipes[PIPE_COUNT];

    /* the inbound arena: of the task that writes, or the loop when none does */
    struct gar_regions regions;
    struct slot *slots; /* GAR_WIRE_SLOTS */
    uint32_t slots_end;
    int64_t setup_offset;
    int64_t setup_size;
    struct gar_wire_span *spans;

    /* calls */
    struct work queue[AHEAD_MAX]; /* to be written, oldest first */
    int32_t queue_count;
    struct gar_task write_task;
    struct gar_message written;
    struct gar_wire_message call; /* of the write at work */
    enum gar_status write_status;
    struct gar_error write_error;
    bool is_writing;
    uint64_t seq_sent;
    uint64_t seq_answered;

    /* growth of the outbound arena */
    struct gar_task grow_task;
    struct gar_message grown;
    int64_t grow_bytes;
    struct gar_error grow_error;
    bool is_growing;

    struct gar_timer hangup;    /* runs when it has closed its socket but lives */
    struct gar_message trouble; /* on_broken of our own making, told from the loop */
    const char *trouble_why;

    bool is_spawning;
    bool is_hello;
    bool is_ready;
    bool is_stopping;
    bool is_kill_wanted;
    bool is_dead; /* reaped; on_dead follows when no task is at work */
    struct gar_link_end end;

    char log[2 * LOG_BYTES + 1];
    int64_t log_size;
};

static void run_spawn(struct gar_task *task, int32_t worker);
static void on_spawned(struct gar_message *message, struct gar_loop *loop);
static void on_socket(struct gar_watch *watch, struct gar_loop *loop, uint32_t events);
static void on_exit_ready(struct gar_watch *watch, struct gar_loop *loop, uint32_t events);
static void on_pipe(struct gar_watch *watch, struct gar_loop *loop, uint32_t events);
static void run_write(struct gar_task *task, int32_t worker);
static void on_written(struct gar_message *message, struct gar_loop *loop);
static void run_grow(struct gar_task *task, int32_t worker);
static void on_grown(struct gar_message *message, struct gar_loop *loop);
static void on_trouble(struct gar_message *message, struct gar_loop *loop);
static void on_hangup(struct gar_timer *timer, struct gar_loop *loop);

#define FROM(pointer, member) \
    ((struct gar_link *)(void *)((char *)(pointer)-offsetof(struct gar_link, member)))

/* ---- birth ---- */

enum gar_status gar_link_start(const struct gar_link_common *common, int32_t index,
                               const char *const *environment, void *owner, struct gar_link **out,
                               struct gar_error *err)
{
    struct gar_link *link = gar_calloc(1, (int64_t)sizeof *link);
    if (link == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *link);
    }
    link->common = common;
    link->loop = gar_runtime_loop(common->runtime);
    link->owner = owner;
    link->index = index;
    link->environment = environment;
    link->process.fd = -1;
    link->exit = (struct gar_watch){.fd = -1, .ready = on_exit_ready};
    link->socket = (struct gar_watch){.fd = -1, .ready = on_socket};
    for (int i = 0; i < PIPE_COUNT; i++) {
        link->pipes[i] = (struct pipe){{.fd = -1, .ready = on_pipe}, link};
    }
    link->spawn_task.run = run_spawn;
    link->spawned.handle = on_spawned;
    link->write_task.run = run_write;
    link->written.handle = on_written;
    link->grow_task.run = run_grow;
    link->grown.handle = on_grown;
    link->trouble.handle = on_trouble;
    link->hangup.fire = on_hangup;
    link->is_spawning = true;
    gar_pool_submit(gar_runtime_spawn(common->runtime), &link->spawn_task);
    *out = link;
    return GAR_OK;
}

const char **gar_environment_merge(const char *const *const *lists, int32_t count)
{
    int64_t total = 0;
    for (int32_t k = 0; k < count; k++) {
        for (int64_t i = 0; lists[k] != NULL && lists[k][i] != NULL; i++) {
            total++;
        }
    }
    const char **merged = gar_malloc((total + 1) * (int64_t)sizeof merged[0]);
    int64_t used = 0;
    for (int32_t k = 0; merged != NULL && k < count; k++) {
        for (int64_t i = 0; lists[k] != NULL && lists[k][i] != NULL; i++) {
            const char *item = lists[k][i];
            const size_t name = strcspn(item, "=");
            int64_t at = 0;
            while (at < used && (strncmp(merged[at], item, name) != 0 || merged[at][name] != '=')) {
                at++;
            }
            if (item[name] == '=') {
                merged[at] = item;
                used = gar_max_i64(used, at + 1);
            } else if (at < used) {
                used--;
                merged[at] = merged[used];
            }
        }
    }
    if (merged != NULL) {
        merged[used] = NULL;
    }
    return merged;
}

/* Both ends above the numbers that the worker gets. */
static enum gar_status open_up(enum gar_status (*open_pair)(int fds[2], struct gar_error *err),
                               int fds[2], struct gar_error *err)
{
    GAR_TRY(open_pair(fds, err));
    fds[0] = gar_fd_move_up(fds[0], GAR_WIRE_FD_COUNT);
    fds[1] = gar_fd_move_up(fds[1], GAR_WIRE_FD_COUNT);
    if (fds[0] < 0 || fds[1] < 0) {
        gar_fd_close(fds[0]);
        gar_fd_close(fds[1]);
        fds[0] = -1;
        fds[1] = -1;
        return gar_error_set(err, GAR_ERR_IO,
                             "cannot open descriptors for an actor: too many open files "
                             "(ulimit -n)");
    }
    return GAR_OK;
}

/* The setup block into the inbound arena. */
static enum gar_status write_setup(struct gar_link *link, struct gar_error *err)
{
    const struct gar_link_common *common = link->common;
    struct gar_exchange *exchange = link->exchange;
    const int64_t first = gar_exchange_bytes(exchange, GAR_ARENA_IN);
    GAR_TRY(gar_regions_extend(&link->regions, GAR_WIRE_CONTROL_BYTES, first, err));
    link->setup_size = common->setup_bytes;
    const int64_t end = gar_regions_end_for(&link->regions, link->setup_size);
    if (end > first) {
        GAR_TRY(gar_exchange_grow(exchange, GAR_ARENA_IN, end, err));
        GAR_TRY(gar_regions_extend(&link->regions, first,
                                   gar_exchange_bytes(exchange, GAR_ARENA_IN), err));
    }
    GAR_TRY(gar_regions_take(&link->regions, link->setup_size, &link->setup_offset, err));
    uint8_t *to = gar_exchange_data(exchange, GAR_ARENA_IN) + link->setup_offset;
    memcpy(to, common->setup, (size_t)common->setup_bytes);
    gar_setup_set_index(to, link->index);
    return GAR_OK;
}

static enum gar_status start_process(struct gar_link *link, const int fds[GAR_WIRE_FD_COUNT],
                                     struct gar_error *err)
{
    const struct gar_link_common *common = link->common;
    char own[96];
    (void)snprintf(own, sizeof own, "%s=%d:%lld:%lld", GAR_WIRE_ENVIRONMENT, GAR_WIRE_VERSION,
                   (long long)gar_process_self(), (long long)gar_exchange_window(link->exchange));
    const char *const own_list[] = {own, NULL};
    const char *const *const lists[] = {common->environment, link->environment, own_list};
    const char **environment = gar_environment_merge(lists, 3);
    if (environment == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof lists);
    }
    const struct gar_process_options options = {.argv = common->argv,
                                                .environment = environment,
                                                .fds = fds,
                                                .fd_count = GAR_WIRE_FD_COUNT};
    const enum gar_status status = gar_process_start(&options, &link->process, err);
    gar_free(environment);
    return status;
}

static enum gar_status give_birth(struct gar_link *link, struct gar_error *err)
{
    link->oom_kills = gar_process_oom_kills();
    link->slots = gar_calloc(GAR_WIRE_SLOTS, (int64_t)sizeof link->slots[0]);
    link->spans = gar_calloc(link->common->input->count, (int64_t)sizeof link->spans[0]);
    if (link->slots == NULL || link->spans == NULL) {
        return gar_error_nomem(err, GAR_WIRE_SLOTS * (int64_t)sizeof link->slots[0]);
    }
    GAR_TRY(gar_exchange_new(link->common->account, link->common->window, &link->exchange, err));
    GAR_TRY(write_setup(link, err));
    int socket[2] = {-1, -1};
    int out[2] = {-1, -1};
    int errors[2] = {-1, -1};
    enum gar_status status = open_up(gar_socket_pair, socket, err);
    status = status < 0 ? status : open_up(gar_pipe_open, out, err);
    status = status < 0 ? status : open_up(gar_pipe_open, errors, err);
    if (status >= 0) {
        const int fds[GAR_WIRE_FD_COUNT] = {-1,
                                            out[1],
                                            errors[1],
                                            socket[1],
                                            gar_exchange_fd(link->exchange, GAR_ARENA_IN),
                                            gar_exchange_fd(link->exchange, GAR_ARENA_OUT)};
        status = start_process(link, fds, err);
    }
    gar_fd_close(socket[1]);
    gar_fd_close(out[1]);
    gar_fd_close(errors[1]);
    link->socket.fd = socket[0];
    link->pipes[PIPE_OUT].watch.fd = out[0];
    link->pipes[PIPE_ERR].watch.fd = errors[0];
    link->exit.fd = link->process.fd;
    return status;
}

static void run_spawn(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct gar_link *link = FROM(task, spawn_task);
    link->spawn_status = give_birth(link, &link->error);
    (void)gar_loop_post(link->loop, &link->spawned);
}

/* ---- death ---- */

static void close_all(struct gar_link *link)
{
    gar_loop_stop_timer_on_loop(link->loop, &link->hangup);
    struct gar_watch *const watches[] = {&link->exit, &link->socket, &link->pipes[0].watch,
                                         &link->pipes[1].watch};
    for (int64_t i = 0; i < GAR_COUNT_OF(watches); i++) {
        gar_loop_unwatch_on_loop(link->loop, watches[i]);
        if (watches[i] != &link->exit) {
            gar_fd_close(watches[i]->fd);
        }
        watches[i]->fd = -1;
    }
    gar_process_close(&link->process);
}

/* When nobody works for the link any more and no message of its own is under way. */
static void tell_death(struct gar_link *link)
{
    if (!link->is_dead || link->is_writing || link->is_growing || link->written.is_queued != 0 ||
        link->trouble.is_queued != 0) {
        return;
    }
    for (int32_t i = 0; i < link->queue_count; i++) {
        gar_batch_unref(link->queue[i].batch);
    }
    link->queue_count = 0;
    if (link->exchange != NULL) {
        gar_exchange_close(link->exchange);
    }
    for (int64_t i = 0; i < link->log_size; i++) {
        link->log[i] = link->log[i] == 0 ? '?' : link->log[i];
    }
    link->log[link->log_size] = 0;
    link->end.log = link->log;
    link->common->listener->on_dead(link->owner, &link->end);
}

static void on_spawned(struct gar_message *message, struct gar_loop *loop)
{
    struct gar_link *link = FROM(message, spawned);
    link->is_spawning = false;
    link->end.pid = link->process.pid;
    enum gar_status status = link->spawn_status;
    struct gar_watch *const watches[] = {&link->exit, &link->socket, &link->pipes[0].watch,
                                         &link->pipes[1].watch};
    for (int64_t i = 0; status >= 0 && i < GAR_COUNT_OF(watches); i++) {
        status = gar_loop_watch_on_loop(loop, watches[i], &link->error);
    }
    if (status >= 0) {
        link->end.is_started = true;
        if (link->is_kill_wanted) {
            gar_process_kill(&link->process);
        }
        return;
    }
    if (link->process.pid != 0) { /* it runs but cannot be watched */
        struct gar_process_end end;
        gar_process_kill(&link->process);
        while (!gar_process_reap(&link->process, &end)) {
        }
    }
    close_all(link);
    link->end.error = link->error;
    link->end.is_killed = link->is_kill_wanted;
    link->is_dead = true;
    tell_death(link);
}

static bool take_messages(struct gar_link *link, int32_t most);
static bool take_output(struct gar_link *link, struct pipe *pipe);

static void on_exit_ready(struct gar_watch *watch, struct gar_loop *loop, uint32_t events)
{
    (void)loop;
    (void)events;
    struct gar_link *link = FROM(watch, exit);
    /* What it said before its end counts, unless we wanted the end. */
    if (!link->is_kill_wanted) {
        (void)take_messages(link, INT32_MAX);
    }
    for (int i = 0; i < PIPE_COUNT; i++) {
        for (int turns = 0; turns < 16 && take_output(link, &link->pipes[i]); turns++) {
        }
    }
    gar_process_kill(&link->process); /* what it started */
    if (!gar_process_reap(&link->process, &link->end.process)) {
        return;
    }
    link->end.is_killed = link->is_kill_wanted;
    if (link->end.process.signal != 0 && !link->is_kill_wanted) {
        const int64_t kills = gar_process_oom_kills();
        link->end.is_oom = link->oom_kills >= 0 && kills > link->oom_kills;
    }
    close_all(link);
    link->is_dead = true;
    tell_death(link);
}

void gar_link_kill(struct gar_link *link)
{
    link->is_kill_wanted = true;
    if (!link->is_spawning && !link->is_dead) {
        gar_process_kill(&link->process);
    }
}

void gar_link_free(struct gar_link *link)
{
    if (link != NULL) {
        gar_exchange_unref(link->exchange);
        gar_regions_destroy(&link->regions);
        gar_free(link->slots);
        gar_free(link->spans);
        gar_free(link);
    }
}

bool gar_link_is_stopped(const struct gar_link *link)
{
    return link->process.pid != 0 && gar_process_is_stopped(&link->process);
}

struct gar_exchange *gar_link_exchange(const struct gar_link *link)
{
    return link->exchange;
}

int64_t gar_link_pid(const struct gar_link *link)
{
    return link->end.pid;
}

int64_t gar_link_private_bytes(const struct gar_link *link)
{
    return link->process.pid == 0 ? 0 : gar_max_i64(gar_process_private_bytes(&link->process), 0);
}

/* ---- output ---- */

static void keep_log(struct gar_link *link, const char *text, int64_t bytes)
{
    const int64_t skip = gar_max_i64(bytes - LOG_BYTES, 0);
    if (link->log_size + bytes - skip > 2 * LOG_BYTES) {
        const int64_t keep = gar_min_i64(link->log_size, LOG_BYTES);
        memmove(link->log, link->log + link->log_size - keep, (size_t)keep);
        link->log_size = keep;
    }
    memcpy(link->log + link->log_size, text + skip, (size_t)(bytes - skip));
    link->log_size += bytes - skip;
}

/* False when nothing is there, or nothing will come any more. */
static bool take_output(struct gar_link *link, struct pipe *pipe)
{
    char buffer[OUTPUT_BYTES];
    if (pipe->watch.fd < 0) {
        return false;
    }
    const int64_t got = gar_pipe_read(pipe->watch.fd, buffer, OUTPUT_BYTES);
    if (got > 0) {
        keep_log(link, buffer, got);
        link->common->listener->on_output(link->owner, pipe == &link->pipes[PIPE_ERR], buffer, got);
        return true;
    }
    if (got == 0) { /* the actor may close its output and go on */
        gar_loop_unwatch_on_loop(link->loop, &pipe->watch);
        gar_fd_close(pipe->watch.fd);
        pipe->watch.fd = -1;
    }
    return false;
}

static void on_pipe(struct gar_watch *watch, struct gar_loop *loop, uint32_t events)
{
    (void)loop;
    (void)events;
    struct pipe *pipe = (struct pipe *)(void *)watch;
    (void)take_output(pipe->link, pipe);
}

/* ---- sending ---- */

/* False (and trouble is told) when the message cannot go. */
static bool send_message(struct gar_link *link, const struct gar_wire_message *message)
{
    struct gar_wire_control *control = gar_exchange_control(link->exchange);
    const enum gar_status status =
        gar_socket_send(link->socket.fd, message, (int64_t)sizeof *message);
    if (status == GAR_OK) {
        (void)__atomic_add_fetch(&control->posted, 1, __ATOMIC_RELEASE);
        return true;
    }
    if (status == GAR_PENDING) { /* an honest worker never lets its socket fill */
        link->trouble_why = "it does not read its messages";
        (void)gar_loop_post(link->loop, &link->trouble);
    }
    return false; /* GAR_EOF: it has closed its socket or died; the watches tell */
}

static void on_trouble(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct gar_link *link = FROM(message, trouble);
    if (link->is_dead) {
        tell_death(link);
    } else {
        link->common->listener->on_broken(link->owner, false, link->trouble_why);
    }
}

void gar_link_stop(struct gar_link *link)
{
    struct gar_wire_message message;
    gar_wire_message_init(&message, GAR_WIRE_STOP);
    link->is_stopping = true;
    (void)send_message(link, &message);
}

/* ---- writing calls ---- */

static void free_slot(struct gar_link *link, uint32_t slot)
{
    gar_regions_give(&link->regions, link->slots[slot].offset, link->slots[slot].bytes);
    link->slots[slot].bytes = 0;
    while (link->slots_end > 0 && link->slots[link->slots_end - 1].bytes == 0) {
        link->slots_end--;
    }
}

/* Places of batches that nobody looks at any more. */
static void reclaim(struct gar_link *link)
{
    struct gar_wire_control *control = gar_exchange_control(link->exchange);
    const uint32_t end = link->slots_end;
    for (uint32_t slot = 0; slot < end; slot++) {
        if (link->slots[slot].bytes > 0 &&
            __atomic_load_n(&control->in_done[slot], __ATOMIC_ACQUIRE) != 0) {
            free_slot(link, slot);
        }
    }
}

static enum gar_status take_room(struct gar_link *link, int64_t bytes, uint32_t *out_slot,
                                 struct gar_error *err)
{
    struct gar_exchange *exchange = link->exchange;
    reclaim(link);
    uint32_t slot = 0;
    while (slot < link->slots_end && link->slots[slot].bytes > 0) {
        slot++;
    }
    if (slot == GAR_WIRE_SLOTS) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "the function keeps views of %d inputs; copy what it keeps",
                             GAR_WIRE_SLOTS);
    }
    int64_t offset = 0;
    enum gar_status status = gar_regions_take(&link->regions, bytes, &offset, err);
    if (status == GAR_PENDING) {
        const int64_t before = gar_exchange_bytes(exchange, GAR_ARENA_IN);
        GAR_TRY(gar_exchange_grow(exchange, GAR_ARENA_IN,
                                  gar_regions_end_for(&link->regions, bytes), err));
        GAR_TRY(gar_regions_extend(&link->regions, before,
                                   gar_exchange_bytes(exchange, GAR_ARENA_IN), err));
        status = gar_regions_take(&link->regions, bytes, &offset, err);
    }
    if (status != GAR_OK) {
        return status < 0 ? status : gar_error_set(err, GAR_ERR_INTERNAL, "room that is none");
    }
    link->slots[slot] = (struct slot){offset, gar_max_i64(bytes, 1)};
    link->slots_end = slot >= link->slots_end ? slot + 1 : link->slots_end;
    __atomic_store_n(&gar_exchange_control(exchange)->in_done[slot], (uint8_t)0, __ATOMIC_RELAXED);
    *out_slot = slot;
    return GAR_OK;
}

static enum gar_status write_array(struct gar_link *link, const struct ArrowArray *array,
                                   struct gar_wire_message *call, struct gar_error *err)
{
    const struct gar_wire_layout *layout = link->common->input;
    int64_t bytes = 0;
    GAR_TRY(gar_wire_measure(layout, layout, array, link->spans, &bytes, err));
    GAR_TRY(take_room(link, bytes, &call->slot, err));
    call->offset = link->slots[call->slot].offset;
    call->bytes = bytes;
    call->rows = array->length;
    gar_wire_write(layout, layout, link->spans,
                   gar_exchange_data(link->exchange, GAR_ARENA_IN) + call->offset);
    return GAR_OK;
}

/* The oldest of the queue into the arena. Any thread, one at a time. */
static enum gar_status write_work(struct gar_link *link, const struct work *work,
                                  struct gar_wire_message *call, struct gar_error *err)
{
    struct gar_batch *slice = NULL;
    struct ArrowArray array;
    memset(&array, 0, sizeof array);
    gar_wire_message_init(call, GAR_WIRE_CALL);
    GAR_TRY(gar_batch_slice(work->batch, work->offset, work->rows, &slice, err));
    enum gar_status status =
        gar_batch_export(slice, GAR_TEXT_LARGE_OFFSETS, link->common->memory, &array, err);
    gar_batch_unref(slice);
    if (status >= 0) {
        status = write_array(link, &array, call, err);
        array.release(&array);
    }
    return status;
}

/* About how many bytes the rows have; large when that is not known cheaply. */
static int64_t estimate_bytes(const struct work *work)
{
    int64_t total = 0;
    for (int64_t k = 0; k < work->batch->schema->count; k++) {
        const struct gar_column *column = work->batch->columns[k];
        if (!gar_type_is_text(column->type)) {
            total += work->rows * gar_max_i64(gar_type_width(column->type), 1);
            continue;
        }
        if (work->rows > COUNTED_ROWS) {
            return INT64_MAX;
        }
        for (int64_t i = work->offset; i < work->offset + work->rows; i++) {
            const struct gar_column *values = NULL;
            const int64_t row = gar_column_locate(column, i, &values);
            total += ((const struct gar_string_view *)values->values)[row].size;
        }
    }
    return total;
}

static void begin_write(struct gar_link *link);

static void end_write(struct gar_link *link)
{
    gar_batch_unref(link->queue[0].batch);
    link->queue_count--;
    memmove(&link->queue[0], &link->queue[1], (size_t)link->queue_count * sizeof link->queue[0]);
    if (link->write_status < 0) {
        /* Told later: the caller may be the roster. */
        (void)gar_loop_post(link->loop, &link->written);
        return;
    }
    link->call.seq = ++link->seq_sent;
    (void)send_message(link, &link->call);
}

static void begin_write(struct gar_link *link)
{
    while (link->queue_count > 0 && !link->is_writing && link->write_status >= 0) {
        if (estimate_bytes(&link->queue[0]) > SMALL_BYTES) {
            link->is_writing = true;
            gar_pool_submit(gar_runtime_compute(link->common->runtime), &link->write_task);
            return;
        }
        link->write_status = write_work(link, &link->queue[0], &link->call, &link->write_error);
        end_write(link);
    }
}

static void run_write(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct gar_link *link = FROM(task, write_task);
    link->write_status = write_work(link, &link->queue[0], &link->call, &link->write_error);
    (void)gar_loop_post(link->loop, &link->written);
}

/* A task has written, or a write has failed. */
static void on_written(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct gar_link *link = FROM(message, written);
    if (link->is_writing) {
        link->is_writing = false;
        if (link->is_dead) {
            tell_death(link);
            return;
        }
        end_write(link);
        begin_write(link);
    } else if (link->is_dead) {
        tell_death(link);
    } else {
        link->common->listener->on_broken(link->owner, true, link->write_error.message);
    }
}

void gar_link_send(struct gar_link *link, const struct gar_batch *batch, int64_t offset,
                   int64_t rows)
{
    struct work *work = &link->queue[link->queue_count++];
    *work = (struct work){gar_batch_ref(batch), offset, rows};
    begin_write(link);
}

/* ---- receiving ---- */

static bool broken(struct gar_link *link, const char *why)
{
    link->common->listener->on_broken(link->owner, false, why);
    return false;
}

static bool is_in_arena(const struct gar_link *link, const struct gar_wire_message *m, int64_t from)
{
    const int64_t size = gar_exchange_bytes(link->exchange, GAR_ARENA_OUT);
    return m->offset >= from && m->offset <= size && m->bytes >= 0 &&
           m->bytes <= size - m->offset && m->offset % GAR_WIRE_ALIGN == 0 &&
           m->slot < GAR_WIRE_SLOTS;
}

static bool take_hello(struct gar_link *link, const struct gar_wire_message *message)
{
    if (link->is_hello || message->extra != link->process.pid) {
        return broken(link, "a second greeting, or one of another process");
    }
    link->is_hello = true;
    struct gar_wire_message setup;
    gar_wire_message_init(&setup, GAR_WIRE_SETUP);
    setup.offset = link->setup_offset;
    setup.bytes = link->setup_size;
    return send_message(link, &setup);
}

static bool take_ready(struct gar_link *link)
{
    if (!link->is_hello || link->is_ready) {
        return broken(link, "ready before its setup, or twice");
    }
    link->is_ready = true;
    gar_regions_give(&link->regions, link->setup_offset, link->setup_size);
    link->common->listener->on_ready(link->owner);
    return true;
}

static bool take_answer(struct gar_link *link, const struct gar_wire_message *message)
{
    const bool is_result = message->kind == GAR_WIRE_RESULT;
    if (!is_in_arena(link, message, is_result ? GAR_WIRE_TEXT_BYTES : 0) ||
        (!is_result && message->offset + message->bytes > GAR_WIRE_TEXT_BYTES)) {
        return broken(link, "an answer outside its arena");
    }
    if (!is_result && message->seq == 0 && link->is_hello && !link->is_ready) {
        link->common->listener->on_no_start(link->owner, message);
        return true;
    }
    if (!link->is_ready || message->seq != link->seq_answered + 1 ||
        message->seq > link->seq_sent) {
        return broken(link, "an answer to a call that was not made");
    }
    link->seq_answered++;
    link->common->listener->on_answer(link->owner, message);
    return true;
}

static bool take_grow(struct gar_link *link, const struct gar_wire_message *message)
{
    if (!link->is_ready || link->is_growing || message->bytes < 0) {
        return broken(link, "a wish for memory out of turn");
    }
    link->is_growing = true;
    link->grow_bytes = message->bytes;
    gar_pool_submit(gar_runtime_compute(link->common->runtime), &link->grow_task);
    return true;
}

static void run_grow(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct gar_link *link = FROM(task, grow_task);
    if (gar_exchange_grow(link->exchange, GAR_ARENA_OUT, link->grow_bytes, &link->grow_error) >=
        0) {
        link->grow_error.message[0] = 0;
    }
    (void)gar_loop_post(link->loop, &link->grown);
}

static void on_grown(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct gar_link *link = FROM(message, grown);
    link->is_growing = false;
    if (link->is_dead) {
        tell_death(link);
        return;
    }
    struct gar_wire_message grant;
    gar_wire_message_init(&grant, GAR_WIRE_GRANT);
    grant.bytes = gar_exchange_bytes(link->exchange, GAR_ARENA_OUT);
    (void)send_message(link, &grant);
}

/* False: stop taking. */
static bool take_message(struct gar_link *link, const struct gar_wire_message *message)
{
    switch (message->kind) {
    case GAR_WIRE_HELLO: return take_hello(link, message);
    case GAR_WIRE_READY: return take_ready(link);
    case GAR_WIRE_RESULT:
    case GAR_WIRE_FAILED: return take_answer(link, message);
    case GAR_WIRE_GROW: return take_grow(link, message);
    default: return broken(link, "a message of no known kind");
    }
}

/* True while more may be there. */
static bool take_messages(struct gar_link *link, int32_t most)
{
    for (int32_t i = 0; i < most; i++) {
        struct gar_wire_message message;
        int64_t bytes = 0;
        const enum gar_status status =
            gar_socket_receive(link->socket.fd, &message, (int64_t)sizeof message, false, &bytes);
        if (status == GAR_PENDING) {
            return true;
        }
        if (status == GAR_EOF) {
            gar_loop_unwatch_on_loop(link->loop, &link->socket);
            if (!link->is_stopping) {
                gar_loop_start_timer_on_loop(link->loop, &link->hangup, gar_clock_ns() + HANGUP_NS);
            }
            return false;
        }
        if (!gar_wire_message_is_sound(&message, bytes)) {
            return broken(link, "bytes that are no message");
        }
        if (!take_message(link, &message)) {
            return false;
        }
        if (link->is_kill_wanted) {
            return false;
        }
    }
    return true;
}

static void on_socket(struct gar_watch *watch, struct gar_loop *loop, uint32_t events)
{
    (void)loop;
    (void)events;
    struct gar_link *link = FROM(watch, socket);
    if (link->is_kill_wanted) { /* nothing it says counts any more */
        gar_loop_unwatch_on_loop(link->loop, watch);
        return;
    }
    (void)take_messages(link, MESSAGES_MAX);
}

static void on_hangup(struct gar_timer *timer, struct gar_loop *loop)
{
    (void)loop;
    struct gar_link *link = FROM(timer, hangup);
    (void)broken(link, "it closed its socket");
}

void gar_link_read_failure(const struct gar_link *link, const struct gar_wire_message *message,
                           struct gar_actor_failure *failure)
{
    /* Copied first: the worker may write meanwhile. */
    const int64_t bytes = gar_min_i64(message->bytes, TEXT_PART_MAX);
    char *texts = gar_malloc(bytes + 3);
    if (texts == NULL) {
        return;
    }
    memcpy(texts, gar_exchange_data(link->exchange, GAR_ARENA_OUT) + message->offset,
           (size_t)bytes);
    memset(texts + bytes, 0, 3);
    const char *type = texts;
    const char *text = type + strlen(type) + 1;
    const char *traceback = text + strlen(text) + 1;
    failure->type = gar_strdup(type);
    char *copy = gar_strdup(text);
    if (copy != NULL) {
        gar_free(failure->text);
        failure->text = copy;
    }
    if (traceback < texts + bytes && traceback[0] != 0) {
        failure->traceback = gar_strdup(traceback);
    }
    failure->retry_after_ns = message->extra;
    gar_free(texts);
}
