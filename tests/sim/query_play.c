/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: drawn with their tables, faults and consumer, run on a thread of their own, and judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "exec/profile.h"
#include "os/event_fd.h"
#include "plays.h"
#include "resources/account.h"
#include "world.h"

enum { TABLES_MAX = 2, ROWS_MAX = 150, LATENCY_MS_MAX = 10 };

enum take { TAKE_NEXT, TAKE_UNTIL, TAKE_TRY, TAKE_POLL };
enum { TAKES = 4 };

struct query {
    struct sim_play *play;
    char name[24];
    /* What is run. */
    struct sim_rows rows[TABLES_MAX];
    struct gar_scan_provider *tables[TABLES_MAX];
    int64_t table_count;
    struct gar_sink_provider *file; /* NULL: the rows are the result */
    struct gar_plan *plan;
    struct sim_rows want;
    struct gar_exec_options options;
    struct gar_account *account;
    bool is_early; /* its limit is reached before a read that never answers */
    bool needs_pools;
    bool is_deaf;
    bool is_limited; /* has a memory limit that it may meet */
    /* What the consumer does; times are after its start, -1: never. */
    enum take take;
    int64_t slow_ns;
    int64_t drop_after; /* batches */
    bool is_dropped_elsewhere;
    int64_t cancel_ns;
    bool cancels_token;
    int64_t deadline_ns;
    int64_t interrupt_ns;
    bool has_interrupt;
    struct query *nested; /* run to its end after the first batch */
    struct sim_thread *thread;
    /* What happens. */
    struct gar_profile *profile; /* NULL: the query has its own */
    struct gar_cancel *token;
    struct gar_stream *stream;
    int64_t started_ns;
    int64_t stop_ns; /* when it was told to stop; INT64_MAX: not yet */
    bool is_cancelled;
    bool is_interrupted;
    bool is_over; /* the consumer takes nothing any more */
    struct sim_rows got;
};

static struct query *draw_query(struct sim_play *play, int32_t depth);
static void run_query(struct query *query);

/* ---- drawing ---- */

/* A unit that fails, and maybe one that is read meanwhile and hangs: the failure must stop it. */
static void draw_faults(struct query *query, struct sim_table_options *options)
{
    struct sim_rng *rng = &query->play->rng;
    struct sim_faults *faults = &options->faults;
    int64_t *const places[4] = {&faults->load, &faults->decode, &faults->next, &faults->open};
    if (sim_chance(rng, 40)) {
        *places[sim_below(rng, 4)] = sim_chance(rng, 30) ? 0 : sim_below(rng, 8);
    } else if (sim_chance(rng, 10) && options->has_load) {
        *places[sim_below(rng, 2)] = 0;
        faults->hang = 1;
        query->needs_pools = true; /* on the caller's thread it would hang before the failure */
    }
    if (query->cancel_ns >= 0 && sim_chance(rng, 30)) {
        query->is_deaf = options->has_load && sim_chance(rng, 30);
        query->play->deaf_reads += query->is_deaf ? 1 : 0;
        *(query->is_deaf ? &faults->deaf : &faults->hang) = sim_below(rng, 4);
    }
}

static void draw_tables(struct query *query)
{
    struct sim_rng *rng = &query->play->rng;
    query->table_count = query->is_early ? 1 : 1 + sim_below(rng, TABLES_MAX);
    for (int64_t i = 0; i < query->table_count; i++) {
        const int64_t latencies_ns[4] = {0, 3000, 500000, LATENCY_MS_MAX * GAR_NS_PER_MS};
        query->rows[i] = sim_rows_random(rng, sim_below(rng, ROWS_MAX));
        struct sim_table_options options = {.rows = &query->rows[i],
                                            .unit_rows = 3 + sim_below(rng, 50),
                                            .has_load = sim_chance(rng, 70),
                                            .is_sequential = sim_chance(rng, 30),
                                            .latency_ns = latencies_ns[sim_below(rng, 4)],
                                            .faults = SIM_NO_FAULTS};
        if (query->play->has_faults) {
            draw_faults(query, &options);
        }
        if (query->is_early) {
            options.has_load = true;
            options.faults = SIM_NO_FAULTS;
            options.faults.hang = 1 + sim_below(rng, 3);
            options.unit_rows = gar_max_i64(query->rows[i].count / 6, 1);
        }
        query->tables[i] = sim_table_new(&options, rng);
        sim_trace("%s: table %d: %lld rows in units of %lld, %s%s, latency %lld ns", query->name,
                  (int)i, (long long)query->rows[i].count, (long long)options.unit_rows,
                  options.has_load ? "read" : "at hand",
                  options.is_sequential ? ", in sequence" : "", (long long)options.latency_ns);
    }
}

static void draw_file(struct query *query)
{
    struct sim_rng *rng = &query->play->rng;
    struct sim_file_options options = {.preferred_rows = 1 + sim_below(rng, 60),
                                       .latency_ns = sim_below(rng, LATENCY_MS_MAX) * GAR_NS_PER_MS,
                                       .fail_open = -1,
                                       .fail_encode = -1,
                                       .fail_append = -1,
                                       .fail_finish = -1};
    if (query->play->has_faults && sim_chance(rng, 40)) {
        int64_t *const places[4] = {&options.fail_open, &options.fail_encode, &options.fail_append,
                                    &options.fail_finish};
        *places[sim_below(rng, 4)] = sim_chance(rng, 50) ? 0 : sim_below(rng, 4);
    }
    query->file = sim_file_new(&options, rng);
    struct gar_plan *plan = NULL;
    SIM_CHECK(gar_plan_write(query->plan, query->file, &plan, NULL) == GAR_OK, "no memory");
    gar_plan_unref(query->plan);
    query->plan = plan;
    sim_trace("%s: written to a file", query->name);
}

/* Does what the consumer does differ from reading everything? */
static void draw_consumer(struct query *query)
{
    struct sim_rng *rng = &query->play->rng;
    const int64_t until_ns[4] = {20000, 300000, 10 * GAR_NS_PER_MS, 300 * GAR_NS_PER_MS};
    query->take = (enum take)sim_below(rng, TAKES);
    query->slow_ns = sim_chance(rng, 30) ? sim_below(rng, 30 * GAR_NS_PER_MS) : 0;
    query->drop_after = query->cancel_ns = query->deadline_ns = query->interrupt_ns = -1;
    query->has_interrupt = sim_chance(rng, 40);
    query->is_dropped_elsewhere = sim_chance(rng, 30);
    query->cancels_token = sim_chance(rng, 50);
    if (!query->play->has_stops || query->is_early || sim_chance(rng, 40)) {
        return;
    }
    const int64_t at_ns = sim_below(rng, until_ns[sim_below(rng, 4)]);
    switch (sim_below(rng, 4)) {
    case 0: query->drop_after = sim_below(rng, 4); break;
    case 1: query->cancel_ns = at_ns; break;
    case 2: query->deadline_ns = at_ns; break;
    default:
        query->interrupt_ns = at_ns;
        query->has_interrupt = true;
        query->take = query->take >= TAKE_TRY ? TAKE_NEXT : query->take;
        break;
    }
}

static void draw_options(struct query *query)
{
    struct sim_rng *rng = &query->play->rng;
    const int64_t morsels[4] = {1, 7, 50, 131072};
    const int64_t batches[3] = {0, 1, 3};
    const int64_t bytes[3] = {0, 1, 2000};
    query->is_limited = query->play->has_faults && sim_chance(rng, 10);
    SIM_CHECK(gar_account_new(query->play->memory, "query",
                              query->is_limited ? 1000 + sim_below(rng, 200000) : 0,
                              &query->account, NULL) == GAR_OK,
              "no memory");
    query->options = (struct gar_exec_options){
        .runtime = query->play->runtime,
        .memory = &query->account->memory,
        .morsel_rows = morsels[sim_below(rng, 4)],
        .maintain_order = sim_chance(rng, 70),
        .allow_inline = sim_chance(rng, 25) && !query->needs_pools,
        .flat_result = sim_chance(rng, 50),
        .stream_batches = batches[sim_below(rng, 3)],
        .stream_bytes = bytes[sim_below(rng, 3)],
        .is_greedy = sim_chance(rng, 20),
        .watchdog_ns = sim_chance(rng, 20) ? 1 + sim_below(rng, 20 * GAR_NS_PER_MS) : 0,
        .hand_over_rows = sim_chance(rng, 50) ? 1 + sim_below(rng, ROWS_MAX) : 0,
    };
    sim_trace("%s: morsels of %lld, %s, %s", query->name, (long long)query->options.morsel_rows,
              query->options.maintain_order ? "in order" : "in any order",
              query->options.allow_inline ? "inline" : "in the pools");
}

static struct query *draw_query(struct sim_play *play, int32_t depth)
{
    struct query *query = calloc(1, sizeof *query);
    SIM_CHECK(query != NULL, "no memory");
    query->play = play;
    query->stop_ns = INT64_MAX;
    (void)snprintf(query->name, sizeof query->name, "query %d", (int)play->queries++);
    query->is_early = sim_chance(&play->rng, 5);
    draw_consumer(query);
    draw_tables(query);
    draw_options(query);
    const bool is_ordered = query->options.maintain_order;
    if (query->is_early) {
        const int64_t n = query->rows[0].count / 6; /* the first unit */
        query->options.allow_inline = false;
        query->plan =
            sim_plan_first(query->tables[0], &query->rows[0], n, is_ordered, &query->want);
        return query;
    }
    query->plan = sim_plan_random(&play->rng, query->tables, query->rows, query->table_count,
                                  is_ordered, &query->want);
    if (sim_chance(&play->rng, 20)) {
        draw_file(query);
    }
    if (depth == 0 && sim_chance(&play->rng, 20)) {
        query->nested = draw_query(play, 1);
    }
    return query;
}

static void free_query(struct query *query)
{
    gar_plan_unref(query->plan);
    for (int64_t i = 0; i < query->table_count; i++) {
        gar_scan_provider_unref(query->tables[i]);
        sim_rows_free(&query->rows[i]);
    }
    if (query->file != NULL) {
        gar_sink_provider_unref(query->file);
    }
    gar_account_unref(query->account);
    gar_cancel_unref(query->token);
    gar_profile_unref(query->profile);
    sim_rows_free(&query->want);
    sim_rows_free(&query->got);
    free(query);
}

/* ---- stopping ---- */

static void note_stop(struct query *query, const char *how)
{
    sim_trace("%s: %s", query->name, how);
    query->stop_ns = gar_min_i64(query->stop_ns, sim_now_ns());
}

static bool check_interrupt(void *context)
{
    struct query *query = context;
    if (query->interrupt_ns < 0 || query->is_interrupted ||
        sim_now_ns() < query->started_ns + query->interrupt_ns) {
        return false;
    }
    note_stop(query, "interrupted");
    query->is_interrupted = true;
    return true;
}

/* The thread that looks at the progress. */
static void watch_query(void *context)
{
    const struct query *query = context;
    int64_t rows = 0;
    while (!query->is_over) {
        struct gar_query_profile now = {.struct_bytes = sizeof now};
        struct gar_operator_profile op = {.struct_bytes = sizeof op};
        char line[200];
        gar_profile_read_query(query->profile, &now);
        SIM_CHECK(now.rows >= rows, "%s: the progress goes back", query->name);
        rows = now.rows;
        for (int64_t i = 0; gar_profile_read_operator(query->profile, i, &op); i++) {
            sim_point("progress");
        }
        (void)gar_profile_line(query->profile, line, (int64_t)sizeof line);
        sim_sleep(1000000);
    }
}

/* The thread that cancels. The stream lives until it is joined. */
static void cancel_query(void *context)
{
    struct query *query = context;
    sim_sleep(query->cancel_ns);
    if (query->is_over) {
        return;
    }
    note_stop(query, query->cancels_token ? "token cancelled" : "stream cancelled");
    query->is_cancelled = true;
    if (query->cancels_token) {
        (void)gar_cancel_request(query->token, GAR_CANCEL_USER);
    } else {
        gar_stream_cancel(query->stream, GAR_CANCEL_USER);
    }
}

static void free_stream(void *context)
{
    struct query *query = context;
    gar_stream_free(query->stream);
}

/* ---- taking ---- */

static enum gar_status take_once(struct query *query, struct gar_batch **out, struct gar_error *err)
{
    const struct gar_interrupt interrupt = {.check = check_interrupt, .context = query};
    const struct gar_interrupt *asked = query->has_interrupt ? &interrupt : NULL;
    switch (query->take) {
    case TAKE_NEXT: return gar_stream_next(query->stream, asked, out, err);
    case TAKE_UNTIL:
        return gar_stream_next_until(query->stream, sim_now_ns() + 2 * GAR_NS_PER_MS, asked, out,
                                     err);
    case TAKE_TRY:
    case TAKE_POLL: return gar_stream_try_next(query->stream, out, err);
    }
    return GAR_ERR_INTERNAL;
}

/* Until something comes. */
static enum gar_status take(struct query *query, struct gar_batch **out, struct gar_error *err)
{
    /* What was queued on the IO pool before, by all queries, is ahead of a query's last jobs. */
    const int64_t slack_ms =
        200 + query->play->queries * 15 * LATENCY_MS_MAX + query->play->calls * 120;
    const int64_t slack_ns = slack_ms * GAR_NS_PER_MS + query->play->deaf_reads * SIM_DEAF_NS;
    const int64_t began_ns = sim_now_ns();
    for (;;) {
        const enum gar_status status = take_once(query, out, err);
        const int64_t told_ns = gar_max_i64(query->stop_ns, began_ns);
        SIM_CHECK(query->stop_ns == INT64_MAX || sim_now_ns() <= told_ns + slack_ns,
                  "%s: told to stop, the next answer came %lld ms later", query->name,
                  (long long)((sim_now_ns() - told_ns) / GAR_NS_PER_MS));
        if (status != GAR_PENDING) {
            return status;
        }
        SIM_CHECK(query->take != TAKE_NEXT, "%s: next said GAR_PENDING", query->name);
        int fd = -1;
        if (query->take == TAKE_POLL && gar_stream_fd(query->stream, &fd, NULL) == GAR_OK) {
            (void)gar_event_fd_wait(fd, GAR_CLOCK_NEVER);
        } else {
            sim_sleep(query->take == TAKE_UNTIL ? 1 : 200000);
        }
    }
}

/* ---- judging ---- */

static bool has_failed(const struct query *query)
{
    bool failed = query->file != NULL && sim_file_has_failed(query->file);
    for (int64_t i = 0; i < query->table_count; i++) {
        failed = failed || sim_table_has_failed(query->tables[i]);
    }
    return failed;
}

/* Is there a reason for this end? */
static bool is_explained(const struct query *query, enum gar_status status,
                         const struct gar_error *err)
{
    switch (status) {
    case GAR_ERR_IO:
        return (has_failed(query) && strstr(err->message, "simulated fault") != NULL) ||
               (query->play->has_few_threads &&
                strstr(err->message, "cannot start thread") != NULL);
    case GAR_ERR_NOMEM: return query->is_limited || query->play->has_refused_memory;
    case GAR_ERR_INTERRUPTED: return query->is_interrupted;
    case GAR_ERR_CANCELLED: return query->is_cancelled;
    case GAR_ERR_TIMEOUT:
        return query->deadline_ns >= 0 && sim_now_ns() >= query->started_ns + query->deadline_ns;
    default: return false;
    }
}

static void judge_rows(struct query *query, bool is_complete)
{
    const char *differ = NULL;
    if (query->file == NULL) {
        differ = sim_rows_differ(&query->want, &query->got, is_complete);
    } else {
        const struct sim_rows *published = sim_file_rows(query->file);
        SIM_CHECK(query->got.count == 0, "%s: a write gave rows", query->name);
        SIM_CHECK(!is_complete || published != NULL, "%s: the file was not published", query->name);
        if (published != NULL) {
            struct sim_rows copy = {0};
            for (int64_t i = 0; i < published->count; i++) {
                sim_rows_add(&copy, published->rows[i]);
            }
            differ = sim_rows_differ(&query->want, &copy, true);
            sim_rows_free(&copy);
        }
    }
    SIM_CHECK(differ == NULL, "%s: %s (%lld rows, expected %lld)", query->name, differ,
              (long long)query->got.count, (long long)query->want.count);
}

static void judge_end(struct query *query, enum gar_status status, const struct gar_error *err)
{
    sim_trace("%s: ends with %s: %s", query->name, gar_status_text(status), err->message);
    query->play->ends[status == GAR_EOF ? 0 : -status]++;
    if (query->is_interrupted) {
        SIM_CHECK(status == GAR_ERR_INTERRUPTED,
                  "%s: the caller was interrupted, but the query ended with %s", query->name,
                  gar_status_text(status));
    }
    if (query->profile != NULL && query->stream != NULL && !query->options.allow_inline) {
        struct gar_query_profile last = {.struct_bytes = sizeof last};
        gar_profile_read_query(query->profile, &last);
        SIM_CHECK(status != GAR_EOF || last.rows == query->got.count,
                  "%s: the progress shows %lld rows at the end", query->name, (long long)last.rows);
    }
    SIM_CHECK(status == GAR_EOF || is_explained(query, status, err),
              "%s: ended for no reason with %s: %s", query->name, gar_status_text(status),
              err->message);
    judge_rows(query, status == GAR_EOF);
    /* An inline query that was cancelled between two calls frees with its stream; an interrupted caller waits one second and
     * leaves behind what does not hear. */
    const bool may_be_open = query->play->deaf_reads > 0 || query->options.allow_inline;
    for (int64_t i = 0; i < query->table_count && !may_be_open; i++) {
        SIM_CHECK(sim_table_scans(query->tables[i]) == 0, "%s: ended, but a scan is open",
                  query->name);
    }
}

/* An end stays: the same status and text again and again. */
static void judge_again(struct query *query, enum gar_status status, const struct gar_error *err)
{
    for (int32_t i = 0; i < 2; i++) {
        struct gar_error again = GAR_ERROR_INIT;
        struct gar_batch *batch = NULL;
        const enum gar_status repeated = take(query, &batch, &again);
        SIM_CHECK(repeated == status && strcmp(again.message, err->message) == 0,
                  "%s: ended with %s (%s), then with %s (%s)", query->name, gar_status_text(status),
                  err->message, gar_status_text(repeated), again.message);
    }
}

/* ---- running ---- */

static void consume(struct query *query)
{
    struct gar_error err = GAR_ERROR_INIT;
    for (int64_t batches = 0; batches != query->drop_after; batches++) {
        struct gar_batch *batch = NULL;
        const enum gar_status status = take(query, &batch, &err);
        if (status != GAR_OK) {
            judge_end(query, status, &err);
            judge_again(query, status, &err);
            return;
        }
        SIM_CHECK(batch->rows > 0 && batch->selection == NULL, "%s: a batch is not gathered",
                  query->name);
        sim_batch_read(batch, &query->got);
        judge_rows(query, false);
        gar_batch_unref(batch);
        if (batches == 0 && query->nested != NULL) {
            run_query(query->nested);
            query->nested = NULL;
        }
        if (query->slow_ns > 0) {
            sim_sleep(sim_below(&query->play->rng, query->slow_ns));
        }
    }
    query->play->drops++;
    note_stop(query, "dropped");
}

static enum gar_status start_query(struct query *query, struct gar_error *err)
{
    query->started_ns = sim_now_ns();
    const int64_t deadline_ns =
        query->deadline_ns < 0 ? GAR_CLOCK_NEVER : query->started_ns + query->deadline_ns;
    query->stop_ns = deadline_ns;
    GAR_TRY(gar_cancel_new(deadline_ns, &query->token, err));
    query->options.cancel = query->token;
    if (sim_chance(&query->play->rng, 30)) {
        GAR_TRY(gar_profile_new(query->account, &query->profile, err));
        query->options.profile = query->profile;
    }
    return gar_exec_start(query->plan, &query->options, &query->stream, err);
}

/* On the thread of its consumer. */
static void run_query(struct query *query)
{
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = start_query(query, &err);
    if (status != GAR_OK) {
        judge_end(query, status, &err);
    } else {
        struct sim_thread *canceller =
            query->cancel_ns >= 0 ? sim_spawn("canceller", cancel_query, query) : NULL;
        struct sim_thread *watcher =
            query->profile != NULL ? sim_spawn("watcher", watch_query, query) : NULL;
        consume(query);
        query->is_over = true;
        if (canceller != NULL) {
            sim_join(canceller);
        }
        if (watcher != NULL) {
            sim_join(watcher);
        }
        if (query->is_dropped_elsewhere) {
            sim_join(sim_spawn("dropper", free_stream, query));
        } else {
            free_stream(query);
        }
    }
    if (query->nested != NULL) {
        run_query(query->nested);
    }
    sim_play_later(query->play, (void (*)(void *))free_query, query);
}

static void consumer(void *context)
{
    struct query *query = context;
    sim_sleep(sim_below(&query->play->rng, 1000000));
    run_query(query);
}

struct sim_thread *sim_play_query(struct sim_play *play)
{
    struct query *query = draw_query(play, 0);
    return sim_spawn(query->name, consumer, query);
}
