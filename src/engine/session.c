/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: settings, a memory pool and a runtime. The default session is the process's; it starts no thread until a
 * query needs one, survives fork by making a fresh runtime in the child, and stops its threads at exit. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number_text.h"
#include "engine/session_priv.h"
#include "engine/zone_loader_priv.h"
#include "optimize/optimize.h"
#include "os/fork.h"
#include "os/mutex.h"
#include "runtime/trace.h"
#include "storage/file_cache.h"

#define DEFAULT_MORSEL_ROWS 131072
#define FOOTER_CACHE_BYTES  ((int64_t)16 << 20)
#define NICE_MIN            (-20)
#define NICE_MAX            19
#define DEFAULT_WATCHDOG_MS 30000

static struct gar_mutex sessions_lock = GAR_MUTEX_INIT; /* guards the two below */
static struct gar_session *first_session;
static struct gar_session *default_session; /* never released */

/* Around fork all sessions' locks are held: the child may start a query whatever other threads did. */
static void lock_all(void) GAR_NO_TSA
{
    gar_mutex_lock(&sessions_lock);
    for (struct gar_session *session = first_session; session != NULL; session = session->next) {
        gar_mutex_lock(&session->lock);
    }
}

static void unlock_all(void) GAR_NO_TSA
{
    for (struct gar_session *session = first_session; session != NULL; session = session->next) {
        gar_mutex_unlock(&session->lock);
    }
    gar_mutex_unlock(&sessions_lock);
}

static void handle_forks(void)
{
    static struct gar_fork_handler handler = {
        .before = lock_all, .after_in_parent = unlock_all, .after_in_child = unlock_all};
    gar_fork_register(&handler);
}

/* Memory pools are there already: their locks are taken after ours. */
static void link_session(struct gar_session *session)
{
    static struct gar_once once = GAR_ONCE_INIT;
    gar_once_run(&once, handle_forks);
    gar_mutex_lock(&sessions_lock);
    session->next = first_session;
    if (first_session != NULL) {
        first_session->previous = session;
    }
    first_session = session;
    gar_mutex_unlock(&sessions_lock);
}

static void unlink_session(struct gar_session *session)
{
    gar_mutex_lock(&sessions_lock);
    if (session->next != NULL) {
        session->next->previous = session->previous;
    }
    if (session->previous != NULL) {
        session->previous->next = session->next;
    } else if (first_session == session) {
        first_session = session->next;
    }
    gar_mutex_unlock(&sessions_lock);
}

const char *gar_version(void)
{
    return "0.1.0";
}

void gar_options_take(void *to, size_t to_bytes, const void *from)
{
    if (from == NULL) {
        return;
    }
    size_t from_bytes = 0;
    memcpy(&from_bytes, from, sizeof from_bytes);
    const size_t head = sizeof(size_t); /* struct_bytes itself stays ours */
    const size_t bytes = from_bytes < to_bytes ? from_bytes : to_bytes;
    if (bytes > head) {
        memcpy((char *)to + head, (const char *)from + head, bytes - head);
    }
}

void gar_settings_init(struct gar_settings *settings)
{
    *settings = (struct gar_settings){
        .struct_bytes = sizeof *settings,
        .morsel_rows = DEFAULT_MORSEL_ROWS,
        .maintain_order = true,
        .enable_inline = true,
        .progress = GAR_PROGRESS_OFF,
        .watchdog_ms = DEFAULT_WATCHDOG_MS,
    };
}

/* A whole number from the environment, or the fallback when it is not set. */
static enum gar_status env_number(const char *name, int64_t fallback, int64_t *out,
                                  struct gar_error *err)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): read before threads start */
    *out = fallback;
    if (text == NULL || text[0] == '\0') {
        return GAR_OK;
    }
    if (gar_parse_i64(text, (int64_t)strlen(text), out) != GAR_OK) {
        char shown[64];
        return gar_error_set(err, GAR_ERR_VALUE,
                             "environment variable %s is '%s'; it must be a whole number", name,
                             gar_error_quote(text, (int64_t)strlen(text), shown, sizeof shown));
    }
    return GAR_OK;
}

static enum gar_status refuse_env(const char *name, const char *text, const char *want,
                                  struct gar_error *err)
{
    char shown[64];
    return gar_error_set(err, GAR_ERR_VALUE, "environment variable %s is '%s'; it must be %s", name,
                         gar_error_quote(text, (int64_t)strlen(text), shown, sizeof shown), want);
}

static enum gar_status env_watchdog(struct gar_settings *settings, struct gar_error *err)
{
    static const char name[] = "GAR_WATCHDOG_SECONDS";
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): read before threads start */
    double seconds = 0;
    if (text == NULL || text[0] == '\0') {
        return GAR_OK;
    }
    if (!gar_parse_double(text, (int64_t)strlen(text), &seconds) || !(seconds >= 0) ||
        seconds > 1e9) {
        return refuse_env(name, text, "a number of seconds, 0 for never", err);
    }
    settings->watchdog_ms = (int64_t)(seconds * 1000);
    return GAR_OK;
}

static enum gar_status env_progress(struct gar_settings *settings, struct gar_error *err)
{
    static const char name[] = "GAR_PROGRESS";
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): read before threads start */
    if (text == NULL || text[0] == '\0') {
        return GAR_OK;
    }
    if (strcmp(text, "auto") == 0) {
        settings->progress = GAR_PROGRESS_AUTO;
    } else if (strcmp(text, "0") == 0 || strcmp(text, "1") == 0) {
        settings->progress = text[0] == '1' ? GAR_PROGRESS_ON : GAR_PROGRESS_OFF;
    } else {
        return refuse_env(name, text, "0, 1 or auto", err);
    }
    return GAR_OK;
}

static enum gar_status log_and_trace(struct gar_error *err)
{
    const char *log = getenv("GAR_LOG");     /* NOLINT(concurrency-mt-unsafe): as above */
    const char *trace = getenv("GAR_TRACE"); /* NOLINT(concurrency-mt-unsafe): as above */
    if (log != NULL && log[0] != '\0') {
        enum gar_log_level level = GAR_LOG_WARNING;
        if (!gar_log_level_parse(log, &level)) {
            return refuse_env("GAR_LOG", log, "off, error, warning or info", err);
        }
        gar_log_set(level, NULL, NULL);
    }
    return trace != NULL && trace[0] != '\0' ? gar_trace_begin(trace, err) : GAR_OK;
}

/* What is of the process, not of a session: once, with the default session. */
static struct gar_once process_once = GAR_ONCE_INIT;
static enum gar_status process_status;
static struct gar_error process_error = GAR_ERROR_INIT;

static void process_from_environment(void)
{
    process_status = log_and_trace(&process_error);
}

/* A text of the environment into a field of the settings. */
static enum gar_status env_text(const char *name, char *out, size_t out_bytes,
                                struct gar_error *err)
{
    const char *text = getenv(name);
    if (text != NULL && strlen(text) >= out_bytes) {
        return gar_error_set(err, GAR_ERR_VALUE, "environment variable %s is longer than %zu bytes",
                             name, out_bytes - 1);
    }
    if (text != NULL) {
        memcpy(out, text, strlen(text) + 1);
    }
    return GAR_OK;
}

static enum gar_status env_spill(struct gar_settings *settings, struct gar_error *err)
{
    const char *force = getenv("GAR_SPILL");
    GAR_TRY(env_number("GAR_SPILL_LIMIT", settings->spill_limit_bytes, &settings->spill_limit_bytes,
                       err));
    GAR_TRY(env_text("GAR_SPILL_DIR", settings->spill_dir, sizeof settings->spill_dir, err));
    GAR_TRY(env_text("GAR_DISABLE_RULES", settings->disabled_rules, sizeof settings->disabled_rules,
                     err));
    if (force != NULL && force[0] != '\0' && strcmp(force, "force") != 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "environment variable GAR_SPILL is force or not set, got '%s'", force);
    }
    settings->spill_always = settings->spill_always || (force != NULL && force[0] != '\0');
    return GAR_OK;
}

static enum gar_status settings_from_environment(struct gar_settings *settings,
                                                 struct gar_error *err)
{
    int64_t value = 0;
    GAR_TRY(env_number("GAR_NUM_THREADS", settings->num_threads, &value, err));
    settings->num_threads = (int32_t)gar_max_i64(-1, gar_min_i64(value, INT32_MAX));
    GAR_TRY(env_number("GAR_IO_THREADS", settings->io_threads, &value, err));
    settings->io_threads = (int32_t)gar_max_i64(-1, gar_min_i64(value, INT32_MAX));
    GAR_TRY(env_number("GAR_MEMORY_LIMIT", settings->memory_limit_bytes,
                       &settings->memory_limit_bytes, err));
    GAR_TRY(env_number("GAR_MEMORY_KEEP", settings->memory_keep_bytes, &settings->memory_keep_bytes,
                       err));
    GAR_TRY(env_spill(settings, err));
    GAR_TRY(env_number("GAR_MORSEL_ROWS", settings->morsel_rows, &settings->morsel_rows, err));
    GAR_TRY(env_number("GAR_INLINE", settings->enable_inline ? 1 : 0, &value, err));
    settings->enable_inline = value != 0;
    GAR_TRY(env_number("GAR_COMPUTE_BATCH", settings->compute_batch ? 1 : 0, &value, err));
    settings->compute_batch = value != 0;
    GAR_TRY(env_number("GAR_COMPUTE_NICE", settings->compute_nice, &value, err));
    settings->compute_nice = (int32_t)gar_max_i64(INT32_MIN, gar_min_i64(value, INT32_MAX));
    GAR_TRY(env_number("GAR_IO_NICE", settings->io_nice, &value, err));
    settings->io_nice = (int32_t)gar_max_i64(INT32_MIN, gar_min_i64(value, INT32_MAX));
    GAR_TRY(env_watchdog(settings, err));
    return env_progress(settings, err);
}

static enum gar_status check_settings(const struct gar_settings *settings, struct gar_error *err)
{
    if (settings->morsel_rows < 1) {
        return gar_error_set(err, GAR_ERR_VALUE, "morsel size must be at least 1 row, got %lld",
                             (long long)settings->morsel_rows);
    }
    if (settings->progress < GAR_PROGRESS_OFF || settings->progress > GAR_PROGRESS_ON) {
        return gar_error_set(err, GAR_ERR_VALUE, "no such mode of the progress line: %d",
                             (int)settings->progress);
    }
    if (settings->watchdog_ms < 0 || settings->watchdog_ms > INT64_MAX / 4000000) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "the watchdog's time must be 0 (never) or positive, got %lld ms",
                             (long long)settings->watchdog_ms);
    }
    if (settings->memory_limit_bytes < 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "memory limit must be 0 (default) or positive, got %lld bytes",
                             (long long)settings->memory_limit_bytes);
    }
    if (settings->memory_keep_bytes < 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "memory kept between queries must be 0 (default) or positive, got "
                             "%lld bytes",
                             (long long)settings->memory_keep_bytes);
    }
    if (settings->spill_limit_bytes < -1) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "spill limit must be -1 (nothing), 0 (default) or positive, got %lld "
                             "bytes",
                             (long long)settings->spill_limit_bytes);
    }
    if (memchr(settings->spill_dir, '\0', sizeof settings->spill_dir) == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE, "the name of the spill folder is not ended");
    }
    if (memchr(settings->disabled_rules, '\0', sizeof settings->disabled_rules) == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE, "the list of disabled rules is not ended");
    }
    GAR_TRY(gar_optimize_check_names(settings->disabled_rules, err));
    const int32_t threads[2] = {settings->num_threads, settings->io_threads};
    for (int32_t i = 0; i < 2; i++) {
        if (threads[i] < 0 || threads[i] > GAR_RUNTIME_THREADS_MAX) {
            return gar_error_set(err, GAR_ERR_VALUE,
                                 "number of %s threads must be 0 (default) to %d, got %d",
                                 i == 0 ? "compute" : "IO", GAR_RUNTIME_THREADS_MAX, threads[i]);
        }
    }
    const int32_t nice[2] = {settings->compute_nice, settings->io_nice};
    for (int32_t i = 0; i < 2; i++) {
        if (nice[i] < NICE_MIN || nice[i] > NICE_MAX) {
            return gar_error_set(err, GAR_ERR_VALUE,
                                 "nice value of %s threads must be in %d to %d, got %d",
                                 i == 0 ? "compute" : "IO", NICE_MIN, NICE_MAX, nice[i]);
        }
    }
    return GAR_OK;
}

static enum gar_status make_runtime(struct gar_session *session,
                                    const struct gar_settings *settings, struct gar_runtime **out,
                                    struct gar_error *err)
{
    const struct gar_runtime_options options = {
        .compute_threads = settings->num_threads,
        .io_threads = settings->io_threads,
        .compute_nice = settings->compute_nice,
        .io_nice = settings->io_nice,
        .is_compute_batch = settings->compute_batch,
        .memory = session->pool,
    };
    return gar_runtime_new(&options, out, err);
}

static void free_session(struct gar_session *session)
{
    gar_mutex_lock(&session->lock);
    struct gar_runtime *runtime = session->synced.runtime;
    struct gar_spill_space *spill = session->synced.spill;
    gar_mutex_unlock(&session->lock);
    gar_runtime_free(runtime);
    gar_spill_space_unref(spill);
    gar_memory_pool_unref(session->pool);
    gar_mutex_destroy(&session->lock);
    gar_free(session);
}

/* The cache of footers is the process's: GAR_FOOTER_CACHE=bytes, 0 for none. */
static enum gar_status set_footer_cache(struct gar_error *err)
{
    int64_t bytes = 0;
    GAR_TRY(env_number("GAR_FOOTER_CACHE", FOOTER_CACHE_BYTES, &bytes, err));
    if (bytes < 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "environment variable GAR_FOOTER_CACHE must not be negative, got %lld",
                             (long long)bytes);
    }
    gar_file_cache_set_limit(bytes);
    return GAR_OK;
}

enum gar_status gar_session_new(const struct gar_settings *settings, struct gar_session **out,
                                struct gar_error *err)
{
    struct gar_settings full;
    gar_zone_loader_install();
    gar_settings_init(&full);
    GAR_TRY(set_footer_cache(err));
    GAR_TRY(settings_from_environment(&full, err));
    gar_options_take(&full, sizeof full, settings);
    GAR_TRY(check_settings(&full, err));
    struct gar_session *session = gar_calloc(1, sizeof *session);
    if (session == NULL) {
        return gar_error_nomem(err, sizeof *session);
    }
    session->refs = 1;
    gar_mutex_init(&session->lock);
    gar_mutex_lock(&session->lock);
    session->synced.settings = full;
    gar_mutex_unlock(&session->lock);
    const struct gar_memory_pool_options pool_options = {.limit_bytes = full.memory_limit_bytes,
                                                         .resident_bytes = full.memory_keep_bytes};
    enum gar_status status = gar_memory_pool_new(&pool_options, &session->pool, err);
    if (status == GAR_OK) {
        gar_mutex_lock(&session->lock);
        status = make_runtime(session, &full, &session->synced.runtime, err);
        if (status == GAR_OK) {
            status = gar_spill_space_new(full.spill_dir, full.spill_limit_bytes,
                                         &session->synced.spill, err);
        }
        gar_mutex_unlock(&session->lock);
    }
    if (status != GAR_OK) {
        free_session(session);
        return status;
    }
    link_session(session);
    *out = session;
    return GAR_OK;
}

struct gar_session *gar_session_retain(struct gar_session *session)
{
    __atomic_fetch_add(&session->refs, 1, __ATOMIC_RELAXED);
    return session;
}

void gar_session_release(struct gar_session *session)
{
    if (session != NULL && __atomic_sub_fetch(&session->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        unlink_session(session);
        free_session(session);
    }
}

/* At exit the threads are stopped, so that none runs while the process is torn down. Queries that still run are the
 * host's to release before; the runtime is left alone when some are active. */
static void stop_default_at_exit(void)
{
    gar_mutex_lock(&sessions_lock);
    struct gar_session *session = default_session;
    gar_mutex_unlock(&sessions_lock);
    if (session == NULL) {
        return;
    }
    gar_mutex_lock(&session->lock);
    struct gar_runtime *runtime = session->synced.runtime;
    const bool is_idle =
        runtime != NULL && !gar_runtime_is_forked(runtime) && gar_runtime_active(runtime) == 0;
    if (is_idle) {
        session->synced.runtime = NULL;
    }
    gar_mutex_unlock(&session->lock);
    if (is_idle) {
        gar_runtime_free(runtime);
    }
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_trace_end(&err) < 0) {
        gar_log(GAR_LOG_ERROR, "the trace is not complete: %s", err.message);
    }
}

enum gar_status gar_session_default(struct gar_session **out, struct gar_error *err)
{
    gar_mutex_lock(&sessions_lock);
    struct gar_session *session = default_session;
    gar_mutex_unlock(&sessions_lock);
    if (session != NULL) {
        *out = session;
        return GAR_OK;
    }
    gar_once_run(&process_once, process_from_environment);
    if (process_status < 0) {
        if (err != NULL) {
            *err = process_error;
        }
        return process_status;
    }
    struct gar_session *made = NULL;
    GAR_TRY(gar_session_new(NULL, &made, err)); /* registers for fork: not under the lock */
    gar_mutex_lock(&sessions_lock);
    const bool is_first = default_session == NULL;
    if (is_first) {
        default_session = made;
    }
    session = default_session;
    gar_mutex_unlock(&sessions_lock);
    if (is_first) {
        (void)atexit(stop_default_at_exit);
    } else {
        gar_session_release(made);
    }
    *out = session;
    return GAR_OK;
}

void gar_session_settings(const struct gar_session *session, struct gar_settings *out)
{
    struct gar_session *s = (struct gar_session *)(uintptr_t)session;
    gar_mutex_lock(&s->lock);
    const struct gar_settings settings = s->synced.settings;
    gar_mutex_unlock(&s->lock);
    const size_t bytes = out->struct_bytes;
    if (bytes > sizeof(size_t)) {
        memcpy((char *)out + sizeof(size_t), (const char *)&settings + sizeof(size_t),
               (bytes < sizeof settings ? bytes : sizeof settings) - sizeof(size_t));
    }
}

/* A runtime of other sizes takes the place of the idle old one. */
static enum gar_status replace_runtime_locked(struct gar_session *session,
                                              const struct gar_settings *full,
                                              struct gar_runtime **old, struct gar_error *err)
    GAR_REQUIRES(session->lock)
{
    struct gar_runtime *runtime = session->synced.runtime;
    if (runtime != NULL && !gar_runtime_is_forked(runtime) && gar_runtime_active(runtime) > 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "number and priority of threads cannot change while queries run; "
                             "finish or drop them first");
    }
    struct gar_runtime *fresh = NULL;
    GAR_TRY(make_runtime(session, full, &fresh, err));
    *old = runtime;
    session->synced.runtime = fresh;
    return GAR_OK;
}

enum gar_status gar_session_configure(struct gar_session *session,
                                      const struct gar_settings *settings, struct gar_error *err)
{
    struct gar_runtime *old = NULL;
    gar_mutex_lock(&session->lock);
    struct gar_settings full = session->synced.settings;
    gar_options_take(&full, sizeof full, settings);
    enum gar_status status = check_settings(&full, err);
    const struct gar_settings *old_settings = &session->synced.settings;
    const bool has_other_threads = full.num_threads != old_settings->num_threads ||
                                   full.io_threads != old_settings->io_threads ||
                                   full.compute_nice != old_settings->compute_nice ||
                                   full.io_nice != old_settings->io_nice ||
                                   full.compute_batch != old_settings->compute_batch;
    if (status == GAR_OK && has_other_threads) {
        status = replace_runtime_locked(session, &full, &old, err);
    }
    struct gar_spill_space *spill = NULL;
    if (status == GAR_OK && (full.spill_limit_bytes != old_settings->spill_limit_bytes ||
                             strcmp(full.spill_dir, old_settings->spill_dir) != 0)) {
        status = gar_spill_space_new(full.spill_dir, full.spill_limit_bytes, &spill, err);
    }
    if (spill != NULL) {
        struct gar_spill_space *before = session->synced.spill;
        session->synced.spill = spill;
        spill = before;
    }
    if (status == GAR_OK) {
        if (full.memory_limit_bytes != session->synced.settings.memory_limit_bytes) {
            gar_memory_pool_set_limit(session->pool, full.memory_limit_bytes);
        }
        gar_memory_pool_set_resident(session->pool, full.memory_keep_bytes);
        session->synced.settings = full;
    }
    gar_mutex_unlock(&session->lock);
    gar_runtime_free(old);
    gar_spill_space_unref(spill);
    return status;
}

struct gar_spill_space *gar_session_spill_space(struct gar_session *session)
{
    gar_mutex_lock(&session->lock);
    struct gar_spill_space *space = gar_spill_space_ref(session->synced.spill);
    gar_mutex_unlock(&session->lock);
    return space;
}

enum gar_status gar_session_begin(struct gar_session *session, struct gar_settings *out_settings,
                                  struct gar_runtime **out_runtime, struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    gar_mutex_lock(&session->lock);
    struct gar_runtime *runtime = session->synced.runtime;
    if (runtime == NULL || gar_runtime_is_forked(runtime)) {
        gar_runtime_free(runtime);
        session->synced.runtime = NULL;
        status = make_runtime(session, &session->synced.settings, &session->synced.runtime, err);
        runtime = session->synced.runtime;
    }
    if (status == GAR_OK) {
        status = gar_runtime_enter(runtime, err);
    }
    if (status == GAR_OK) {
        *out_settings = session->synced.settings;
        *out_runtime = runtime;
    }
    gar_mutex_unlock(&session->lock);
    return status;
}

void gar_session_statistics(struct gar_session *session, struct gar_statistics *out)
{
    struct gar_memory_usage usage;
    gar_memory_pool_usage(session->pool, &usage);
    gar_mutex_lock(&session->lock);
    struct gar_runtime *runtime = session->synced.runtime;
    const bool is_ours = runtime != NULL && !gar_runtime_is_forked(runtime);
    const struct gar_statistics full = {
        .struct_bytes = out->struct_bytes,
        .memory_live_bytes = usage.used_bytes,
        .memory_peak_bytes = usage.peak_bytes,
        .memory_held_bytes = usage.used_bytes + usage.idle_bytes,
        .heap_live_bytes = gar_alloc_live_bytes(),
        .heap_live_blocks = gar_alloc_live_blocks(),
        .threads = is_ours ? gar_runtime_threads(runtime) : 0,
        .queries = is_ours ? (int32_t)gar_runtime_active(runtime) : 0,
        .memory_keep_bytes = usage.resident_bytes,
    };
    gar_mutex_unlock(&session->lock);
    const size_t bytes = out->struct_bytes;
    memcpy(out, &full, bytes < sizeof full ? bytes : sizeof full);
}
