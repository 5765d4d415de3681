/* SPDX-License-Identifier: Apache-2.0 */
/* Decimals: text, rescaling, doubles; rounding half away from zero. */
#include "base/int128.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(gar_i128 x, int32_t scale)
{
    static char out[49];
    out[gar_decimal_format(x, scale, out)] = '\0';
    return out;
}

static void check_parse(const char *text, int32_t precision, int32_t scale, bool round,
                        enum gar_status status, const char *expected)
{
    gar_i128 v = 0;
    const enum gar_status got =
        gar_decimal_parse(text, (int64_t)strlen(text), precision, scale, round, &v);
    if (got != status) {
        fail_msg("'%s' as decimal(%d,%d): %s, expected %s", text, precision, scale,
                 gar_status_name(got), gar_status_name(status));
    }
    if (status == GAR_OK) {
        assert_string_equal(text_of(v, scale), expected);
    }
}

#define NINES38 "99999999999999999999999999999999999999"
#define ZEROS40 "0000000000000000000000000000000000000000"

static void parsing(void **state)
{
    (void)state;
    check_parse("0", 5, 2, false, GAR_OK, "0.00");
    check_parse("-12.345", 5, 3, false, GAR_OK, "-12.345");
    check_parse("+12.3", 5, 3, false, GAR_OK, "12.300");
    check_parse(".5", 5, 1, false, GAR_OK, "0.5");
    check_parse("5.", 5, 0, false, GAR_OK, "5");
    check_parse("-0.05", 5, 2, false, GAR_OK, "-0.05");
    check_parse("1.5e3", 5, 0, false, GAR_OK, "1500");
    check_parse("15E-1", 5, 1, false, GAR_OK, "1.5");
    check_parse("1.50000", 5, 1, false, GAR_OK, "1.5");
    check_parse("1.55", 5, 1, false, GAR_ERR_VALUE, NULL);
    check_parse("1.55", 5, 1, true, GAR_OK, "1.6");
    check_parse("-1.55", 5, 1, true, GAR_OK, "-1.6");
    check_parse("1.5499999", 5, 1, true, GAR_OK, "1.5");
    check_parse("99.995", 4, 2, true, GAR_ERR_OVERFLOW, NULL);
    check_parse("99.994", 4, 2, true, GAR_OK, "99.99");
    check_parse("100", 4, 2, false, GAR_ERR_OVERFLOW, NULL);
    check_parse(NINES38, 38, 0, false, GAR_OK, NINES38);
    check_parse("-" NINES38, 38, 0, false, GAR_OK, "-" NINES38);
    check_parse(NINES38 "9", 38, 0, false, GAR_ERR_OVERFLOW, NULL);
    check_parse(NINES38 ".4", 38, 0, true, GAR_OK, NINES38);
    check_parse(NINES38 ".4", 38, 0, false, GAR_ERR_VALUE, NULL);
    check_parse(NINES38 ".5", 38, 0, true, GAR_ERR_OVERFLOW, NULL);
    check_parse("0." NINES38, 38, 38, false, GAR_OK, "0." NINES38);
    check_parse("-0." NINES38, 38, 38, false, GAR_OK, "-0." NINES38);
    check_parse("1" ZEROS40 "e-40", 38, 0, false, GAR_OK, "1");
    check_parse("1." ZEROS40 ZEROS40, 38, 2, false, GAR_OK, "1.00");
    check_parse("1." ZEROS40 "1", 38, 2, false, GAR_ERR_VALUE, NULL);
    check_parse(ZEROS40 ZEROS40 "7", 38, 0, false, GAR_OK, "7");
    check_parse("0e999999999999999999999", 5, 2, false, GAR_OK, "0.00");
    check_parse("1e999999999999999999999", 5, 2, true, GAR_ERR_OVERFLOW, NULL);
    check_parse("1e-999999999999999999999", 5, 2, true, GAR_OK, "0.00");
    check_parse("1e-999999999999999999999", 5, 2, false, GAR_ERR_VALUE, NULL);
    check_parse("5e-39", 38, 38, true, GAR_OK, "0.00000000000000000000000000000000000001");
    check_parse("4e-39", 38, 38, true, GAR_OK, "0.00000000000000000000000000000000000000");
    static const char *const bad[] = {"",    "-",   "+",    ".",    "e5", "1e",  "1e+", "1.2.3",
                                      "1 2", "--1", "0x10", "1e5x", " 1", "nan", "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_parse(bad[i], 38, 2, true, GAR_ERR_VALUE, NULL);
    }
}

static void rescaling(void **state)
{
    (void)state;
    gar_i128 r = 0;
    assert_true(gar_decimal_rescale(12345, -2, &r));
    assert_true(r == 123);
    assert_true(gar_decimal_rescale(12350, -2, &r));
    assert_true(r == 124);
    assert_true(gar_decimal_rescale(-12350, -2, &r));
    assert_true(r == -124);
    assert_true(gar_decimal_rescale(5, -1, &r));
    assert_true(r == 1);
    assert_true(gar_decimal_rescale(5, -2, &r));
    assert_true(r == 0);
    assert_true(gar_decimal_rescale(5, 37, &r));
    assert_true(r == gar_pow10_i128(37) * 5);
    assert_false(gar_decimal_rescale(5, 38, &r));
    assert_false(gar_decimal_rescale(1, 38, &r));
    assert_true(gar_decimal_rescale(1, 37, &r));
    assert_true(gar_decimal_rescale(0, 1000, &r));
    assert_true(r == 0);
    assert_true(gar_decimal_rescale(gar_pow10_i128(38) - 1, -38, &r));
    assert_true(r == 1);
    assert_true(gar_decimal_rescale(gar_pow10_i128(38) - 1, -39, &r));
    assert_true(r == 0);
    assert_true(gar_decimal_rescale(gar_pow10_i128(20) + gar_pow10_i128(19) / 2, -19, &r));
    assert_true(r == 11);
    gar_i128 p = 1;
    for (int32_t i = 0; i <= 38; i++) {
        assert_true(gar_pow10_i128(i) == p);
        assert_true(i > 18 || gar_pow10_i64(i) == (int64_t)p);
        assert_true(gar_decimal_fits(p - 1, i));
        assert_false(gar_decimal_fits(p, i));
        assert_false(gar_decimal_fits(-p, i));
        p = i < 38 ? p * 10 : p;
    }
}

static void from_doubles(void **state)
{
    (void)state;
    static const struct {
        double v;
        int32_t precision;
        int32_t scale;
        const char *text; /* NULL: refused */
    } cases[] = {
        {0.0, 5, 2, "0.00"},
        {-0.0, 5, 2, "0.00"},
        {1.5, 5, 0, "2"},
        {2.5, 5, 0, "3"},
        {-2.5, 5, 0, "-3"},
        {0.285, 10, 2, "0.28"}, /* the double lies below */
        {1.115, 10, 2, "1.11"}, /* so does this; a product with 100 would say 1.12 */
        {0.125, 10, 2, "0.13"},
        {999.99, 5, 2, "999.99"},
        {1000, 5, 2, NULL},
        {999.996, 5, 2, NULL},
        {1e37, 38, 0, "9999999999999999538762658202121142272"},
        {1e38, 38, 0, "99999999999999997748809823456034029568"},
        {1.1e38, 38, 0, NULL},
        {1e-300, 38, 38, "0.00000000000000000000000000000000000000"},
        {0.1, 38, 38, "0.10000000000000000555111512312578270212"},
        {0.9, 38, 38, "0.90000000000000002220446049250313080847"},
        {5e-324, 38, 2, "0.00"},
        {1e308, 38, 0, NULL},
        {123456789.123456789, 38, 25, "123456789.1234567910432815551757813"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gar_i128 r = 0;
        const bool ok = gar_decimal_from_double(cases[i].v, cases[i].precision, cases[i].scale, &r);
        assert_int_equal(ok, cases[i].text != NULL);
        if (ok) {
            assert_string_equal(text_of(r, cases[i].scale), cases[i].text);
        }
    }
    gar_i128 r = 0;
    assert_false(gar_decimal_from_double((double)NAN, 38, 2, &r));
    assert_false(gar_decimal_from_double((double)INFINITY, 38, 2, &r));
}

static void to_doubles(void **state)
{
    (void)state;
    assert_true(gar_decimal_to_double(12345, 2) == 123.45);
    assert_true(gar_decimal_to_double(-1, 38) == -1e-38);
    assert_true(gar_decimal_to_double(gar_pow10_i128(37), 0) == 1e37);
    assert_true(gar_decimal_to_double(gar_pow10_i128(37), 37) == 1.0);
    assert_true(gar_decimal_to_double(INT64_C(9007199254740993), 0) == 9007199254740992.0);
    assert_true(gar_decimal_to_double(INT64_C(9007199254740993), 1) == 900719925474099.3);
    char text[48];
    gar_i128 low = (gar_i128)((gar_u128)1 << 127);
    assert_int_equal(gar_decimal_format(low, 0, text), 40);
    assert_memory_equal(text, "-170141183460469231731687303715884105728", 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsing),
        cmocka_unit_test(rescaling),
        cmocka_unit_test(from_doubles),
        cmocka_unit_test(to_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
