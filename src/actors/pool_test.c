/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of real processes: all rows once and in order, and each way in which a worker can fail, with nothing left behind. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "actors/pool_test_priv.h"
#include "actors/seats.h"
#include "os/fault.h"

static struct test_pool pool;
static int64_t files_before;

static int open_all(void **state)
{
    (void)state;
    if (!test_pool_open(&pool)) {
        return 1;
    }
    /* A first run, so that threads and the loop's descriptors exist. */
    struct test_run run;
    test_run_pool(&pool, &(struct test_options){.actors = 1, .rows = 10}, &run);
    files_before = test_count_files();
    return run.status == GAR_EOF ? 0 : 1;
}

static int close_all(void **state)
{
    (void)state;
    test_pool_close(&pool);
    return 0;
}

/* Runs, prints what is unexpected, and looks for what was left behind. */
static void run_pool(const struct test_options *options, struct test_run *run)
{
    test_run_pool(&pool, options, run);
    assert_int_equal(test_count_children(NULL, 0), 0);
    assert_int_equal(test_count_files(), files_before);
    assert_false(run->is_wrong);
}

static void expect_rows(const struct test_options *options)
{
    struct test_run run;
    run_pool(options, &run);
    if (run.status != GAR_EOF) {
        print_error("%s\n", run.error.message);
    }
    assert_int_equal(run.status, GAR_EOF);
    assert_int_equal(run.rows, options->rows);
}

static void expect_failure(const struct test_options *options, enum gar_actor_fault fault,
                           const char *words, struct test_run *run)
{
    run_pool(options, run);
    assert_true(run->status < 0);
    if (run->fault != fault || strstr(run->error.message, words) == NULL) {
        print_error("fault %d: %s\n", (int)run->fault, run->error.message);
    }
    assert_int_equal(run->fault, fault);
    assert_non_null(strstr(run->error.message, words));
    assert_non_null(strstr(run->error.message, "UDF 'f'"));
}

static void test_all_rows_in_order(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 7, 100, 1024, 5000};
    for (int64_t i = 0; i < GAR_COUNT_OF(sizes); i++) {
        expect_rows(&(struct test_options){.actors = 1 + (int32_t)i % 3,
                                           .rows = sizes[i] == 1 ? 300 : 20000,
                                           .batch_rows = sizes[i]});
    }
    expect_rows(&(struct test_options){.actors = 2, .rows = 0});
    expect_rows(
        &(struct test_options){.actors = 2, .rows = 400000, .chunk = 200000, .batch_rows = 131072});
}

static void test_actors_are_torn_down(void **state)
{
    (void)state;
    struct test_run run;
    run_pool(&(struct test_options){.actors = 1, .rows = 1000}, &run);
    assert_int_equal(run.status, GAR_EOF);
    assert_int_equal(run.destroyed, 1);
}

static void test_exceptions(void **state)
{
    (void)state;
    struct test_run run;
    expect_failure(&(struct test_options){.code = "do=raise at=1234", .actors = 2, .rows = 5000},
                   GAR_ACTOR_RAISED, "ValueError: bad value", &run);
    assert_true(run.has_traceback);
    assert_int_equal(run.status, GAR_ERR_CALLBACK);
    assert_non_null(strstr(run.error.message, "rows 1200 to 1299"));
    expect_failure(&(struct test_options){.code = "do=short at=1234", .actors = 2, .rows = 5000},
                   GAR_ACTOR_BAD_RESULT, "returned 99 values, expected 100", &run);
    expect_failure(&(struct test_options){.code = "do=type at=1234", .actors = 2, .rows = 5000},
                   GAR_ACTOR_BAD_RESULT, "expected 'g'", &run);
    expect_failure(&(struct test_options){.code = "do=nothing at=1234", .actors = 1, .rows = 5000},
                   GAR_ACTOR_BAD_RESULT, "returned nothing", &run);
}

static void test_deaths(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        const char *words;
        int32_t signal;
        int32_t exit_code;
    } deaths[] = {
        {"do=exit at=1234", "exited with code 3", 0, 3},
        {"do=segv at=1234", "killed by signal 11", SIGSEGV, -1},
        {"do=abort at=1234", "killed by signal 6", SIGABRT, -1},
        {"do=kill at=1234", "killed by signal 9", SIGKILL, -1},
        {"do=fork at=1234", "exited with code 4", 0, 4},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(deaths); i++) {
        struct test_run run;
        expect_failure(&(struct test_options){.code = deaths[i].code, .actors = 2, .rows = 5000},
                       GAR_ACTOR_DIED, deaths[i].words, &run);
        assert_int_equal(run.signal, deaths[i].signal);
        assert_int_equal(run.exit_code, deaths[i].exit_code);
        assert_non_null(strstr(run.error.message, "rows 1200 to 1299"));
    }
    struct test_run run;
    expect_failure(&(struct test_options){.code = "do=segv at=1234", .actors = 1, .rows = 5000},
                   GAR_ACTOR_DIED, "its last output: about to crash", &run);
}

static void test_bad_starts(void **state)
{
    (void)state;
    struct test_run run;
    expect_failure(&(struct test_options){.code = "do=raise at=create", .actors = 3, .rows = 500},
                   GAR_ACTOR_NO_START, "could not be started: RuntimeError: the model file", &run);
    assert_true(run.has_traceback);
    expect_failure(&(struct test_options){.code = "do=exit at=create", .actors = 3, .rows = 500},
                   GAR_ACTOR_NO_START, "exited with code 3", &run);
    expect_failure(&(struct test_options){.code = "do=hang at=create",
                                          .actors = 2,
                                          .rows = 500,
                                          .policy = {.start_limit_ns = 300 * GAR_NS_PER_MS}},
                   GAR_ACTOR_NO_START, "not ready within 0.3 s", &run);
    expect_failure(&(struct test_options){.program = "/bin/false", .actors = 2, .rows = 500},
                   GAR_ACTOR_NO_START, "exited with code 1", &run);
    expect_failure(
        &(struct test_options){.program = "/nonexistent/program", .actors = 2, .rows = 500},
        GAR_ACTOR_NO_START, "cannot start '/nonexistent/program'", &run);
}

static void test_slow_and_stopped(void **state)
{
    (void)state;
    struct test_run run;
    expect_failure(&(struct test_options){.code = "do=hang at=1234",
                                          .actors = 2,
                                          .rows = 5000,
                                          .policy = {.call_limit_ns = 300 * GAR_NS_PER_MS}},
                   GAR_ACTOR_TOO_SLOW, "longer than its limit of 0.3 s", &run);
    assert_int_equal(run.status, GAR_ERR_TIMEOUT);
    expect_failure(&(struct test_options){.code = "do=stop at=1234",
                                          .actors = 2,
                                          .rows = 5000,
                                          .policy = {.stop_limit_ns = 200 * GAR_NS_PER_MS}},
                   GAR_ACTOR_TOO_SLOW, "stopped by a signal", &run);
}

static void test_hostile_workers(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        const char *words;
    } tricks[] = {
        {"do=garbage at=1234", "no message"},   {"do=outside at=1234", "outside its arena"},
        {"do=negative at=1234", "outside its"}, {"do=empty at=1234", "malformed batch"},
        {"do=twice at=1234", "twice"},          {"do=unknown at=1234", "no known kind"},
        {"do=seq at=1234", "not made"},         {"do=close at=1234", "closed its socket"},
        {"do=garbage at=create", "no message"},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(tricks); i++) {
        struct test_run run;
        expect_failure(&(struct test_options){.code = tricks[i].code, .actors = 2, .rows = 5000},
                       GAR_ACTOR_PROTOCOL, tricks[i].words, &run);
    }
}

static void test_retries(void **state)
{
    (void)state;
    static const char *const codes[] = {
        "do=raise at=1234",   "do=exit at=1234", "do=segv at=1234", "do=kill at=1234",
        "do=garbage at=1234", "do=stop at=1234", "do=hang at=1234",
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(codes); i++) {
        char once[] = "/tmp/gar-actor-once-XXXXXX";
        char code[128];
        assert_non_null(mkdtemp(once));
        (void)snprintf(code, sizeof code, "%s once=%s/x", codes[i], once);
        expect_rows(&(struct test_options){.code = code,
                                           .actors = 2,
                                           .rows = 5000,
                                           .policy = {.max_retries = 2,
                                                      .backoff_ns = GAR_NS_PER_MS,
                                                      .call_limit_ns = 2 * GAR_NS_PER_S,
                                                      .stop_limit_ns = 100 * GAR_NS_PER_MS}});
        char file[64];
        (void)snprintf(file, sizeof file, "%s/x", once);
        (void)unlink(file);
        (void)rmdir(once);
    }
    struct test_run run;
    expect_failure(&(struct test_options){.code = "do=exit at=1234",
                                          .actors = 2,
                                          .rows = 5000,
                                          .policy = {.max_retries = 3, .backoff_ns = 1}},
                   GAR_ACTOR_DIED, "exited with code 3", &run);
}

static void test_bad_rows_become_null(void **state)
{
    (void)state;
    static const char *const codes[] = {"do=raise at=1234", "do=short at=1234", "do=segv at=1234"};
    for (int64_t i = 0; i < GAR_COUNT_OF(codes); i++) {
        struct test_run run;
        run_pool(&(struct test_options){.code = codes[i],
                                        .actors = 2,
                                        .rows = 5000,
                                        .policy = {.on_error = GAR_ACTOR_NULL}},
                 &run);
        assert_int_equal(run.status, GAR_EOF);
        assert_int_equal(run.rows, 5000);
        assert_int_equal(run.nulls, 1);
    }
}

static void test_much_output(void **state)
{
    (void)state;
    struct test_run run;
    run_pool(
        &(struct test_options){
            .code = "print=10000000", .actors = 2, .rows = 1000, .batch_rows = 100},
        &run);
    assert_int_equal(run.status, GAR_EOF);
    assert_true(run.output_bytes >= 100000000);
}

static void test_full_arenas(void **state)
{
    (void)state;
    struct test_run run;
    /* 100,000 rows need more than the 1 MiB window. */
    expect_failure(&(struct test_options){.actors = 1,
                                          .rows = 100000,
                                          .chunk = 100000,
                                          .batch_rows = 100000,
                                          .arena_bytes = 1 << 20},
                   GAR_ACTOR_NO_ROOM, "smaller batch_size", &run);
    assert_int_equal(run.status, GAR_ERR_NOMEM);
    struct gar_memory_pool *memory = NULL;
    struct gar_account *account = NULL;
    const struct gar_memory_pool_options options = {.limit_bytes = INT64_C(1) << 30};
    assert_int_equal(gar_memory_pool_new(&options, &memory, NULL), GAR_OK);
    assert_int_equal(gar_account_new(memory, "query", 4 << 20, &account, NULL), GAR_OK);
    expect_failure(
        &(struct test_options){
            .actors = 1, .rows = 100000, .chunk = 100000, .batch_rows = 100000, .account = account},
        GAR_ACTOR_NO_ROOM, "out of memory", &run);
    gar_account_unref(account);
    assert_int_equal(gar_account_new(memory, "query", 0, &account, NULL), GAR_OK);
    expect_rows(&(struct test_options){.actors = 1, .rows = 20000, .account = account});
    assert_int_equal(gar_account_used_bytes(account), 0);
    gar_account_unref(account);
    gar_memory_pool_unref(memory);
}

/* A worker that takes more than it may, or than the query has, is named and ends the query. */
static void test_large_workers(void **state)
{
    (void)state;
    struct gar_memory_pool *memory = NULL;
    struct gar_account *account = NULL;
    struct test_run run;
    const struct gar_memory_pool_options options = {.limit_bytes = INT64_C(256) << 20};
    expect_failure(&(struct test_options){.code = "do=grow at=50",
                                          .actors = 2,
                                          .rows = 100,
                                          .batch_rows = 10,
                                          .limit_bytes = INT64_C(200) << 20},
                   GAR_ACTOR_NO_ROOM, "MiB of memory of its own, more than the 200.0 MiB that",
                   &run);
    assert_int_equal(gar_memory_pool_new(&options, &memory, NULL), GAR_OK);
    assert_int_equal(gar_account_new(memory, "query", 0, &account, NULL), GAR_OK);
    expect_failure(
        &(struct test_options){
            .code = "do=grow at=5", .actors = 1, .rows = 10, .batch_rows = 5, .account = account},
        GAR_ACTOR_NO_ROOM, "which the query has no room for: out of memory", &run);
    assert_int_equal(gar_account_used_bytes(account), 0);
    gar_account_unref(account);
    gar_memory_pool_unref(memory);
}

static void test_cancel_at_any_time(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 4000; rows += 700) {
        struct test_run run;
        run_pool(
            &(struct test_options){
                .actors = 2, .rows = 100000, .batch_rows = 100, .stop_after = rows},
            &run);
        assert_int_equal(run.status, GAR_OK);
        assert_true(run.rows >= rows && run.rows < 100000);
    }
}

/* SIGKILL to a random worker after random batches. */
struct killer {
    uint64_t seed;
    int32_t kills;
    int32_t wanted;
};

static void kill_one(void *context)
{
    struct killer *killer = context;
    killer->seed = killer->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    int64_t pids[8];
    const int64_t count = test_count_children(pids, 8);
    if (killer->kills < killer->wanted && (killer->seed >> 33) % 4 == 0 && count > 0) {
        (void)kill((pid_t)pids[(killer->seed >> 40) % (uint64_t)gar_min_i64(count, 8)], SIGKILL);
        killer->kills++;
    }
}

static void test_random_kills(void **state)
{
    (void)state;
    /* GAR_TEST_KILLS: more, in the long tests. */
    const char *kills = getenv("GAR_TEST_KILLS");
    struct killer killer = {.seed = 42,
                            .wanted = kills != NULL ? (int32_t)strtol(kills, NULL, 10) : 50};
    expect_rows(&(struct test_options){
        .code = "sleep_us=300",
        .actors = 3,
        .rows = (int64_t)1200 * killer.wanted,
        .batch_rows = 50,
        .policy = {.max_retries = 60, .max_restarts = 100000, .backoff_ns = 1000},
        .on_batch = kill_one,
        .context = &killer});
    assert_int_equal(killer.kills, killer.wanted);
}

/* One system call or allocation fails: all rows, or an error, and nothing left. */
static void test_shortages(void **state)
{
    (void)state;
    static const enum gar_os_call calls[] = {GAR_OS_SOCKET, GAR_OS_PROCESS, GAR_OS_MAP};
    for (int64_t c = 0; c < GAR_COUNT_OF(calls); c++) {
        for (int64_t nth = 1; nth <= 6; nth++) {
            const struct gar_os_fault fault = {.call = calls[c], .nth = nth, .os_errno = EMFILE};
            struct test_run run;
            gar_os_fault_set(&fault);
            test_run_pool(&pool, &(struct test_options){.actors = 2, .rows = 3000}, &run);
            gar_os_fault_set(NULL);
            assert_false(run.is_wrong);
            assert_true(run.status == GAR_EOF ? run.rows == 3000 : run.error.message[0] != 0);
            assert_int_equal(test_count_children(NULL, 0), 0);
            assert_int_equal(test_count_files(), files_before);
        }
    }
}

static void test_failing_allocations(void **state)
{
    (void)state;
    int32_t failed = 0;
    for (int64_t n = 60; n < 400; n += 7) { /* the first ones make the test's own input */
        struct test_run run;
        (void)gar_alloc_fail_at(n, false);
        test_run_pool(
            &pool,
            &(struct test_options){.actors = 2, .rows = 1000, .chunk = 1000, .batch_rows = 50},
            &run);
        (void)gar_alloc_fail_at(0, false);
        failed += run.status < 0;
        assert_false(run.is_wrong);
        assert_true(run.status == GAR_EOF ? run.rows == 1000 : run.error.message[0] != 0);
        assert_int_equal(test_count_children(NULL, 0), 0);
        assert_int_equal(test_count_files(), files_before);
    }
    assert_true(failed > 10);
}

/* A host that reaps all children itself: pools work, and a death is told without its reason. */
static void test_host_reaps_children(void **state)
{
    (void)state;
    void (*const before)(int) = signal(SIGCHLD, SIG_IGN);
    assert_true(before != SIG_ERR);
    expect_rows(&(struct test_options){.actors = 2, .rows = 5000});
    struct test_run run;
    expect_failure(&(struct test_options){.code = "do=exit at=1234", .actors = 2, .rows = 5000},
                   GAR_ACTOR_DIED, "exit status unknown", &run);
    (void)signal(SIGCHLD, before);
}

/* The program forks while a pool works: the child's end does not disturb the pool. */
static void fork_once(void *context)
{
    int32_t *forks = context;
    if (*forks < 5) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        assert_true(child > 0);
        assert_true(waitpid(child, NULL, 0) == child);
        (*forks)++;
    }
}

static void test_program_forks(void **state)
{
    (void)state;
    int32_t forks = 0;
    expect_rows(&(struct test_options){
        .actors = 2, .rows = 20000, .on_batch = fork_once, .context = &forks});
    assert_int_equal(forks, 5);
}

static void never_done(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    (void)ticket;
    (void)status;
    fail(); /* nothing else is booked */
}

/* A machine with CUDA_VISIBLE_DEVICES=3,4,5,6, and a pool with `gpus` of them for each of two actors. */
static void with_devices(double gpus, const char *code, const struct gar_actor_policy *policy,
                         struct test_run *run, int64_t *out_free_gpus)
{
    struct gar_device_list known = {.gpu_count = -1};
    struct gar_ledger_options machine = {.cpu_shares = 8 * GAR_SHARES, .memory_bytes = 1 << 30};
    struct gar_device_list visible;
    struct gar_ledger *ledger = NULL;
    struct gar_ledger_ticket ticket = {.on_done = never_done};
    struct gar_actor_seats seats;
    struct gar_ledger_want want = {.count = 2, .holder = "f"};
    memset(&visible, 0, sizeof visible);
    assert_int_equal(gar_visible_parse("3,4,5,6", false, &known, &visible, NULL), GAR_OK);
    machine.devices = &visible;
    assert_int_equal(gar_ledger_new(&machine, &ledger, NULL), GAR_OK);
    gar_resource_request_init(&want.request);
    assert_int_equal(gar_resource_request_set_gpus(&want.request, gpus, NULL), GAR_OK);
    assert_int_equal(gar_resource_request_set_cpus(&want.request, 2, NULL), GAR_OK);
    assert_int_equal(gar_ledger_acquire(ledger, &want, 1, &ticket, NULL), GAR_OK);
    assert_int_equal(gar_actor_seats_new(ticket.grants, 2, false, &seats, NULL), GAR_OK);
    gar_ledger_ticket_destroy(&ticket);
    run_pool(
        &(struct test_options){
            .code = code, .actors = 2, .rows = 20000, .policy = *policy, .seats = seats.seats},
        run);
    gar_actor_seats_destroy(&seats, false);
    struct gar_resources *resources = NULL;
    assert_int_equal(gar_ledger_snapshot(ledger, &resources, NULL), GAR_OK);
    assert_int_equal(resources->free_cpu_shares, resources->cpu_shares);
    assert_int_equal(resources->holder_count, 0);
    *out_free_gpus = 0;
    for (int64_t d = 0; d < resources->device_count; d++) {
        const int32_t device = (int32_t)d;
        *out_free_gpus += !gar_ledger_is_set_aside(ledger, device) &&
                          resources->devices[d].free_shares == GAR_SHARES;
    }
    gar_resources_free(resources);
    gar_ledger_unref(ledger);
}

static void test_actors_see_their_devices(void **state)
{
    (void)state;
    struct test_run run;
    int64_t free_gpus = 0;
    with_devices(2, "show sleep_us=2000", &(struct gar_actor_policy){.max_retries = 0}, &run,
                 &free_gpus);
    assert_int_equal(run.status, GAR_EOF);
    assert_int_equal(run.rows, 20000);
    assert_int_equal(free_gpus, 4);
    assert_non_null(strstr(run.shown, "devices=3,4 threads=2;"));
    assert_non_null(strstr(run.shown, "devices=5,6 threads=2;"));
}

static void test_lost_devices_are_put_aside(void **state)
{
    (void)state;
    struct test_run run;
    int64_t free_gpus = 0;
    with_devices(1, "do=ecc at=1234", &(struct gar_actor_policy){.max_retries = 0}, &run,
                 &free_gpus);
    assert_true(run.status < 0);
    assert_int_equal(run.fault, GAR_ACTOR_LOST_DEVICE);
    assert_non_null(strstr(run.error.message, "ECC"));
    assert_true(strstr(run.error.message, "(device 3)") != NULL ||
                strstr(run.error.message, "(device 4)") != NULL);
    assert_int_equal(free_gpus, 3);
    /* With retries the other device does the work. */
    char once[] = "/tmp/gar-actor-once-XXXXXX";
    char code[128];
    assert_non_null(mkdtemp(once));
    (void)snprintf(code, sizeof code, "do=ecc at=1234 once=%s/x", once);
    with_devices(1, code, &(struct gar_actor_policy){.max_retries = 1}, &run, &free_gpus);
    assert_int_equal(run.status, GAR_EOF);
    assert_int_equal(run.rows, 20000);
    assert_int_equal(free_gpus, 3);
    (void)snprintf(code, sizeof code, "%s/x", once);
    (void)unlink(code);
    (void)rmdir(once);
}

/* A parent that is killed leaves no worker: they see it within moments. */
static void test_parent_killed(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    const pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) { /* a process of its own with a runtime of its own */
        struct test_pool own;
        struct test_run run;
        (void)close(fds[0]);
        if (test_pool_open(&own)) {
            test_run_pool(
                &own,
                &(struct test_options){
                    .code = "sleep_us=100000", .actors = 2, .rows = 100000, .batch_rows = 1},
                &run);
        }
        _exit(0);
    }
    (void)close(fds[1]);
    int64_t workers[8];
    int64_t count = 0;
    for (int tries = 0; tries < 1000 && count < 2; tries++) {
        char path[64];
        const struct timespec pause = {.tv_nsec = 10000000};
        (void)nanosleep(&pause, NULL);
        (void)snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
        DIR *dir = opendir(path);
        count = 0;
        for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
            char children[320];
            (void)snprintf(children, sizeof children, "%s/%s/children", path, entry->d_name);
            FILE *file = fopen(children, "re");
            for (long long pid = 0; file != NULL && fscanf(file, "%lld", &pid) == 1 && count < 8;) {
                workers[count++] = pid;
            }
            if (file != NULL) {
                (void)fclose(file);
            }
        }
        if (dir != NULL) {
            (void)closedir(dir);
        }
    }
    assert_int_equal(count, 2);
    (void)kill(parent, SIGKILL);
    (void)waitpid(parent, NULL, 0);
    bool is_gone = false;
    for (int tries = 0; tries < 500 && !is_gone; tries++) {
        const struct timespec pause = {.tv_nsec = 10000000};
        is_gone = kill((pid_t)workers[0], 0) != 0 && kill((pid_t)workers[1], 0) != 0;
        (void)nanosleep(&pause, NULL);
    }
    (void)close(fds[0]);
    assert_true(is_gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_rows_in_order),
        cmocka_unit_test(test_actors_are_torn_down),
        cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_bad_starts),
        cmocka_unit_test(test_slow_and_stopped),
        cmocka_unit_test(test_hostile_workers),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_bad_rows_become_null),
        cmocka_unit_test(test_much_output),
        cmocka_unit_test(test_full_arenas),
        cmocka_unit_test(test_large_workers),
        cmocka_unit_test(test_cancel_at_any_time),
        cmocka_unit_test(test_random_kills),
        cmocka_unit_test(test_parent_killed),
        cmocka_unit_test(test_actors_see_their_devices),
        cmocka_unit_test(test_lost_devices_are_put_aside),
        cmocka_unit_test(test_shortages),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_host_reaps_children),
        cmocka_unit_test(test_program_forks),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
