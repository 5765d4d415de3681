/* SPDX-License-Identifier: Apache-2.0 */
/* Every form of the indexer lists the same separators, however the text is cut. */
#include "base/cpu.h"
#include "formats/csv/csv_test_priv.h"

#define TEXT_BYTES 700

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

struct listing {
    uint32_t positions[TEXT_BYTES + 256];
    int64_t count;
    int64_t line_ends;
    enum gar_csv_state state;
    bool has_escapes;
};

static void list(const struct gar_csv_dialect *d, const uint8_t *data, int64_t bytes, int64_t piece,
                 struct listing *out)
{
    *out = (struct listing){.state = GAR_CSV_RECORD_START};
    int64_t at = 0;
    while (at < bytes) {
        struct gar_csv_index_result result;
        uint32_t positions[256];
        gar_csv_index(d, data, at, gar_min_i64(bytes, at + piece), &out->state, positions,
                      GAR_COUNT_OF(positions), &result);
        assert_true(result.end > at && result.count <= GAR_COUNT_OF(positions));
        memcpy(out->positions + out->count, positions, (size_t)result.count * sizeof positions[0]);
        out->count += result.count;
        out->line_ends += result.line_ends;
        out->has_escapes |= result.has_escapes;
        at = result.end;
    }
}

/* Two line ends with nothing or '\r' between them, or such a one at the start. */
static bool has_near_ends(const struct gar_csv_dialect *d, const uint8_t *data, int64_t bytes)
{
    int64_t last = -1;
    for (int64_t i = 0; i < bytes; i++) {
        if (data[i] == d->terminator) {
            if (i - last == 1 || (i - last == 2 && data[i - 1] == '\r')) {
                return true;
            }
            last = i;
        }
    }
    return false;
}

static void check_text(const struct gar_csv_dialect *d, const uint8_t *data, int64_t bytes)
{
    /* An escape that never comes makes the scalar machine do it. */
    struct listing right;
    struct gar_csv_dialect scalar = *d;
    if (!d->has_escape) {
        scalar.has_escape = true;
        scalar.escape = 1;
    }
    list(&scalar, data, bytes, INT32_MAX, &right);
    for (int isa = GAR_ISA_PORTABLE; isa <= (int)GAR_ISA_AVX512; isa++) {
        (void)gar_cpu_set_isa((enum gar_isa)isa);
        const int64_t pieces[] = {INT32_MAX, 64, 1 + (int64_t)(next_random() % 150)};
        for (int64_t p = 0; p < GAR_COUNT_OF(pieces); p++) {
            struct listing got;
            list(d, data, bytes, pieces[p], &got);
            assert_int_equal(got.count, right.count);
            assert_int_equal(got.line_ends, right.line_ends);
            assert_memory_equal(got.positions, right.positions,
                                (size_t)right.count * sizeof right.positions[0]);
            assert_int_equal(gar_csv_state_is_open(got.state), gar_csv_state_is_open(right.state));
            assert_true(got.has_escapes || !right.has_escapes);
        }
        enum gar_csv_state state = GAR_CSV_RECORD_START;
        struct gar_csv_split_result split;
        gar_csv_split(d, data, 0, bytes, &state, &split);
        int64_t last = -1;
        for (int64_t i = 0; i < right.count; i++) {
            last =
                data[right.positions[i]] == d->terminator ? (int64_t)right.positions[i] + 1 : last;
        }
        assert_int_equal(split.last_end, last);
        assert_int_equal(split.record_ends, right.line_ends);
        assert_int_equal(split.line_ends, gar_csv_count_byte(data, bytes, d->terminator));
        assert_int_equal(split.may_have_blank, has_near_ends(d, data, bytes));
    }
    (void)gar_cpu_set_isa(GAR_ISA_AVX512);
}

static void random_texts(struct gar_csv_dialect d, const char *alphabet, int rounds)
{
    const uint64_t letters = strlen(alphabet);
    for (int round = 0; round < rounds; round++) {
        uint8_t text[TEXT_BYTES];
        const int64_t bytes = (int64_t)(next_random() % TEXT_BYTES);
        for (int64_t i = 0; i < bytes; i++) {
            text[i] = (uint8_t)alphabet[next_random() % letters];
        }
        struct gar_buffer *buffer = padded_text(text, bytes);
        check_text(&d, buffer->data + GAR_CSV_PAD_BYTES, bytes);
        gar_buffer_unref(buffer);
    }
}

static void test_random_quotes(void **state)
{
    (void)state;
    struct gar_csv_format format = gar_csv_format_default();
    const struct gar_csv_dialect d = gar_csv_dialect_of(&format, NULL, 0);
    random_texts(d, "\",\nab", 2000);
    random_texts(d, "\",\nabcdefghijklmnopqrstuvwxyz", 2000);
    random_texts(d, "\",,,,,\r\n", 1000);
    random_texts(d, ",", 50);
    random_texts(d, "\"", 200);
}

/* Records as writers make them: quotes only where they belong, so that the SIMD way is taken. */
static void test_regular_quotes(void **state)
{
    (void)state;
    struct gar_csv_format format = gar_csv_format_default();
    const struct gar_csv_dialect d = gar_csv_dialect_of(&format, NULL, 0);
    static const char *const pieces[] = {
        "\"a,b\"", "\"\"", "\"x\"\"y\n\"", "1234.5", "", "text of some length", "\"\"\"\""};
    for (int round = 0; round < 2000; round++) {
        uint8_t text[TEXT_BYTES];
        int64_t bytes = 0;
        while (bytes < TEXT_BYTES - 40) {
            const char *piece = pieces[next_random() % (uint64_t)GAR_COUNT_OF(pieces)];
            memcpy(text + bytes, piece, strlen(piece));
            bytes += (int64_t)strlen(piece);
            text[bytes++] = next_random() % 5 == 0 ? '\n' : ',';
        }
        struct gar_buffer *buffer = padded_text(text, bytes);
        check_text(&d, buffer->data + GAR_CSV_PAD_BYTES, bytes);
        gar_buffer_unref(buffer);
    }
}

static void test_other_dialects(void **state)
{
    (void)state;
    struct gar_csv_format format = gar_csv_format_default();
    format.double_quote = false;
    random_texts(gar_csv_dialect_of(&format, NULL, 0), "\",\nab", 1000);
    format.escape = '\\';
    random_texts(gar_csv_dialect_of(&format, NULL, 0), "\",\nab\\", 500);
    format.comment = '#';
    random_texts(gar_csv_dialect_of(&format, NULL, 0), "\",\nab\\#", 500);
    format.quote = GAR_CSV_NONE;
    format.escape = GAR_CSV_NONE;
    format.comment = GAR_CSV_NONE;
    format.delimiter = '\t';
    random_texts(gar_csv_dialect_of(&format, NULL, 0), "\"\t\nab", 500);
    random_texts(gar_csv_dialect_of(&format, (const uint8_t *)"a\rb", 3), "\t\rab", 500);
}

static void test_meaning(void **state)
{
    (void)state;
    struct gar_csv_format format = gar_csv_format_default();
    const struct gar_csv_dialect d = gar_csv_dialect_of(&format, NULL, 0);
    static const struct {
        const char *text;
        int64_t separators;
    } cases[] = {
        {"a,b\n", 2},          {"\"a,b\"\n", 1},    {"5\" pipe,b\n", 2},
        {"a\"b,c\"d\n", 2},    {"\"a\"\",\"\n", 1}, {"\"a\nb\",c\n", 2},
        {"\"a\"x,\"b\"\n", 2}, {"\"\",\"\"\n", 2},  {"\"a\" \"b\",c\n", 2},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        struct gar_buffer *buffer = padded_text(cases[i].text, (int64_t)strlen(cases[i].text));
        struct listing got;
        list(&d, buffer->data + GAR_CSV_PAD_BYTES, (int64_t)strlen(cases[i].text), INT32_MAX, &got);
        assert_int_equal(got.count, cases[i].separators);
        gar_buffer_unref(buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meaning),
        cmocka_unit_test(test_random_quotes),
        cmocka_unit_test(test_regular_quotes),
        cmocka_unit_test(test_other_dialects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
