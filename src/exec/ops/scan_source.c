/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: units come from the provider in order; those that read are loaded on the IO pool a few units ahead of the
 * workers, and given out in order once they are there. A scan has a cancel token of its own: it is cancelled with the query,
 * and also when no more rows are wanted, so that a result does not wait for a read that nobody needs.
 *
 * Memory: at most `ahead` loaded units, about AHEAD_BYTES where the scan knows the size of its
 * units. */
#include <string.h>

#include "base/alloc.h"
#include "exec/ops/ops.h"

enum { AHEAD_BYTES = 256 << 20, AHEAD_MIN = 2 };

/* A unit that is being read or waits to be taken. */
struct loading {
    struct loading *next;
    struct scan_source *source;
    struct gar_unit *unit; /* owned */
    bool is_loaded;
    bool is_parked; /* was loaded, has to be loaded again */
    bool is_end;    /* sequential: next said GAR_EOF */
};

struct scan_source {
    struct gar_source base;
    struct gar_query *query;            /* borrowed */
    struct gar_scan *scan;              /* owned */
    struct gar_scan_provider *provider; /* owned reference; for explain */
    void **workers;                     /* owned states of the scan */
    int32_t worker_count;
    bool is_filtered;
    const struct gar_key_use *keys; /* borrowed; that the scan looks at */
    int64_t key_count;
    struct gar_cancel *token;      /* owned reference; the provider looks at this one */
    struct gar_cancel_waker waker; /* on the query's token */
    int32_t is_stopped;            /* atomic: no more rows are wanted, errors neither */
    /* role */
    struct loading *first; /* owned */
    struct loading *last;
    int64_t loading_count;
    bool is_reading; /* sequential: a read is under way */
    bool is_at_end;
};

static void drop_first(struct scan_source *source)
{
    struct loading *l = source->first;
    source->first = l->next;
    if (source->first == NULL) {
        source->last = NULL;
    }
    source->loading_count--;
    gar_free(l);
}

static void cancel_scan(struct gar_cancel_waker *waker)
{
    struct scan_source *source =
        (struct scan_source *)(void *)((char *)waker - offsetof(struct scan_source, waker));
    (void)gar_cancel_request(source->token, gar_cancel_reason_get(source->query->cancel));
}

static bool is_stopped(const struct scan_source *source)
{
    return __atomic_load_n(&source->is_stopped, __ATOMIC_ACQUIRE) != 0;
}

static enum gar_status load_unit(struct loading *l, struct gar_error *err)
{
    struct gar_scan *scan = l->source->scan;
    if (scan->sequential) {
        const enum gar_status status = scan->vtable->next(scan, &l->unit, err);
        if (status != GAR_OK) {
            l->is_end = true;
            return status == GAR_EOF ? GAR_OK : status;
        }
    }
    return scan->vtable->load != NULL ? scan->vtable->load(scan, l->unit, err) : GAR_OK;
}

static enum gar_status run_load(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct loading *l = (struct loading *)context;
    if (is_stopped(l->source)) {
        l->is_end = true;
        return GAR_OK;
    }
    const enum gar_status status = load_unit(l, err);
    if (status < 0 && is_stopped(l->source)) {
        l->is_end = true;
        return GAR_OK;
    }
    if (status < 0) {
        (void)gar_cancel_poll(l->source->query->cancel); /* a deadline is the query's reason too */
    }
    return status;
}

static void load_is_done(void *context, struct gar_query *query, enum gar_status status,
                         const struct gar_error *err)
{
    (void)query;
    (void)err;
    struct loading *l = (struct loading *)context;
    l->is_loaded = true;
    l->is_parked = false;
    l->source->is_reading = false;
    if (status < 0 || l->is_end) {
        l->source->is_at_end = true;
    }
}

/* Read l's unit, or the next one, on the IO pool. */
static enum gar_status call_load(struct scan_source *source, struct loading *l,
                                 struct gar_error *err)
{
    const struct gar_work work = {
        .op = source->base.op, .is_io = true, .run = run_load, .done = load_is_done, .context = l};
    return gar_query_call(source->query, &work, err);
}

static enum gar_status begin_load(struct scan_source *source, struct gar_unit *unit,
                                  struct gar_error *err)
{
    struct loading *l = (struct loading *)gar_calloc(1, (int64_t)sizeof *l);
    if (l == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *l);
    }
    l->source = source;
    l->unit = unit;
    const enum gar_status status = call_load(source, l, err);
    if (status < 0) {
        gar_free(l);
        return status;
    }
    source->is_reading = true;
    if (source->last != NULL) {
        source->last->next = l;
    } else {
        source->first = l;
    }
    source->last = l;
    source->loading_count++;
    return GAR_OK;
}

/* How many units may be in memory ahead of the workers. */
static int64_t ahead_of(const struct scan_source *source, const struct gar_query *query,
                        int64_t given)
{
    int64_t ahead = 2 * (int64_t)query->workers + 2;
    if (source->scan->unit_bytes > 0) {
        ahead = gar_min_i64(ahead, gar_max_i64(AHEAD_BYTES / source->scan->unit_bytes, AHEAD_MIN));
    }
    if (gar_query_is_crowded(query)) {
        ahead = 1; /* then as many as are given back */
    }
    const struct gar_pipeline *pipeline = query->current;
    const bool is_bounded =
        pipeline != NULL && (pipeline->range.take >= 0 || pipeline->pace.is_on || query->is_inline);
    if (is_bounded) { /* begin with one unit, read nothing that may not be wanted */
        ahead = gar_min_i64(ahead, gar_pipeline_room(pipeline) - given);
    }
    return ahead;
}

/* given: units that leave the source now. */
static enum gar_status read_ahead(struct scan_source *source, struct gar_query *query,
                                  int64_t given, struct gar_error *err)
{
    struct gar_scan *scan = source->scan;
    const int64_t ahead = ahead_of(source, query, given);
    for (struct loading *l = source->first; l != NULL; l = l->next) {
        if (l->is_parked) {
            GAR_TRY(call_load(source, l, err));
            l->is_parked = false;
        }
    }
    while (!source->is_at_end && source->loading_count < ahead &&
           !(scan->sequential && source->is_reading)) {
        struct gar_unit *unit = NULL;
        if (!scan->sequential) {
            const enum gar_status status = scan->vtable->next(scan, &unit, err);
            if (status == GAR_EOF) {
                source->is_at_end = true;
                break;
            }
            GAR_TRY(status);
        }
        const enum gar_status status = begin_load(source, unit, err);
        if (status < 0) {
            if (unit != NULL) {
                scan->vtable->unit_free(scan, unit);
            }
            return status;
        }
    }
    return GAR_OK;
}

static void scan_unit_free(struct gar_source *base, struct gar_source_unit *unit)
{
    struct scan_source *source = (struct scan_source *)base;
    if (unit->unit != NULL) {
        source->scan->vtable->unit_free(source->scan, unit->unit);
        unit->unit = NULL;
    }
}

static enum gar_status scan_next(struct gar_source *base, struct gar_query *query,
                                 struct gar_source_unit *out, struct gar_error *err)
{
    struct scan_source *source = (struct scan_source *)base;
    struct gar_scan *scan = source->scan;
    if (scan->vtable->load == NULL && !scan->sequential) {
        return source->is_at_end ? GAR_EOF : scan->vtable->next(scan, &out->unit, err);
    }
    GAR_TRY(read_ahead(source, query, 0, err));
    if (source->first == NULL) {
        return GAR_EOF;
    }
    if (!source->first->is_loaded) {
        return GAR_PENDING;
    }
    out->unit = source->first->unit;
    const bool is_end = source->first->is_end;
    drop_first(source);
    if (is_end) {
        return GAR_EOF;
    }
    const enum gar_status status = read_ahead(source, query, 1, err);
    if (status < 0) {
        scan_unit_free(base, out); /* nobody will take it */
    }
    return status;
}

static enum gar_status scan_decode(struct gar_source *base, struct gar_source_unit *unit,
                                   int32_t worker, int64_t max_rows, struct gar_batch **out,
                                   struct gar_error *err)
{
    struct scan_source *source = (struct scan_source *)base;
    struct gar_scan *scan = source->scan;
    if (source->workers[worker] == NULL && scan->vtable->worker_new != NULL) {
        GAR_TRY(scan->vtable->worker_new(scan, source->base.memory, &source->workers[worker], err));
    }
    const enum gar_status status =
        scan->vtable->decode(scan, unit->unit, source->workers[worker], max_rows, out, err);
    return status < 0 && is_stopped(source) ? GAR_EOF : status;
}

static void scan_stop(struct gar_source *base)
{
    struct scan_source *source = (struct scan_source *)base;
    source->is_at_end = true;
    __atomic_store_n(&source->is_stopped, 1, __ATOMIC_RELEASE);
    (void)gar_cancel_request(source->token, GAR_CANCEL_DROPPED);
}

static void free_worker_states(struct scan_source *source)
{
    for (int32_t w = 0; source->workers != NULL && w < source->worker_count; w++) {
        if (source->workers[w] != NULL) {
            source->scan->vtable->worker_free(source->scan, source->workers[w]);
            source->workers[w] = NULL;
        }
    }
}

static bool scan_park(struct gar_source *base, struct gar_source_unit *unit)
{
    struct scan_source *source = (struct scan_source *)base;
    struct gar_scan *scan = source->scan;
    if (unit != NULL) {
        if (scan->vtable->park != NULL) {
            scan->vtable->park(scan, unit->unit);
        }
        return scan->vtable->park != NULL;
    }
    free_worker_states(source);
    for (struct loading *l = source->first; l != NULL && scan->vtable->park != NULL; l = l->next) {
        if (l->is_loaded && l->unit != NULL) {
            scan->vtable->park(scan, l->unit);
            l->is_loaded = false;
            l->is_parked = true;
        }
    }
    if (scan->vtable->park != NULL) {
        scan->vtable->park(scan, NULL);
    }
    return false;
}

static enum gar_status scan_reload(struct gar_source *base, struct gar_source_unit *unit,
                                   struct gar_error *err)
{
    struct gar_scan *scan = ((struct scan_source *)base)->scan;
    return scan->vtable->load(scan, unit->unit, err);
}

static void scan_explain(const struct gar_source *base, struct gar_strbuf *out)
{
    const struct scan_source *source = (const struct scan_source *)(const void *)base;
    gar_strbuf_append(out, "scan ");
    source->provider->vtable->print(source->provider, out);
    gar_strbuf_append(out, source->scan->sequential ? ", read in sequence" : "");
    gar_strbuf_append(
        out, source->is_filtered && source->provider->filter_exact ? ", filtered by the scan" : "");
    for (int64_t k = 0; k < source->key_count; k++) {
        gar_strbuf_printf(out, "%s%s", k == 0 ? ", rows with a key of a join by " : ", ",
                          source->provider->schema->fields[source->keys[k].position].name);
    }
}

static void free_scan_source(void *object)
{
    struct scan_source *source = (struct scan_source *)object;
    struct gar_scan *scan = source->scan;
    while (source->first != NULL) {
        if (source->first->unit != NULL) {
            scan->vtable->unit_free(scan, source->first->unit);
        }
        drop_first(source);
    }
    free_worker_states(source);
    gar_free(source->workers);
    if (source->token != NULL) {
        gar_cancel_remove_waker(source->query->cancel, &source->waker);
    }
    if (scan != NULL) {
        scan->vtable->free(scan);
    }
    gar_cancel_unref(source->token);
    gar_scan_provider_unref(source->provider);
    gar_free(source);
}

enum gar_status gar_scan_source_new(struct gar_query *query, struct gar_scan_provider *provider,
                                    const struct gar_scan_request *request, struct gar_source **out,
                                    const struct gar_scan **out_scan, struct gar_error *err)
{
    static const struct gar_source_vtable vtable = {.name = "scan",
                                                    .next = scan_next,
                                                    .decode = scan_decode,
                                                    .unit_free = scan_unit_free,
                                                    .stop = scan_stop,
                                                    .park = scan_park,
                                                    .reload = scan_reload,
                                                    .explain = scan_explain};
    struct scan_source *source = (struct scan_source *)gar_calloc(1, (int64_t)sizeof *source);
    if (source == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *source);
    }
    source->base.vtable = &vtable;
    source->query = query;
    source->provider = gar_scan_provider_ref(provider);
    source->worker_count = query->workers;
    source->is_filtered = request->filter != NULL;
    source->keys = request->keys;
    source->key_count = provider->takes_keys ? request->key_count : 0;
    GAR_TRY(gar_query_own(query, source, free_scan_source, err));
    source->workers = (void **)gar_calloc(query->workers, (int64_t)sizeof *source->workers);
    if (source->workers == NULL) {
        return gar_error_nomem(err, query->workers * (int64_t)sizeof *source->workers);
    }
    GAR_TRY(gar_query_op_memory(query, &source->base.memory, err));
    source->base.counts = gar_profile_new_scan(query->profile);
    if (source->base.counts == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *source->base.counts);
    }
    GAR_TRY(gar_cancel_new(query->cancel->deadline_ns, &source->token, err));
    source->waker.wake = cancel_scan;
    if (!gar_cancel_add_waker(query->cancel, &source->waker)) {
        cancel_scan(&source->waker);
    }
    struct gar_scan_request counted = *request;
    counted.cancel = source->token;
    counted.memory = source->base.memory;
    counted.counts = source->base.counts;
    GAR_TRY(provider->vtable->open(provider, &counted, &source->scan, err));
    if (source->base.counts->rows_total < 0) {
        source->base.counts->rows_total = source->scan->rows_exact;
    }
    *out_scan = source->scan;
    *out = &source->base;
    return GAR_OK;
}
