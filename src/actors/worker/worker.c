/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of an actor pool: one thread that takes messages from the inherited socket, calls the actor, and puts
 * results into the outbound arena, whose book it keeps.
 *
 * A result's place comes back when the engine marks its slot in the control block; marks are looked at when room is
 * needed. After an answer the worker looks for the next message in memory for a moment before it sleeps in the kernel. */
#include <gar/actor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actors/arena.h"
#include "actors/setup.h"
#include "actors/wire.h"
#include "base/alloc.h"
#include "os/clock.h"
#include "os/map.h"
#include "os/process.h"
#include "os/shared_map.h"
#include "os/socket.h"
#include "os/thread.h"

/* As long as the engine's own threads look for work before they sleep. */
#define SPIN_NS INT64_C(30000)

/* Calls that may wait while the worker asks for room; the pool sends at most two ahead. */
#define PENDING_MAX 8

#define TEXT_HALF_BYTES (GAR_WIRE_TEXT_BYTES / 2)
#define TYPE_BYTES_MAX  256
#define TEXT_BYTES_MAX  8192

struct arena {
    uint8_t *data;
    int64_t bytes; /* granted: out; pages made: in */
};

struct worker {
    const struct gar_actor_class *actor_class;
    void *actor;
    struct arena in;
    struct arena out;
    int64_t window;
    struct gar_wire_control *control;
    uint32_t received; /* messages; compared with control->posted */
    struct gar_wire_message pending[PENDING_MAX];
    int32_t pending_count;
    struct gar_setup setup;
    struct gar_wire_layout *input;
    struct gar_wire_layout *output;
    struct gar_wire_span *spans; /* one for each node of output */
    struct gar_regions regions;  /* of out */
    struct gar_region *slots;    /* GAR_WIRE_SLOTS; bytes 0: free */
    uint32_t slots_end;          /* slots in use are below */
    /* the failure that the actor reports */
    struct gar_actor_report report;
    bool has_failure;
    char type[TYPE_BYTES_MAX];
    char text[TEXT_BYTES_MAX];
    char *traceback; /* owned, or NULL */
    int64_t retry_after_ns;
};

/* ---- messages ---- */

static bool send_message(const struct gar_wire_message *message)
{
    return gar_socket_send(GAR_WIRE_FD_SOCKET, message, (int64_t)sizeof *message) == GAR_OK;
}

/* The next message; false when the pool is gone. */
static bool receive(struct worker *w, struct gar_wire_message *out)
{
    const int64_t until_ns = gar_clock_ns() + SPIN_NS;
    for (int32_t i = 1; __atomic_load_n(&w->control->posted, __ATOMIC_ACQUIRE) == w->received;
         i++) {
        if (i % 16 == 0 && gar_clock_ns() >= until_ns) {
            break;
        }
        gar_thread_pause();
    }
    for (;;) {
        int64_t bytes = 0;
        const enum gar_status status =
            gar_socket_receive(GAR_WIRE_FD_SOCKET, out, (int64_t)sizeof *out, true, &bytes);
        if (status == GAR_EOF || (status == GAR_OK && !gar_wire_message_is_sound(out, bytes))) {
            return false;
        }
        if (status == GAR_OK) {
            w->received++;
            return true;
        }
    }
}

/* Those that came while we waited for something else come first. */
static bool next_message(struct worker *w, struct gar_wire_message *out)
{
    if (w->pending_count == 0) {
        return receive(w, out);
    }
    *out = w->pending[0];
    w->pending_count--;
    memmove(&w->pending[0], &w->pending[1], (size_t)w->pending_count * sizeof w->pending[0]);
    return true;
}

/* ---- failures ---- */

static void copy_cut(char *to, size_t bytes, const char *from)
{
    const size_t length = strnlen(from != NULL ? from : "", bytes - 1);
    memcpy(to, from != NULL ? from : "", length);
    to[length] = 0;
}

static void on_fail(struct gar_actor_report *report, const char *type, const char *text,
                    const char *traceback)
{
    struct worker *w = report->context;
    copy_cut(w->type, sizeof w->type, type);
    copy_cut(w->text, sizeof w->text, text);
    gar_free(w->traceback);
    w->traceback = traceback != NULL ? gar_strdup(traceback) : NULL;
    w->has_failure = true;
}

static void on_retry_after(struct gar_actor_report *report, int64_t ns)
{
    struct worker *w = report->context;
    w->retry_after_ns = ns;
}

static void reset_failure(struct worker *w)
{
    w->has_failure = false;
    w->retry_after_ns = -1;
    w->type[0] = 0;
    w->text[0] = 0;
    gar_free(w->traceback);
    w->traceback = NULL;
}

/* Texts of the failure into the half of the text part that belongs to this call, then the message. The pool has read the
 * half before it sends the call after the next. */
static bool send_failure(struct worker *w, uint64_t seq, enum gar_wire_failure kind)
{
    if (!w->has_failure) {
        on_fail(&w->report, "Error", "the actor failed without saying why", NULL);
    }
    const int64_t offset = (int64_t)(seq & 1) * TEXT_HALF_BYTES;
    char *to = (char *)w->out.data + offset;
    int64_t at = 0;
    const char *const parts[3] = {w->type, w->text, w->traceback != NULL ? w->traceback : ""};
    for (int i = 0; i < 3; i++) {
        const char *part = parts[i];
        const int64_t length = (int64_t)strlen(part);
        const int64_t room = TEXT_HALF_BYTES - at - 3;
        /* Of a traceback the end matters. */
        const int64_t skip = gar_max_i64(length - room, 0);
        memcpy(to + at, part + skip, (size_t)(length - skip));
        at += length - skip;
        to[at++] = 0;
    }
    struct gar_wire_message message;
    gar_wire_message_init(&message, GAR_WIRE_FAILED);
    message.seq = seq;
    message.offset = offset;
    message.bytes = at;
    message.detail = (uint32_t)kind;
    message.extra = w->retry_after_ns;
    return send_message(&message);
}

static void fail_by_error(struct worker *w, const char *type, const struct gar_error *err)
{
    on_fail(&w->report, type, err->message, NULL);
}

/* ---- the outbound arena ---- */

static void free_slot(struct worker *w, uint32_t slot)
{
    gar_regions_give(&w->regions, w->slots[slot].offset, w->slots[slot].bytes);
    w->slots[slot].bytes = 0;
    while (w->slots_end > 0 && w->slots[w->slots_end - 1].bytes == 0) {
        w->slots_end--;
    }
}

/* Take back what the engine has dropped. */
static void reclaim(struct worker *w)
{
    const uint32_t end = w->slots_end;
    for (uint32_t slot = 0; slot < end; slot++) {
        if (w->slots[slot].bytes > 0 &&
            __atomic_load_n(&w->control->out_done[slot], __ATOMIC_ACQUIRE) != 0) {
            free_slot(w, slot);
        }
    }
}

/* The arena gets room for `bytes`, or the answer is no. */
static enum gar_status ask_for_room(struct worker *w, int64_t bytes, struct gar_error *err)
{
    const int64_t end = gar_regions_end_for(&w->regions, bytes);
    struct gar_wire_message message;
    gar_wire_message_init(&message, GAR_WIRE_GROW);
    message.bytes = end;
    if (!send_message(&message)) {
        return gar_error_set(err, GAR_ERR_CANCELLED, "the pool is gone");
    }
    for (;;) {
        if (!receive(w, &message)) {
            return gar_error_set(err, GAR_ERR_CANCELLED, "the pool is gone");
        }
        if (message.kind == GAR_WIRE_GRANT) {
            break;
        }
        if (w->pending_count == PENDING_MAX) {
            return gar_error_set(err, GAR_ERR_INTERNAL, "too many calls ahead");
        }
        w->pending[w->pending_count++] = message;
    }
    if (message.bytes > w->out.bytes && message.bytes <= w->window) {
        GAR_TRY(gar_shared_populate(w->out.data, w->out.bytes, message.bytes - w->out.bytes, err));
        GAR_TRY(gar_regions_extend(&w->regions, w->out.bytes, message.bytes, err));
        w->out.bytes = message.bytes;
    }
    return w->out.bytes >= end
               ? GAR_OK
               : gar_error_set(err, GAR_ERR_NOMEM,
                               "a result of %lld bytes finds no room in shared memory",
                               (long long)bytes);
}

static enum gar_status take_room(struct worker *w, int64_t bytes, uint32_t *out_slot,
                                 struct gar_error *err)
{
    reclaim(w);
    uint32_t slot = 0;
    while (slot < w->slots_end && w->slots[slot].bytes > 0) {
        slot++;
    }
    if (slot == GAR_WIRE_SLOTS) {
        return gar_error_set(err, GAR_ERR_NOMEM, "%d results are held at once", GAR_WIRE_SLOTS);
    }
    int64_t offset = 0;
    enum gar_status status = gar_regions_take(&w->regions, bytes, &offset, err);
    if (status == GAR_PENDING) {
        GAR_TRY(ask_for_room(w, bytes, err));
        status = gar_regions_take(&w->regions, bytes, &offset, err);
    }
    if (status != GAR_OK) {
        return status < 0 ? status : gar_error_set(err, GAR_ERR_INTERNAL, "room that is none");
    }
    w->slots[slot] = (struct gar_region){offset, gar_max_i64(bytes, 1)};
    if (slot >= w->slots_end) {
        w->slots_end = slot + 1;
    }
    __atomic_store_n(&w->control->out_done[slot], (uint8_t)0, __ATOMIC_RELAXED);
    *out_slot = slot;
    return GAR_OK;
}

/* ---- calls ---- */

static void on_input_released(void *mark)
{
    __atomic_store_n((uint8_t *)mark, (uint8_t)1, __ATOMIC_RELEASE);
}

/* Pages of the inbound arena up to `end`, at once instead of one fault each. */
static void reach(struct worker *w, int64_t end)
{
    if (end > w->in.bytes) {
        const int64_t to = (end + GAR_MAP_HUGE_BYTES - 1) / GAR_MAP_HUGE_BYTES * GAR_MAP_HUGE_BYTES;
        const int64_t size = gar_shared_size(GAR_WIRE_FD_IN);
        const int64_t until = gar_min_i64(to, size) / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES;
        if (until > w->in.bytes &&
            gar_shared_populate(w->in.data, w->in.bytes, until - w->in.bytes, NULL) == GAR_OK) {
            w->in.bytes = until;
        }
    }
}

/* The output goes to the outbound arena. */
static enum gar_status put_result(struct worker *w, const struct ArrowSchema *schema,
                                  const struct ArrowArray *array, struct gar_wire_message *answer,
                                  enum gar_wire_failure *out_kind, struct gar_error *err)
{
    struct gar_wire_layout *from = NULL;
    *out_kind = GAR_WIRE_BAD_RESULT;
    if (array->length != answer->rows) {
        return gar_error_set(err, GAR_ERR_VALUE, "returned %lld values, expected %lld",
                             (long long)array->length, (long long)answer->rows);
    }
    GAR_TRY(gar_wire_layout_match(w->output, schema, &from, err));
    enum gar_status status =
        gar_wire_measure(w->output, from, array, w->spans, &answer->bytes, err);
    if (status >= 0) {
        *out_kind = GAR_WIRE_NO_ROOM;
        status = take_room(w, answer->bytes, &answer->slot, err);
    }
    if (status >= 0) {
        answer->offset = w->slots[answer->slot].offset;
        gar_wire_write(w->output, from, w->spans, w->out.data + answer->offset);
    }
    gar_free(from);
    return status;
}

static bool handle_call(struct worker *w, const struct gar_wire_message *call)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct ArrowArray input;
    struct ArrowArray output;
    struct ArrowSchema schema;
    memset(&output, 0, sizeof output);
    memset(&schema, 0, sizeof schema);
    reset_failure(w);
    if (call->slot >= GAR_WIRE_SLOTS || call->offset < GAR_WIRE_CONTROL_BYTES || call->bytes < 0 ||
        call->offset > w->window || call->bytes > w->window - call->offset) {
        return false;
    }
    reach(w, call->offset + call->bytes);
    const struct gar_wire_source source = {.region = w->in.data + call->offset,
                                           .bytes = call->bytes,
                                           .rows = call->rows,
                                           .memory = gar_memory_system(),
                                           .on_release = on_input_released,
                                           .context = &w->control->in_done[call->slot]};
    enum gar_wire_failure kind = GAR_WIRE_RAISED;
    bool is_right = false;
    struct gar_wire_message answer;
    gar_wire_message_init(&answer, GAR_WIRE_RESULT);
    answer.seq = call->seq;
    answer.rows = call->rows;
    if (gar_wire_read(w->input, &source, &input, &err) < 0) {
        fail_by_error(w, "MemoryError", &err);
    } else {
        is_right = w->actor_class->call(w->actor, &input, &schema, &output, &w->report) == 0;
        if (input.release != NULL) {
            input.release(&input);
        }
    }
    if (is_right && (schema.release == NULL || output.release == NULL)) {
        kind = GAR_WIRE_BAD_RESULT;
        on_fail(&w->report, "TypeError", "returned nothing", NULL);
        is_right = false;
    }
    if (is_right && put_result(w, &schema, &output, &answer, &kind, &err) < 0) {
        fail_by_error(w,
                      err.status == GAR_ERR_TYPE    ? "TypeError"
                      : err.status == GAR_ERR_VALUE ? "ValueError"
                                                    : "MemoryError",
                      &err);
        is_right = false;
    }
    if (output.release != NULL) {
        output.release(&output);
    }
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    return is_right ? send_message(&answer) : send_failure(w, call->seq, kind);
}

/* ---- start and end ---- */

static enum gar_status prepare(struct worker *w, const struct gar_wire_message *message,
                               struct gar_error *err)
{
    if (message->offset < 0 || message->bytes < 0 || message->offset > w->window ||
        message->bytes > w->window - message->offset) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a setup outside its arena");
    }
    reach(w, message->offset + message->bytes);
    GAR_TRY(gar_setup_read(w->in.data + message->offset, message->bytes, &w->setup, err));
    GAR_TRY(gar_wire_layout_new(&w->setup.input, &w->input, err));
    GAR_TRY(gar_wire_layout_new(&w->setup.output, &w->output, err));
    w->spans = gar_calloc(w->output->count, (int64_t)sizeof w->spans[0]);
    w->slots = gar_calloc(GAR_WIRE_SLOTS, (int64_t)sizeof w->slots[0]);
    if (w->spans == NULL || w->slots == NULL) {
        return gar_error_nomem(err, GAR_WIRE_SLOTS * (int64_t)sizeof w->slots[0]);
    }
    const int64_t bytes = gar_shared_size(GAR_WIRE_FD_OUT);
    GAR_TRY(gar_shared_populate(w->out.data, 0, bytes, err));
    w->out.bytes = bytes;
    return gar_regions_extend(&w->regions, GAR_WIRE_TEXT_BYTES, bytes, err);
}

/* Makes the actor and tells; false: the worker ends. */
static bool handle_setup(struct worker *w, const struct gar_wire_message *message)
{
    struct gar_error err = GAR_ERROR_INIT;
    reset_failure(w);
    bool is_made = false;
    if (prepare(w, message, &err) < 0) {
        fail_by_error(w, "RuntimeError", &err);
    } else {
        const struct gar_actor_setup setup = {.abi = GAR_ACTOR_ABI,
                                              .index = w->setup.index,
                                              .count = w->setup.count,
                                              .name = w->setup.name,
                                              .code = w->setup.code,
                                              .code_bytes = w->setup.code_bytes,
                                              .input = &w->setup.input,
                                              .output = &w->setup.output};
        is_made = w->actor_class->create(&setup, &w->actor, &w->report) == 0;
    }
    w->setup.code = NULL;
    if (!is_made) {
        (void)send_failure(w, 0, GAR_WIRE_RAISED);
        return false;
    }
    struct gar_wire_message ready;
    gar_wire_message_init(&ready, GAR_WIRE_READY);
    return send_message(&ready);
}

/* Until the pool says stop (true) or something is wrong. */
static bool serve(struct worker *w)
{
    struct gar_wire_message message;
    gar_wire_message_init(&message, GAR_WIRE_HELLO);
    message.extra = gar_process_self();
    bool goes_on = send_message(&message);
    bool is_made = false;
    while (goes_on && next_message(w, &message)) {
        switch (message.kind) {
        case GAR_WIRE_SETUP:
            goes_on = !is_made && handle_setup(w, &message);
            is_made = goes_on;
            break;
        case GAR_WIRE_CALL: goes_on = is_made && handle_call(w, &message); break;
        case GAR_WIRE_STOP:
            if (is_made) {
                w->actor_class->destroy(w->actor);
            }
            return true;
        default: goes_on = false; break;
        }
    }
    return false;
}

/* "version:parent:window". */
static bool read_environment(struct worker *w)
{
    const char *text = getenv(GAR_WIRE_ENVIRONMENT);
    int64_t numbers[3] = {0}; /* version, parent, window */
    if (text == NULL || gar_wire_numbers(text, ':', numbers, 3) != 3 ||
        numbers[0] != GAR_WIRE_VERSION || numbers[2] <= GAR_WIRE_CONTROL_BYTES) {
        (void)fprintf(stderr, "gar worker: this program is started by an actor pool, with "
                              "matching versions on both sides\n");
        return false;
    }
    w->window = numbers[2];
    return gar_process_follow_parent(numbers[1]);
}

int gar_actor_worker_run(const struct gar_actor_class *actor_class)
{
    struct worker *w = gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL || actor_class->abi != GAR_ACTOR_ABI || !read_environment(w)) {
        gar_free(w);
        return 70; /* EX_SOFTWARE */
    }
    w->actor_class = actor_class;
    w->report = (struct gar_actor_report){
        .abi = GAR_ACTOR_ABI, .context = w, .fail = on_fail, .retry_after = on_retry_after};
    w->in.data = gar_shared_map(GAR_WIRE_FD_IN, w->window);
    w->out.data = gar_shared_map(GAR_WIRE_FD_OUT, w->window);
    bool is_right = false;
    if (w->in.data != NULL && w->out.data != NULL) {
        w->control = (struct gar_wire_control *)(void *)w->in.data;
        is_right = serve(w);
    }
    /* The maps stay: the actor's language may hold views until the process ends. */
    reset_failure(w);
    gar_setup_destroy(&w->setup);
    gar_regions_destroy(&w->regions);
    gar_free(w->slots);
    gar_free(w->spans);
    gar_free(w->input);
    gar_free(w->output);
    gar_free(w);
    return is_right ? 0 : 70;
}
