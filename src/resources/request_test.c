/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: what is legal, arithmetic, texts. */
#include "resources/request.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct gar_resource_request gpus(double amount)
{
    struct gar_resource_request request;
    gar_resource_request_init(&request);
    assert_int_equal(gar_resource_request_set_gpus(&request, amount, NULL), GAR_OK);
    return request;
}

static void expect_refused(enum gar_status status, const struct gar_error *err, const char *text)
{
    assert_int_equal(status, GAR_ERR_VALUE);
    assert_string_equal(err->message, text);
}

static void test_legal_amounts(void **state)
{
    (void)state;
    static const double good[] = {0, 0.5, 1, 1.0, 2, 8, 0.0001};
    for (int64_t i = 0; i < GAR_COUNT_OF(good); i++) {
        assert_int_equal(gpus(good[i]).gpu_shares, (int64_t)llround(good[i] * GAR_SHARES));
    }
    struct gar_resource_request request = gpus(1);
    const struct gar_resource_request before = request;
    struct gar_error err = GAR_ERROR_INIT;
    expect_refused(gar_resource_request_set_gpus(&request, 1.5, &err), &err,
                   "num_gpus greater than 1 must be an integer, got 1.5");
    expect_refused(gar_resource_request_set_gpus(&request, -1, &err), &err,
                   "num_gpus must be nonnegative, got -1");
    expect_refused(gar_resource_request_set_gpus(&request, -0.5, &err), &err,
                   "num_gpus must be nonnegative, got -0.5");
    expect_refused(gar_resource_request_set_cpus(&request, -1, &err), &err,
                   "num_cpus must be nonnegative, got -1");
    expect_refused(gar_resource_request_set_memory(&request, -7, &err), &err,
                   "memory_bytes must be nonnegative, got -7");
    expect_refused(gar_resource_request_set_gpu_memory(&request, -7, &err), &err,
                   "gpu_memory must be nonnegative, got -7");
    expect_refused(gar_resource_request_set_gpus(&request, 0.00001, &err), &err,
                   "num_gpus must be 0 or at least 0.0001, got 1e-05");
    assert_int_equal(gar_resource_request_set_gpus(&request, (double)NAN, &err), GAR_ERR_VALUE);
    assert_int_equal(gar_resource_request_set_cpus(&request, (double)INFINITY, &err),
                     GAR_ERR_VALUE);
    assert_int_equal(gar_resource_request_set_cpus(&request, 1e12, &err), GAR_ERR_VALUE);
    assert_true(gar_resource_request_equal(&request, &before));
    assert_int_equal(gar_resource_request_set_cpus(&request, 1.5, &err), GAR_OK);
    assert_int_equal(request.cpu_shares, 15000);
}

static void test_check(void **state)
{
    (void)state;
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_resource_request request = gpus(2);
    assert_int_equal(gar_resource_request_check(&request, &err), GAR_OK);
    request.gpu_shares = 15000;
    expect_refused(gar_resource_request_check(&request, &err), &err,
                   "num_gpus greater than 1 must be an integer, got 1.5");
    request.gpu_shares = -5000;
    expect_refused(gar_resource_request_check(&request, &err), &err,
                   "num_gpus must be nonnegative, got -0.5");
    request.gpu_shares = INT64_MAX;
    assert_int_equal(gar_resource_request_check(&request, &err), GAR_ERR_VALUE);
    request.gpu_shares = 0;
    request.memory_bytes = -2;
    assert_int_equal(gar_resource_request_check(&request, &err), GAR_ERR_VALUE);
}

/* Rounded down, but not below what was written. */
static void test_shares(void **state)
{
    (void)state;
    assert_int_equal(gar_shares_from_double(0.2) * 5, GAR_SHARES);
    assert_int_equal(gar_shares_from_double(1.0 / 3), 3333);
    for (int64_t shares = 0; shares <= GAR_SHARES; shares++) {
        assert_int_equal(gar_shares_from_double((double)shares / GAR_SHARES), shares);
    }
}

static void test_arithmetic(void **state)
{
    (void)state;
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_resource_request a = gpus(0.5);
    struct gar_resource_request b = gpus(0.25);
    struct gar_resource_request out;
    assert_int_equal(gar_resource_request_set_memory(&b, 100, NULL), GAR_OK);
    gar_resource_request_max(&a, &b, &out);
    assert_int_equal(out.gpu_shares, 5000);
    assert_int_equal(out.memory_bytes, 100);
    assert_int_equal(out.cpu_shares, GAR_NOT_ASKED);
    assert_int_equal(gar_resource_request_sum(&a, &b, &out, &err), GAR_OK);
    assert_int_equal(out.gpu_shares, 7500);
    assert_int_equal(out.memory_bytes, 100);
    struct gar_resource_request c = gpus(0.75);
    const struct gar_resource_request before = out;
    expect_refused(gar_resource_request_sum(&c, &c, &out, &err), &err,
                   "num_gpus greater than 1 must be an integer, got 1.5");
    assert_true(gar_resource_request_equal(&out, &before));
    assert_int_equal(gar_resource_request_multiply(&a, 2, &out, &err), GAR_OK);
    assert_int_equal(out.gpu_shares, GAR_SHARES);
    expect_refused(gar_resource_request_multiply(&a, 3, &out, &err), &err,
                   "num_gpus greater than 1 must be an integer, got 1.5");
    assert_int_equal(gar_resource_request_multiply(&a, -1, &out, &err), GAR_ERR_VALUE);
    b.memory_bytes = INT64_MAX;
    assert_int_equal(gar_resource_request_sum(&b, &b, &out, &err), GAR_ERR_OVERFLOW);
    assert_int_equal(gar_resource_request_multiply(&b, 2, &out, &err), GAR_ERR_OVERFLOW);
    gar_resource_request_init(&c);
    c.memory_bytes = 7;
    gar_resource_request_override(&a, &c, &out);
    assert_int_equal(out.gpu_shares, 5000);
    assert_int_equal(out.memory_bytes, 7);
    assert_false(gar_resource_request_equal(&a, &c));
    c = a;
    assert_true(gar_resource_request_equal(&a, &c));
    c.cpu_shares = 0; /* asked for nothing, which is not the same as not asked */
    assert_false(gar_resource_request_equal(&a, &c));
    const struct gar_resource_request booked = gar_resource_request_booked(&a);
    assert_int_equal(booked.cpu_shares, 0);
    assert_int_equal(booked.gpu_shares, 5000);
}

static void test_texts(void **state)
{
    (void)state;
    char text[160];
    static const struct {
        int64_t shares;
        const char *text;
    } shares[] = {{0, "0"},       {10000, "1"},    {15000, "1.5"},  {3333, "0.3333"},
                  {1, "0.0001"},  {-10000, "-1"},  {-5000, "-0.5"}, {20010, "2.001"},
                  {100000, "10"}, {-15000, "-1.5"}};
    for (int64_t i = 0; i < GAR_COUNT_OF(shares); i++) {
        assert_string_equal(gar_shares_text(shares[i].shares, text, sizeof text), shares[i].text);
    }
    struct gar_resource_request request;
    gar_resource_request_init(&request);
    assert_string_equal(gar_resource_request_text(&request, text, sizeof text), "nothing");
    request = (struct gar_resource_request){20000, 5000, INT64_C(1) << 31, INT64_C(6) << 30};
    assert_string_equal(gar_resource_request_text(&request, text, sizeof text),
                        "2 CPUs, 2.0 GiB of memory, 0.5 GPUs, 6.0 GiB of GPU memory");
    request = gpus(1);
    assert_string_equal(gar_resource_request_text(&request, text, sizeof text), "1 GPU");
    assert_string_equal(gar_resource_request_text(&request, text, 3), "1 ");
}

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"0", 0},
        {"1000", 1000},
        {"6GiB", INT64_C(6) << 30},
        {"6 gib", INT64_C(6) << 30},
        {" 6G ", INT64_C(6) << 30},
        {"1.5 GB", 1500000000},
        {"512k", 512 << 10},
        {"64 MiB", 64 << 20},
        {"0.1MB", 100000},
        {".5KiB", 512},
        {"1tb", INT64_C(1000000000000)},
        {"2P", INT64_C(2) << 50},
        {"12B", 12},
        {"9223372036854775807", INT64_MAX},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(good); i++) {
        int64_t bytes = -1;
        assert_int_equal(gar_bytes_parse(good[i].text, &bytes, NULL), GAR_OK);
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {"",    " ",     "GiB",   "6XB",      "6GiBs",
                                      "-1",  "1e9",   "6 G B", "1.2.3",    "9223372036854775808",
                                      "+1G", "0x10G", ".",     "9999999P", "6GB7"};
    for (int64_t i = 0; i < GAR_COUNT_OF(bad); i++) {
        int64_t bytes = 77;
        struct gar_error err = GAR_ERROR_INIT;
        assert_int_equal(gar_bytes_parse(bad[i], &bytes, &err), GAR_ERR_VALUE);
        assert_int_equal(bytes, 77);
        assert_non_null(strstr(err.message, "is no amount of memory"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legal_amounts), cmocka_unit_test(test_check),
        cmocka_unit_test(test_shares),        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_texts),         cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
