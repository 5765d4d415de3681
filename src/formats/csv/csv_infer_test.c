/* SPDX-License-Identifier: Apache-2.0 */
/* Which types samples get, and which names. */
#include "formats/csv/csv_infer.h"

#include "formats/csv/csv_test_priv.h"

static void print_inference(const struct gar_csv_inference *inference, struct gar_strbuf *out)
{
    for (int64_t i = 0; i < inference->count; i++) {
        char type[64];
        gar_strbuf_printf(
            out, "%s%s:%s", i > 0 ? " " : "", inference->names[i],
            gar_type_text(gar_csv_guess_type(&inference->guesses[i]), type, (int64_t)sizeof type));
    }
}

static void check_with(const struct gar_csv_format *format, const char *const *samples,
                       int64_t count, const char *right)
{
    struct gar_csv_inference inference = {0};
    struct gar_error err = GAR_ERROR_INIT;
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        const int64_t bytes = (int64_t)strlen(samples[i]);
        struct gar_buffer *text = padded_text(samples[i], bytes);
        const struct gar_csv_dialect d =
            gar_csv_dialect_of(format, (const uint8_t *)samples[i], bytes);
        status = gar_csv_infer(&inference, format, &d, text->data + GAR_CSV_PAD_BYTES, bytes, &err);
        gar_buffer_unref(text);
    }
    struct gar_strbuf got = {0};
    print_inference(&inference, &got);
    assert_string_equal(status < 0 ? err.message : gar_strbuf_text(&got), right);
    gar_strbuf_destroy(&got);
    gar_csv_inference_destroy(&inference);
}

static void check(const char *sample, const char *right)
{
    const struct gar_csv_format format = gar_csv_format_default();
    check_with(&format, &sample, 1, right);
}

static void test_types(void **state)
{
    (void)state;
    check("a\n1\n-2\n\n0\n", "a:int64");
    check("a\n1\n9223372036854775808\n", "a:uint64");
    check("a\n-1\n9223372036854775808\n", "a:float64");
    check("a\n18446744073709551616\n", "a:float64");
    check("a\n01\n02\n", "a:string");
    check("a\n1\n-01\n", "a:string");
    check("a\n+1\n", "a:string");
    check("a\n1\n1.50\n1e3\n", "a:float64");
    check("a\n1.5\nnan\n-inf\n", "a:float64");
    check("a\nnan\n", "a:string");
    check("a\n1e999\n", "a:string");
    check("a\n.5\n1.\n-0.5\n", "a:float64");
    check("a\n00.5\n", "a:string");
    check("a\n1.2.3\n", "a:string");
    check("a\n-\n", "a:string");
    check("a\ntrue\nFalse\n", "a:bool");
    check("a\ntrue\n1\n", "a:string");
    check("a\n2024-01-02\n\"2024-02-29\"\n", "a:date");
    check("a\n2024-02-30\n", "a:string");
    check("a\n2024-01-02\n2024-01-02 03:04\n", "a:timestamp[us]");
    check("a\n2024-01-02T03:04:05.1234567\n", "a:timestamp[ns]");
    check("a\n2024-01-02T03:04:05.1234567\n9999-01-01 00:00:00\n", "a:string");
    check("a\n2024-01-02T03:04:05Z\n2024-01-02 03:04:05+01:00\n", "a:timestamp[us, UTC]");
    check("a\n2024-01-02T03:04:05Z\n2024-01-02 03:04:05\n", "a:string");
    check("a\n\"\"\n\n\"\"\n", "a:string");
    check("a,b\n\"1\",\"\"\n\" 2 \",3\n", "a:int64 b:int64");
    check("a\n12:34:56\n", "a:string");
}

static void test_names(void **state)
{
    (void)state;
    check("a,,\"b \"\"c\"\"\"\n1,2,3\n", "a:int64 column_2:int64 b \"c\":int64");
    check("", "");
    check("a,b", "a:string b:string");
    struct gar_csv_format format = gar_csv_format_default();
    format.has_header = false;
    const char *const plain[] = {"1,x\n2,y\n"};
    check_with(&format, plain, 1, "column_1:int64 column_2:string");
    format.allow_variable_columns = true;
    const char *const ragged[] = {"1\n2,y\n"};
    check_with(&format, ragged, 1, "column_1:int64 column_2:string");
    format = gar_csv_format_default();
    const char *const two[] = {"a,b\n1,2\n", "b,a\nx,1.5\n", "c,d\nx,y\n", ""};
    check_with(&format, two, 4, "a:float64 b:string");
    const char *const late[] = {"", "a\n1"};
    check_with(&format, late, 2, "a:int64");
    static const char *const nulls[] = {"NA"};
    format.nulls = nulls;
    format.null_count = 1;
    const char *const spelled[] = {"a\nNA\n1\n"};
    check_with(&format, spelled, 1, "a:int64");
    check("a\n\"1\n", "line 2: a quoted field is never closed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
