/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a running query and their readers; see profile.h for who writes what. */
#include "exec/profile.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/exec_priv.h"
#include "runtime/activity.h"
#include "runtime/trace.h"

/* Memory that counts what an operator holds. Charged to the query's account like everything else. */
struct op_memory {
    struct gar_memory base;
    struct gar_memory *inner; /* owned reference */
    struct op_memory *next;   /* of the profile's list */
    int64_t refs;             /* atomic */
    int64_t used_bytes;       /* atomic */
    int64_t peak_bytes;       /* atomic */
};

struct scan_counts {
    struct gar_scan_counts counts;
    struct scan_counts *next;
};

struct pool_counts {
    struct gar_pool_counts counts;
    struct pool_counts *next;
    char name[];
};

/* What is known of an operator before it runs. */
struct op {
    const char *name;
    const char *detail; /* in texts */
    enum gar_operator_role role;
    int32_t pipeline;                     /* from 1 */
    int32_t branch;                       /* from 1 */
    const struct op_memory *memory;       /* in the profile's list, or NULL */
    const struct gar_scan_counts *counts; /* likewise */
};

struct waiting {
    struct waiting *next;
    char text[];
};

/* Texts kept for one query: later ones are only logged. */
enum { REPORTS_MAX = 64 };

struct gar_profile {
    int64_t refs; /* atomic */
    int64_t id;
    int64_t start_ns;
    int64_t end_ns; /* atomic, released after status; 0: runs */
    enum gar_status status;
    int32_t is_told;      /* atomic */
    int32_t is_described; /* atomic, released after what follows, which is constant then */
    int32_t op_count;
    int32_t pipeline_count;
    int32_t workers;                   /* the role's counts are behind those of the workers */
    int32_t is_inline;                 /* atomic */
    struct gar_account *account;       /* owned reference, or NULL */
    struct op *ops;                    /* owned */
    struct gar_strbuf texts;           /* details, NUL between them */
    struct gar_worker_counts **counts; /* workers + 1 items, atomic; owned; NULL: has not worked */
    int32_t pipeline;                  /* atomic: that runs now */
    struct op_memory *memories;        /* owned references */
    struct scan_counts *scans;         /* owned */
    struct pool_counts *pools;         /* owned; in the order in which they were made */
    int64_t result_bytes;              /* atomic; role */
    struct waiting *reports; /* owned; role: all that was said, as readers may hold the text */
    int64_t report_count;    /* role */
    const char *waiting;     /* atomic; in reports */
};

static int64_t word(const int64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* ---- life ---- */

static int64_t last_id; /* atomic */

enum gar_status gar_profile_new(struct gar_account *account, struct gar_profile **out,
                                struct gar_error *err)
{
    struct gar_profile *profile = (struct gar_profile *)gar_calloc(1, (int64_t)sizeof *profile);
    if (profile == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *profile);
    }
    profile->refs = 1;
    profile->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    profile->start_ns = gar_clock_ns();
    profile->account = account != NULL ? gar_account_ref(account) : NULL;
    *out = profile;
    return GAR_OK;
}

struct gar_profile *gar_profile_ref(struct gar_profile *profile)
{
    (void)__atomic_fetch_add(&profile->refs, 1, __ATOMIC_RELAXED);
    return profile;
}

void gar_profile_unref(struct gar_profile *profile)
{
    if (profile == NULL || __atomic_sub_fetch(&profile->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (int32_t w = 0; profile->counts != NULL && w <= profile->workers; w++) {
        gar_free(profile->counts[w]);
    }
    gar_free((void *)profile->counts);
    gar_free(profile->ops);
    gar_strbuf_destroy(&profile->texts);
    while (profile->memories != NULL) {
        struct op_memory *memory = profile->memories;
        profile->memories = memory->next;
        gar_memory_unref(&memory->base);
    }
    while (profile->scans != NULL) {
        struct scan_counts *scan = profile->scans;
        profile->scans = scan->next;
        gar_free(scan);
    }
    while (profile->pools != NULL) {
        struct pool_counts *pool = profile->pools;
        profile->pools = pool->next;
        gar_free(pool);
    }
    while (profile->reports != NULL) {
        struct waiting *report = profile->reports;
        profile->reports = report->next;
        gar_free(report);
    }
    gar_account_unref(profile->account);
    gar_free(profile);
}

/* ---- memory of operators ---- */

static void *op_memory_alloc(struct gar_memory *self, int64_t bytes, int64_t *out_capacity,
                             struct gar_error *err)
{
    struct op_memory *memory = (struct op_memory *)self;
    void *data = gar_memory_alloc(memory->inner, bytes, out_capacity, err);
    if (data != NULL) {
        const int64_t used =
            __atomic_add_fetch(&memory->used_bytes, *out_capacity, __ATOMIC_RELAXED);
        int64_t peak = word(&memory->peak_bytes);
        while (peak < used && !__atomic_compare_exchange_n(&memory->peak_bytes, &peak, used, true,
                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
    return data;
}

static void op_memory_free(struct gar_memory *self, void *data, int64_t capacity)
{
    struct op_memory *memory = (struct op_memory *)self;
    gar_memory_free(memory->inner, data, capacity);
    (void)__atomic_fetch_sub(&memory->used_bytes, capacity, __ATOMIC_RELAXED);
}

static void op_memory_ref(struct gar_memory *self)
{
    (void)__atomic_fetch_add(&((struct op_memory *)self)->refs, 1, __ATOMIC_RELAXED);
}

static void op_memory_unref(struct gar_memory *self)
{
    struct op_memory *memory = (struct op_memory *)self;
    if (__atomic_sub_fetch(&memory->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_memory_unref(memory->inner);
        gar_free(memory);
    }
}

static int64_t op_memory_room(const struct gar_memory *self, int64_t *out_limit)
{
    return gar_memory_room(((const struct op_memory *)(const void *)self)->inner, out_limit);
}

int64_t gar_profile_memory_bytes(const struct gar_memory *memory)
{
    return word(&((const struct op_memory *)(const void *)memory)->used_bytes);
}

enum gar_status gar_profile_new_memory(struct gar_profile *profile, struct gar_memory *inner,
                                       struct gar_memory **out, struct gar_error *err)
{
    static const struct gar_memory_vtable vtable = {.alloc = op_memory_alloc,
                                                    .free = op_memory_free,
                                                    .ref = op_memory_ref,
                                                    .unref = op_memory_unref,
                                                    .room = op_memory_room};
    struct op_memory *memory = (struct op_memory *)gar_calloc(1, (int64_t)sizeof *memory);
    if (memory == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *memory);
    }
    memory->base.vtable = &vtable;
    memory->inner = gar_memory_ref(inner);
    memory->refs = 1;
    memory->next = profile->memories;
    profile->memories = memory;
    *out = &memory->base;
    return GAR_OK;
}

struct gar_scan_counts *gar_profile_new_scan(struct gar_profile *profile)
{
    struct scan_counts *scan = (struct scan_counts *)gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return NULL;
    }
    scan->counts.files_total = scan->counts.pieces_total = -1;
    scan->counts.bytes_total = scan->counts.rows_total = -1;
    scan->next = profile->scans;
    profile->scans = scan;
    return &scan->counts;
}

struct gar_pool_counts *gar_profile_new_pool(struct gar_profile *profile, const char *name)
{
    const int64_t bytes = (int64_t)strlen(name) + 1;
    struct pool_counts *pool = (struct pool_counts *)gar_calloc(1, (int64_t)sizeof *pool + bytes);
    if (pool == NULL) {
        return NULL;
    }
    memcpy(pool->name, name, (size_t)bytes);
    pool->counts.name = pool->name;
    struct pool_counts **tail = &profile->pools;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = pool;
    return &pool->counts;
}

/* ---- description ---- */

/* NULL: out of memory. Each worker asks for its own only. */
static struct gar_worker_counts *counts_of(struct gar_profile *profile, int32_t worker)
{
    struct gar_worker_counts *counts = profile->counts[worker];
    if (GAR_UNLIKELY(counts == NULL)) {
        const int64_t bytes = (int64_t)sizeof *counts +
                              profile->op_count * (int64_t)sizeof counts->ops[0] + GAR_CACHE_LINE;
        counts = (struct gar_worker_counts *)gar_calloc(1, bytes);
        if (counts != NULL) {
            __atomic_store_n(&profile->counts[worker], counts, __ATOMIC_RELEASE);
        }
    }
    return counts;
}

static int32_t count_ops(const struct gar_query *query)
{
    int32_t count = 0;
    for (const struct gar_pipeline *p = query->pipelines; p != NULL; p = p->all_next) {
        for (int64_t b = 0; b < p->branch_count; b++) {
            count += 1 + (int32_t)p->branches[b].transform_count;
        }
        count++;
    }
    return count;
}

static const struct op_memory *memory_of(const struct gar_memory *memory)
{
    return memory != NULL && memory->vtable->alloc == op_memory_alloc
               ? (const struct op_memory *)(const void *)memory
               : NULL;
}

static void describe_source(struct gar_source *source, struct op *op, struct gar_strbuf *texts)
{
    op->role = GAR_OPERATOR_SOURCE;
    op->name = source->vtable->name;
    op->memory = memory_of(source->memory);
    op->counts = source->counts;
    source->vtable->explain(source, texts);
}

static void describe_sink(struct gar_pipeline *p, struct op *op, struct gar_strbuf *texts)
{
    struct gar_sink *sink = p->sink;
    op->role = GAR_OPERATOR_SINK;
    op->name = sink->vtable->name;
    op->memory = memory_of(sink->memory);
    op->branch = 1;
    sink->vtable->explain(sink, texts);
    if (p->range.skip > 0) {
        gar_strbuf_printf(texts, ", offset %lld", (long long)p->range.skip);
    }
    if (p->range.take >= 0) {
        gar_strbuf_printf(texts, ", limit %lld", (long long)p->range.take);
    }
    if (sink->vtable->push == NULL) {
        gar_strbuf_append(texts, p->is_ordered ? ", in order" : ", in any order");
    }
}

/* Numbers the operators in the order of the plan's text; details lie one behind the other in texts, each with its NUL. */
static void describe_ops(struct gar_profile *profile, const struct gar_query *query)
{
    int32_t op = 0;
    for (struct gar_pipeline *p = query->pipelines; p != NULL; p = p->all_next) {
        p->number = ++profile->pipeline_count;
        for (int64_t b = 0; b < p->branch_count; b++) {
            struct gar_branch *branch = &p->branches[b];
            branch->op = op;
            branch->source->op = op;
            for (int64_t t = -1; t < branch->transform_count; t++, op++) {
                struct op *o = &profile->ops[op];
                o->pipeline = p->number;
                o->branch = (int32_t)b + 1;
                if (t < 0) {
                    describe_source(branch->source, o, &profile->texts);
                } else {
                    const struct gar_transform *transform = branch->transforms[t];
                    o->role = GAR_OPERATOR_TRANSFORM;
                    o->name = transform->vtable->name;
                    transform->vtable->explain(transform, &profile->texts);
                }
                gar_strbuf_append_char(&profile->texts, '\0');
            }
        }
        profile->ops[op].pipeline = p->number;
        p->sink->op = op;
        describe_sink(p, &profile->ops[op++], &profile->texts);
        gar_strbuf_append_char(&profile->texts, '\0');
    }
}

static void trace_query(const struct gar_profile *profile,
                        void (*note)(int64_t query, const char *name))
{
    char name[32];
    if (gar_trace_is_on()) {
        (void)snprintf(name, sizeof name, "query %lld", (long long)profile->id);
        note(profile->id, name);
    }
}

enum gar_status gar_profile_describe(struct gar_profile *profile, const struct gar_query *query,
                                     struct gar_error *err)
{
    profile->op_count = count_ops(query);
    profile->is_inline = query->is_inline ? 1 : 0;
    profile->workers =
        (int32_t)gar_max_i64(query->workers, gar_pool_workers(gar_runtime_compute(query->runtime)));
    profile->ops = (struct op *)gar_calloc(profile->op_count, (int64_t)sizeof *profile->ops);
    profile->counts = (struct gar_worker_counts **)gar_calloc(
        profile->workers + 1, (int64_t)sizeof(struct gar_worker_counts *));
    if (profile->ops == NULL || profile->counts == NULL) {
        return gar_error_nomem(err, profile->op_count * (int64_t)sizeof *profile->ops);
    }
    describe_ops(profile, query);
    if (profile->texts.failed || counts_of(profile, profile->workers) == NULL) {
        return gar_error_nomem(err, profile->texts.size);
    }
    const char *text = profile->texts.data;
    for (int32_t i = 0; i < profile->op_count; i++) {
        profile->ops[i].detail = text;
        text += strlen(text) + 1;
    }
    trace_query(profile, gar_trace_query_begin);
    __atomic_store_n(&profile->is_described, 1, __ATOMIC_RELEASE);
    return GAR_OK;
}

/* ---- writing ---- */

void gar_profile_note_result(struct gar_profile *profile, int64_t rows, int64_t bytes)
{
    struct gar_op_counts *counts = &profile->counts[profile->workers]->ops[profile->op_count - 1];
    GAR_COUNT_ADD(counts->rows_out, rows);
    GAR_COUNT_ADD(profile->result_bytes, bytes);
}

void gar_profile_note_call(struct gar_profile *profile, const struct gar_meter *meter, int32_t op,
                           bool is_io)
{
    struct gar_worker_counts *role = profile->counts[profile->workers];
    GAR_COUNT_ADD(role->cpu_ns, meter->cpu_ns);
    GAR_COUNT_ADD(role->tasks, 1);
    if (op >= 0 && is_io) {
        GAR_COUNT_ADD(role->ops[op].io_ns, meter->call_ns);
    } else if (op >= 0) {
        GAR_COUNT_ADD(role->ops[op].busy_ns, meter->call_ns);
    }
}

void gar_meter_begin_call(struct gar_meter *meter, int32_t op)
{
    meter->cpu_ns = gar_clock_thread_cpu_ns();
    meter->begin_ns = gar_clock_ns();
    __atomic_store_n(&meter->since_ns, meter->begin_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&meter->activity, gar_activity_self(), __ATOMIC_RELEASE);
    gar_meter_enter(meter, op);
}

void gar_meter_end_call(struct gar_meter *meter)
{
    meter->call_ns = gar_clock_ns() - meter->begin_ns;
    meter->cpu_ns = gar_clock_thread_cpu_ns() - meter->cpu_ns;
    gar_meter_enter(meter, GAR_METER_IDLE);
    __atomic_store_n(&meter->activity, NULL, __ATOMIC_RELAXED);
}

/* The share of a column's buffers that is its own: a slice has a part of them. Dictionaries are shared and not counted. */
static int64_t column_bytes(const struct gar_column *column)
{
    if (column->encoding != GAR_FLAT) {
        return column->encoding == GAR_DICTIONARY ? 4 * column->length : 0;
    }
    const int64_t bytes = column->type.id == GAR_BOOL
                              ? column->length / 8
                              : column->length * gar_type_width(column->type);
    int64_t data = 0;
    for (int32_t i = 0; i < column->data_count; i++) {
        data += column->data[i]->size;
    }
    if (data > 0 && column->values_owner != NULL && column->values_owner->size > bytes) {
        data = (int64_t)((double)data * (double)bytes / (double)column->values_owner->size);
    }
    return bytes + data + (column->validity != NULL ? column->length / 8 : 0);
}

int64_t gar_profile_batch_bytes(const struct gar_batch *batch)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < batch->schema->count; i++) {
        bytes += column_bytes(batch->columns[i]);
    }
    return batch->selected == batch->rows
               ? bytes
               : (int64_t)((double)bytes * (double)batch->selected / (double)batch->rows);
}

void gar_profile_set_told(struct gar_profile *profile)
{
    __atomic_store_n(&profile->is_told, 1, __ATOMIC_RELEASE);
}

bool gar_profile_is_told(const struct gar_profile *profile)
{
    return __atomic_load_n(&profile->is_told, __ATOMIC_ACQUIRE) != 0;
}

void gar_profile_set_on_loop(struct gar_profile *profile)
{
    __atomic_store_n(&profile->is_inline, 0, __ATOMIC_RELAXED);
}

void gar_profile_set_pipeline(struct gar_profile *profile, int32_t pipeline)
{
    __atomic_store_n(&profile->pipeline, pipeline, __ATOMIC_RELAXED);
}

struct gar_account *gar_profile_account(const struct gar_profile *profile)
{
    return profile->account;
}

int64_t gar_profile_id(const struct gar_profile *profile)
{
    return profile->id;
}

int64_t gar_profile_moves(const struct gar_profile *profile)
{
    int64_t moves = 0;
    for (int32_t w = 0; w <= profile->workers; w++) {
        const struct gar_worker_counts *counts =
            __atomic_load_n(&profile->counts[w], __ATOMIC_ACQUIRE);
        for (int32_t i = 0; counts != NULL && i < profile->op_count; i++) {
            moves += word(&counts->ops[i].batches) + word(&counts->ops[i].rows_out);
        }
    }
    return moves;
}

void gar_profile_set_waiting(struct gar_profile *profile, const char *text)
{
    struct waiting *report = NULL;
    if (text != NULL && profile->report_count < REPORTS_MAX) {
        const int64_t bytes = (int64_t)strlen(text) + 1;
        report = (struct waiting *)gar_malloc((int64_t)sizeof *report + bytes);
    }
    if (report != NULL) {
        memcpy(report->text, text, strlen(text) + 1);
        report->next = profile->reports;
        profile->reports = report;
        profile->report_count++;
    }
    __atomic_store_n(&profile->waiting, report != NULL ? report->text : NULL, __ATOMIC_RELEASE);
}

void gar_profile_end(struct gar_profile *profile, enum gar_status status)
{
    profile->status = status;
    trace_query(profile, gar_trace_query_end);
    __atomic_store_n(&profile->end_ns, gar_max_i64(gar_clock_ns(), 1), __ATOMIC_RELEASE);
}

enum gar_status gar_meter_begin(struct gar_meter *meter, struct gar_profile *profile,
                                int32_t worker, int32_t op, struct gar_error *err)
{
    meter->counts = counts_of(profile, worker);
    if (meter->counts == NULL) {
        return gar_error_nomem(err, profile->op_count * (int64_t)sizeof(struct gar_op_counts));
    }
    meter->cpu_ns = gar_clock_thread_cpu_ns();
    meter->begin_ns = gar_clock_ns();
    __atomic_store_n(&meter->since_ns, meter->begin_ns, __ATOMIC_RELAXED);
    gar_meter_enter(meter, op);
    return GAR_OK;
}

void gar_meter_end(struct gar_meter *meter)
{
    gar_meter_enter(meter, GAR_METER_IDLE);
    GAR_COUNT_ADD(meter->counts->cpu_ns, gar_clock_thread_cpu_ns() - meter->cpu_ns);
    GAR_COUNT_ADD(meter->counts->tasks, 1);
}

/* ---- reading ---- */

static bool is_described(const struct gar_profile *profile)
{
    return __atomic_load_n(&profile->is_described, __ATOMIC_ACQUIRE) != 0;
}

static struct gar_op_counts sum_op(const struct gar_profile *profile, int32_t op)
{
    struct gar_op_counts sum = {0};
    for (int32_t w = 0; w <= profile->workers; w++) {
        const struct gar_worker_counts *counts =
            __atomic_load_n(&profile->counts[w], __ATOMIC_ACQUIRE);
        if (counts != NULL) {
            const struct gar_op_counts *c = &counts->ops[op];
            sum.rows_in += word(&c->rows_in);
            sum.rows_out += word(&c->rows_out);
            sum.batches += word(&c->batches);
            sum.bytes += word(&c->bytes);
            sum.busy_ns += word(&c->busy_ns);
            sum.io_ns += word(&c->io_ns);
        }
    }
    return sum;
}

void gar_profile_read_query(const struct gar_profile *profile, struct gar_query_profile *out)
{
    const int64_t end_ns = __atomic_load_n(&profile->end_ns, __ATOMIC_ACQUIRE);
    *out = (struct gar_query_profile){.struct_bytes = sizeof *out,
                                      .wall_ns = (end_ns != 0 ? end_ns : gar_clock_ns()) -
                                                 profile->start_ns,
                                      .is_finished = end_ns != 0,
                                      .status = end_ns != 0 ? profile->status : GAR_OK};
    if (profile->account != NULL) {
        out->memory_bytes = gar_account_used_bytes(profile->account);
        out->memory_peak_bytes = gar_account_peak_bytes(profile->account);
    }
    if (!is_described(profile)) {
        return;
    }
    out->operator_count = profile->op_count;
    out->pipeline_count = profile->pipeline_count;
    out->is_inline = __atomic_load_n(&profile->is_inline, __ATOMIC_RELAXED) != 0;
    out->threads = out->is_inline ? 1 : profile->workers;
    out->pipeline = end_ns != 0 ? 0 : __atomic_load_n(&profile->pipeline, __ATOMIC_RELAXED);
    out->waiting = end_ns != 0 ? NULL : __atomic_load_n(&profile->waiting, __ATOMIC_ACQUIRE);
    for (int32_t w = 0; w <= profile->workers; w++) {
        const struct gar_worker_counts *counts =
            __atomic_load_n(&profile->counts[w], __ATOMIC_ACQUIRE);
        out->cpu_ns += counts != NULL ? word(&counts->cpu_ns) : 0;
    }
    for (int32_t i = 0; i < profile->op_count; i++) {
        if (profile->ops[i].counts != NULL) {
            out->rows_read += sum_op(profile, i).rows_out;
        }
    }
    out->rows = sum_op(profile, profile->op_count - 1).rows_out;
    out->bytes = word(&profile->result_bytes);
}

static void read_scan(const struct gar_scan_counts *counts, struct gar_operator_profile *out)
{
    out->files_total = word(&counts->files_total);
    out->files_read = out->files_total >= 0 ? word(&counts->files_read) : -1;
    out->pieces_total = word(&counts->pieces_total);
    out->pieces_skipped = out->pieces_total >= 0 ? word(&counts->pieces_skipped) : -1;
    out->pieces_read = word(&counts->pieces_read);
    out->bytes_total = word(&counts->bytes_total);
    out->bytes_read = word(&counts->bytes_read);
    out->rows_total = word(&counts->rows_total);
    out->rows_in = gar_max_i64(word(&counts->rows_read), out->rows_in);
}

bool gar_profile_read_pool(const struct gar_profile *profile, int64_t i,
                           struct gar_pool_counts *out)
{
    const struct pool_counts *pool = is_described(profile) ? profile->pools : NULL;
    for (; pool != NULL && i > 0; i--) {
        pool = pool->next;
    }
    if (pool == NULL || i < 0) {
        return false;
    }
    const struct gar_pool_counts *counts = &pool->counts;
    *out = (struct gar_pool_counts){.name = counts->name,
                                    .actors = word(&counts->actors),
                                    .ready = word(&counts->ready),
                                    .busy = word(&counts->busy),
                                    .restarts = word(&counts->restarts),
                                    .rows = word(&counts->rows)};
    return true;
}

bool gar_profile_read_operator(const struct gar_profile *profile, int64_t i,
                               struct gar_operator_profile *out)
{
    if (!is_described(profile) || i < 0 || i >= profile->op_count) {
        return false;
    }
    const struct op *op = &profile->ops[i];
    const struct gar_op_counts sum = sum_op(profile, (int32_t)i);
    *out = (struct gar_operator_profile){.struct_bytes = sizeof *out,
                                         .name = op->name,
                                         .detail = op->detail,
                                         .role = op->role,
                                         .pipeline = op->pipeline,
                                         .branch = op->branch,
                                         .rows_in = sum.rows_in,
                                         .rows_out = sum.rows_out,
                                         .batches = sum.batches,
                                         .bytes = sum.bytes,
                                         .busy_ns = sum.busy_ns,
                                         .io_ns = sum.io_ns,
                                         .files_total = -1,
                                         .files_read = -1,
                                         .pieces_total = -1,
                                         .pieces_skipped = -1,
                                         .pieces_read = -1,
                                         .bytes_read = -1,
                                         .bytes_total = -1,
                                         .rows_total = -1};
    if (op->memory != NULL) {
        out->memory_bytes = word(&op->memory->used_bytes);
        out->memory_peak_bytes = word(&op->memory->peak_bytes);
    }
    if (op->role == GAR_OPERATOR_SOURCE) {
        out->rows_in = sum.rows_out;
    }
    if (op->counts != NULL) {
        read_scan(op->counts, out);
    }
    return true;
}
