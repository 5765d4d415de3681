/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded channels: bounds, room, ends, waits, descriptors, forks. */
#include "runtime/channel.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/thread.h"

static int dropped;
static int rooms;
static int values[16];

static void drop(void *item)
{
    (void)item;
    dropped++;
}

static void on_room(void *context)
{
    (void)context;
    rooms++;
}

static struct gar_channel *new_channel(int64_t max_items, int64_t max_bytes)
{
    const struct gar_channel_options options = {
        .max_items = max_items, .max_bytes = max_bytes, .drop = drop, .on_room = on_room};
    struct gar_channel *channel = NULL;
    dropped = 0;
    rooms = 0;
    assert_int_equal(gar_channel_new(&options, &channel, NULL), GAR_OK);
    return channel;
}

static void take_expect(struct gar_channel *channel, const void *expected)
{
    void *item = NULL;
    assert_int_equal(gar_channel_try_take(channel, &item, NULL), GAR_OK);
    assert_ptr_equal(item, expected);
}

static void test_bounds_and_order(void **state)
{
    (void)state;
    struct gar_channel *channel = new_channel(4, 100);
    void *item = NULL;
    assert_int_equal(gar_channel_try_take(channel, &item, NULL), GAR_PENDING);
    assert_int_equal(gar_channel_put(channel, &values[0], 500), GAR_OK); /* alone it fits */
    assert_true(gar_channel_is_full(channel));
    assert_int_equal(gar_channel_put(channel, &values[1], 1), GAR_PENDING);
    assert_int_equal(rooms, 0);
    take_expect(channel, &values[0]);
    assert_int_equal(rooms, 1);
    assert_false(gar_channel_is_full(channel));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(gar_channel_put(channel, &values[i], 10), GAR_OK);
    }
    assert_int_equal(gar_channel_put(channel, &values[4], 10), GAR_PENDING);
    take_expect(channel, &values[0]);
    assert_int_equal(rooms, 1); /* not before half is free */
    take_expect(channel, &values[1]);
    assert_int_equal(rooms, 2);
    take_expect(channel, &values[2]);
    assert_int_equal(rooms, 2);
    gar_channel_end(channel, GAR_OK, NULL, true);
    take_expect(channel, &values[3]);
    assert_int_equal(gar_channel_try_take(channel, &item, NULL), GAR_EOF);
    assert_int_equal(gar_channel_try_take(channel, &item, NULL), GAR_EOF);
    gar_channel_close(channel);
    assert_int_equal(dropped, 0);
}

static void test_errors(void **state)
{
    (void)state;
    struct gar_error why = GAR_ERROR_INIT;
    (void)gar_error_set(&why, GAR_ERR_CAST, "row 3");
    struct gar_error err = GAR_ERROR_INIT;
    void *item = NULL;
    struct gar_channel *channel = new_channel(4, 100);
    assert_int_equal(gar_channel_put(channel, &values[0], 1), GAR_OK);
    gar_channel_end(channel, GAR_ERR_CAST, &why, false);
    take_expect(channel, &values[0]);
    assert_int_equal(gar_channel_try_take(channel, &item, &err), GAR_ERR_CAST);
    assert_string_equal(err.message, "row 3");
    gar_channel_close(channel);
    channel = new_channel(4, 100);
    assert_int_equal(gar_channel_put(channel, &values[0], 1), GAR_OK);
    gar_channel_end(channel, GAR_ERR_CAST, NULL, true);
    assert_int_equal(gar_channel_try_take(channel, &item, &err), GAR_ERR_CAST);
    assert_int_equal(dropped, 1);
    gar_channel_close(channel);
    channel = new_channel(4, 100);
    assert_int_equal(gar_channel_put(channel, &values[0], 1), GAR_OK);
    gar_channel_close(channel);
    assert_int_equal(dropped, 1);
    assert_int_equal(gar_channel_put(channel, &values[1], 1), GAR_ERR_CANCELLED);
    gar_channel_end(channel, GAR_OK, NULL, false);
    gar_channel_close(NULL);
}

static bool always(void *context)
{
    ++*(int *)context;
    return true;
}

static void test_waits(void **state)
{
    (void)state;
    struct gar_channel *channel = new_channel(4, 100);
    void *item = NULL;
    int64_t start_ns = gar_clock_ns();
    assert_int_equal(gar_channel_take(channel, start_ns + 10 * GAR_NS_PER_MS, NULL, &item, NULL),
                     GAR_PENDING);
    assert_true(gar_clock_ns() - start_ns >= 10 * GAR_NS_PER_MS);
    int asked = 0;
    const struct gar_interrupt interrupt = {.check = always, .context = &asked};
    start_ns = gar_clock_ns();
    assert_int_equal(gar_channel_take(channel, GAR_CLOCK_NEVER, &interrupt, &item, NULL),
                     GAR_ERR_INTERRUPTED);
    assert_true(gar_clock_ns() - start_ns < 500 * GAR_NS_PER_MS);
    assert_int_equal(asked, 1);
    assert_int_equal(gar_channel_put(channel, &values[0], 1), GAR_OK);
    assert_false(gar_channel_drain(channel, 5 * GAR_NS_PER_MS));
    assert_int_equal(dropped, 1);
    gar_channel_end(channel, GAR_OK, NULL, false);
    assert_true(gar_channel_drain(channel, 5 * GAR_NS_PER_MS));
    gar_channel_close(channel);
}

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static void test_descriptor(void **state)
{
    (void)state;
    struct gar_channel *channel = new_channel(4, 100);
    int fd = -1;
    int again = -1;
    assert_int_equal(gar_channel_fd(channel, &fd, NULL), GAR_OK);
    assert_int_equal(gar_channel_fd(channel, &again, NULL), GAR_OK);
    assert_int_equal(fd, again);
    assert_false(is_readable(fd));
    assert_int_equal(gar_channel_put(channel, &values[0], 1), GAR_OK);
    assert_int_equal(gar_channel_put(channel, &values[1], 1), GAR_OK);
    assert_true(is_readable(fd));
    take_expect(channel, &values[0]);
    assert_true(is_readable(fd));
    take_expect(channel, &values[1]);
    assert_false(is_readable(fd));
    gar_channel_end(channel, GAR_OK, NULL, false);
    assert_true(is_readable(fd));
    void *item;
    assert_int_equal(gar_channel_try_take(channel, &item, NULL), GAR_EOF);
    assert_true(is_readable(fd));
    gar_channel_close(channel);
    assert_int_equal(gar_channel_fd(channel = new_channel(1, 1), &fd, NULL), GAR_OK);
    gar_channel_close(channel);
    gar_channel_end(channel, GAR_OK, NULL, false);
}

static void test_fork(void **state)
{
    (void)state;
    struct gar_channel *channel = new_channel(4, 100);
    assert_int_equal(gar_channel_put(channel, &values[0], 1), GAR_OK);
    const pid_t child = fork();
    if (child == 0) {
        void *item;
        struct gar_error err = GAR_ERROR_INIT;
        const bool is_right =
            gar_channel_is_forked(channel) &&
            gar_channel_take(channel, GAR_CLOCK_NEVER, NULL, &item, &err) == GAR_ERR_UNSUPPORTED;
        gar_channel_close(channel);
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gar_channel_end(channel, GAR_OK, NULL, false);
    gar_channel_close(channel);
    assert_int_equal(dropped, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_and_order),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
