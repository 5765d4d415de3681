/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates against row-by-row answers: every kind, type and encoding, one and many groups, split into
 * states that are combined. */
#include "kernels/aggregate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "arrow/gather.h"
#include "base/alloc.h"

enum { ROWS = 2600, GROUPS = 7 };

static uint64_t random_state = 7;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 17 ^ random_state >> 41;
}

static const struct gar_type all_types[] = {
    {.id = GAR_BOOL},
    {.id = GAR_INT8},
    {.id = GAR_INT16},
    {.id = GAR_INT32},
    {.id = GAR_INT64},
    {.id = GAR_UINT8},
    {.id = GAR_UINT16},
    {.id = GAR_UINT32},
    {.id = GAR_UINT64},
    {.id = GAR_FLOAT32},
    {.id = GAR_FLOAT64},
    {.id = GAR_DECIMAL128, .precision = 15, .scale = 2},
    {.id = GAR_DECIMAL128, .precision = 30, .scale = 3},
    {.id = GAR_STRING},
    {.id = GAR_BINARY},
    {.id = GAR_DATE},
    {.id = GAR_TIMESTAMP, .unit = GAR_NANO},
    {.id = GAR_DURATION, .unit = GAR_MILLI},
};

static struct gar_value random_value(struct gar_type type, bool with_nulls)
{
    struct gar_value v = {.type = type, .is_valid = !with_nulls || next_random() % 4 != 0};
    const int64_t r = (int64_t)(next_random() % 100);
    if (!v.is_valid) {
        return v;
    }
    if (type.id == GAR_BOOL) {
        v.boolean = r % 2 == 0;
    } else if (gar_type_is_float(type)) {
        v.f64 = r < 5 ? (double)NAN : r < 8 ? -0.0 : (double)(r - 50) / 4;
    } else if (type.id == GAR_DECIMAL128) {
        v.i128 = (gar_i128)(r - 50) * (type.precision > 18 ? (gar_i128)INT64_MAX * 1000 : 1000007);
    } else if (gar_type_is_text(type)) {
        char text[64];
        const int n = snprintf(text, sizeof text,
                               r % 3 == 0 ? "%d" : "a text of more than twelve bytes %d", (int)r);
        const int size = r == 0 ? 0 : n;
        struct gar_value t;
        assert_int_equal(gar_value_from_text(type, text, size, &t, NULL), GAR_OK);
        return t;
    } else if (gar_type_is_unsigned(type)) {
        v.u64 = (uint64_t)r;
    } else {
        v.i64 = r - 50;
    }
    return v;
}

static struct gar_column *random_column(struct gar_type type, int64_t rows, bool with_nulls)
{
    struct gar_builder builder;
    gar_builder_init(&builder, gar_memory_system(), type);
    for (int64_t i = 0; i < rows; i++) {
        struct gar_value v = random_value(type, with_nulls);
        assert_int_equal(gar_builder_append_value(&builder, &v, NULL), GAR_OK);
        gar_value_destroy(&v);
    }
    struct gar_column *column = NULL;
    assert_int_equal(gar_builder_finish(&builder, &column, NULL), GAR_OK);
    gar_builder_destroy(&builder);
    return column;
}

/* flat, flat with nulls, slice, dictionary with nulls, constant, constant null */
enum { ENCODINGS = 6 };

static struct gar_column *encoded_column(struct gar_type type, int32_t encoding)
{
    struct gar_column *out = NULL;
    if (encoding < 2) {
        return random_column(type, ROWS, encoding == 1);
    }
    if (encoding == 2) {
        struct gar_column *longer = random_column(type, ROWS + 100, true);
        assert_int_equal(gar_column_slice(longer, 37, ROWS, &out, NULL), GAR_OK);
        gar_column_unref(longer);
        return out;
    }
    if (encoding == 3) {
        struct gar_column *dictionary = random_column(type, 40, false);
        struct gar_buffer *codes = NULL;
        struct gar_buffer *validity = NULL;
        assert_int_equal(gar_buffer_new(gar_memory_system(), ROWS * 4, &codes, NULL), GAR_OK);
        assert_int_equal(
            gar_buffer_new_zeroed(gar_memory_system(), (ROWS + 7) / 8, &validity, NULL), GAR_OK);
        int64_t nulls = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            const bool is_null = next_random() % 5 == 0;
            gar_bit_put(validity->data, i, !is_null);
            ((uint32_t *)(void *)codes->data)[i] = is_null ? 0 : (uint32_t)(next_random() % 40);
            nulls += is_null;
        }
        assert_int_equal(gar_column_new_dictionary(codes, ROWS, validity, nulls, dictionary,
                                                   gar_dictionary_next_id(), &out, NULL),
                         GAR_OK);
        return out;
    }
    struct gar_column *value = NULL;
    do {
        gar_column_unref(value);
        value = random_column(type, 1, encoding == 5);
    } while (gar_column_is_null(value, 0) != (encoding == 5));
    assert_int_equal(gar_column_new_constant(value, ROWS, &out, NULL), GAR_OK);
    return out;
}

/* What a group's rows are, by looking at every row's value. */
struct facts {
    int64_t rows;
    int64_t valid;
    int64_t distinct;
    gar_i128 sum;
    double sum_f64;
    double mean;
    double squares;
    bool all;
    bool any;
    struct gar_value least;
    struct gar_value greatest;
    struct gar_value first;
    double values_f64[ROWS];
    struct gar_value seen[ROWS];
};

static void add_number(struct facts *facts, const struct gar_value *v)
{
    double f = 0;
    if (gar_type_is_float(v->type)) {
        f = v->f64;
    } else if (v->type.id == GAR_DECIMAL128) {
        facts->sum += v->i128;
        f = gar_decimal_to_double(v->i128, v->type.scale);
    } else if (v->type.id == GAR_BOOL) {
        facts->sum += v->boolean;
        f = v->boolean;
        facts->all = facts->all && v->boolean;
        facts->any = facts->any || v->boolean;
    } else if (gar_type_is_unsigned(v->type)) {
        facts->sum += v->u64;
        f = (double)v->u64;
    } else if (!gar_type_is_text(v->type)) {
        facts->sum += v->i64;
        f = (double)v->i64;
    }
    facts->sum_f64 += f;
    facts->values_f64[facts->valid] = f;
}

static void add_value(struct facts *facts, const struct gar_value *v)
{
    add_number(facts, v);
    struct gar_value *const least = &facts->least;
    struct gar_value *const greatest = &facts->greatest;
    const bool is_float = gar_type_is_float(v->type);
    const bool is_nan = is_float && isnan(v->f64);
    if (!least->is_valid || (isnan(least->f64) && is_float) ||
        (!is_nan && gar_value_compare(v, least) < 0)) {
        gar_value_destroy(least);
        assert_int_equal(gar_value_copy(v, least, NULL), GAR_OK);
    }
    if (!greatest->is_valid || (isnan(greatest->f64) && is_float) ||
        (!is_nan && gar_value_compare(v, greatest) > 0)) {
        gar_value_destroy(greatest);
        assert_int_equal(gar_value_copy(v, greatest, NULL), GAR_OK);
    }
    if (!facts->first.is_valid) {
        assert_int_equal(gar_value_copy(v, &facts->first, NULL), GAR_OK);
    }
    bool is_new = true;
    for (int64_t k = 0; k < facts->distinct && is_new; k++) {
        is_new = gar_value_compare(&facts->seen[k], v) != 0;
    }
    if (is_new) {
        assert_int_equal(gar_value_copy(v, &facts->seen[facts->distinct++], NULL), GAR_OK);
    }
    facts->valid++;
}

static void gather_facts(const struct gar_column *column, const uint32_t *groups, uint32_t group,
                         struct facts *facts)
{
    memset(facts, 0, sizeof *facts);
    facts->all = true;
    for (int64_t i = 0; i < ROWS; i++) {
        if (groups != NULL && groups[i] != group) {
            continue;
        }
        facts->rows++;
        struct gar_value v;
        assert_int_equal(gar_value_from_column(column, i, &v, NULL), GAR_OK);
        if (v.is_valid) {
            add_value(facts, &v);
        }
        gar_value_destroy(&v);
    }
    facts->mean = facts->valid > 0 ? facts->sum_f64 / (double)facts->valid : 0;
    for (int64_t i = 0; i < facts->valid; i++) {
        const double off = facts->values_f64[i] - facts->mean;
        facts->squares += off * off;
    }
}

static void drop_facts(struct facts *facts)
{
    gar_value_destroy(&facts->least);
    gar_value_destroy(&facts->greatest);
    gar_value_destroy(&facts->first);
    for (int64_t k = 0; k < facts->distinct; k++) {
        gar_value_destroy(&facts->seen[k]);
    }
}

static void expect_sum(const struct facts *facts, const struct gar_value *out)
{
    const double want = facts->sum_f64;
    assert_int_equal(out->is_valid, facts->valid > 0);
    if (facts->valid > 0 && gar_type_is_float(out->type)) {
        assert_true((isnan(out->f64) && isnan(want)) || fabs(out->f64 - want) < 1e-6);
    } else if (facts->valid > 0 && out->type.id == GAR_DECIMAL128) {
        assert_true(out->i128 == facts->sum);
    } else if (facts->valid > 0) {
        assert_true(out->i64 == (int64_t)facts->sum);
    }
}

static void expect_mean(const struct facts *facts, const struct gar_value *out)
{
    const double mean = facts->mean;
    assert_int_equal(out->is_valid, facts->valid > 0);
    if (facts->valid > 0 && out->type.id == GAR_FLOAT64) {
        assert_true((isnan(out->f64) && isnan(mean)) || fabs(out->f64 - mean) < 1e-6);
    } else if (facts->valid > 0 && out->type.id == GAR_DECIMAL128) {
        const double got = gar_decimal_to_double(out->i128, out->type.scale);
        assert_true(fabs(got - mean) <= fabs(mean) * 1e-9 + 1e-4);
    }
}

static void expect_variance(const struct facts *facts, const struct gar_aggregate_spec *spec,
                            const struct gar_value *out)
{
    const bool is_var = spec->kind == GAR_AGGREGATE_VAR;
    const double size = fabs(facts->mean);
    double want = facts->squares / ((double)facts->valid - (double)spec->ddof);
    want = is_var ? want : sqrt(want);
    const double slack = fabs(want) * 1e-9 + size * (is_var ? size : 1) * 1e-7 + 1e-9;
    assert_int_equal(out->is_valid, facts->valid > spec->ddof);
    assert_true(!out->is_valid || (isnan(out->f64) && isnan(want)) ||
                fabs(out->f64 - want) <= slack);
}

static void expect_one(const struct facts *facts, const struct gar_value *want,
                       const struct gar_value *out)
{
    assert_int_equal(out->is_valid, facts->valid > 0);
    assert_true(facts->valid == 0 || gar_value_compare(out, want) == 0);
}

static void expect_bool(const struct facts *facts, bool want, const struct gar_value *out)
{
    assert_int_equal(out->is_valid, facts->valid > 0);
    assert_true(facts->valid == 0 || out->boolean == want);
}

static void expect_group(const struct gar_aggregate_spec *spec, const struct gar_column *column,
                         const uint32_t *groups, uint32_t group, const struct gar_column *result,
                         int64_t row)
{
    static struct facts facts;
    gather_facts(column, groups, group, &facts);
    struct gar_value out;
    assert_int_equal(gar_value_from_column(result, row, &out, NULL), GAR_OK);
    switch (spec->kind) {
    case GAR_AGGREGATE_COUNT: assert_int_equal(out.i64, facts.valid); break;
    case GAR_AGGREGATE_COUNT_NULL: assert_int_equal(out.i64, facts.rows - facts.valid); break;
    case GAR_AGGREGATE_COUNT_ALL: assert_int_equal(out.i64, facts.rows); break;
    case GAR_AGGREGATE_COUNT_DISTINCT: assert_int_equal(out.i64, facts.distinct); break;
    case GAR_AGGREGATE_SUM: expect_sum(&facts, &out); break;
    case GAR_AGGREGATE_MEAN: expect_mean(&facts, &out); break;
    case GAR_AGGREGATE_MIN: expect_one(&facts, &facts.least, &out); break;
    case GAR_AGGREGATE_MAX: expect_one(&facts, &facts.greatest, &out); break;
    case GAR_AGGREGATE_ANY_VALUE: expect_one(&facts, &facts.first, &out); break;
    case GAR_AGGREGATE_VAR:
    case GAR_AGGREGATE_STDDEV: expect_variance(&facts, spec, &out); break;
    case GAR_AGGREGATE_BOOL_AND: expect_bool(&facts, facts.all, &out); break;
    case GAR_AGGREGATE_BOOL_OR: expect_bool(&facts, facts.any, &out); break;
    case GAR_AGGREGATE_PRODUCT: break;
    default: fail_msg("no expectation"); break;
    }
    gar_value_destroy(&out);
    drop_facts(&facts);
}

static struct gar_type result_type(enum gar_aggregate_kind kind, struct gar_type from)
{
    switch (kind) {
    case GAR_AGGREGATE_COUNT:
    case GAR_AGGREGATE_COUNT_NULL:
    case GAR_AGGREGATE_COUNT_ALL:
    case GAR_AGGREGATE_COUNT_DISTINCT: return gar_type_of(GAR_INT64);
    case GAR_AGGREGATE_SUM:
    case GAR_AGGREGATE_PRODUCT:
        if (gar_type_is_float(from)) {
            return gar_type_of(GAR_FLOAT64);
        }
        if (from.id == GAR_DECIMAL128) {
            return gar_type_decimal(38, from.scale);
        }
        return from.id == GAR_DURATION
                   ? from
                   : gar_type_of(gar_type_is_unsigned(from) ? GAR_UINT64 : GAR_INT64);
    case GAR_AGGREGATE_MEAN:
        if (from.id == GAR_DECIMAL128) {
            return gar_type_decimal(38, from.scale + 4);
        }
        return from.id == GAR_DURATION ? from : gar_type_of(GAR_FLOAT64);
    case GAR_AGGREGATE_MIN:
    case GAR_AGGREGATE_MAX:
    case GAR_AGGREGATE_ANY_VALUE: return from;
    case GAR_AGGREGATE_VAR:
    case GAR_AGGREGATE_STDDEV: return gar_type_of(GAR_FLOAT64);
    case GAR_AGGREGATE_BOOL_AND:
    case GAR_AGGREGATE_BOOL_OR: return gar_type_of(GAR_BOOL);
    case GAR_AGGREGATE_APPROX_COUNT_DISTINCT: return gar_type_of(GAR_INT64);
    case GAR_AGGREGATE_SKEW:
    case GAR_AGGREGATE_KURTOSIS:
    case GAR_AGGREGATE_CORR:
    case GAR_AGGREGATE_COVAR_POP:
    case GAR_AGGREGATE_COVAR_SAMP:
    case GAR_AGGREGATE_APPROX_PERCENTILE:
    case GAR_AGGREGATE_PERCENTILE: return gar_type_of(GAR_FLOAT64);
    default: return from;
    }
}

/* Rows [0, cut) go into one state, the rest into another whose groups are numbered backwards; then
 * they are combined. */
static void check_call(const struct gar_aggregate_spec *spec, struct gar_column *column,
                       const uint32_t *groups)
{
    const int64_t group_count = groups != NULL ? GROUPS : 1;
    struct gar_aggregate *states[2] = {NULL, NULL};
    const int64_t cut = 1100;
    int64_t rows[GROUPS] = {0};
    uint32_t backwards[ROWS];
    uint32_t map[GROUPS];
    for (int64_t i = 0; groups != NULL && i < ROWS; i++) {
        rows[groups[i]]++;
        backwards[i] = GROUPS - 1 - groups[i];
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        map[g] = groups != NULL ? GROUPS - 1 - g : 0;
    }
    rows[0] = groups != NULL ? rows[0] : ROWS;
    for (int64_t s = 0; s < 2; s++) {
        assert_int_equal(gar_aggregate_new(spec, gar_memory_system(), &states[s], NULL), GAR_OK);
        assert_int_equal(gar_aggregate_resize(states[s], group_count, NULL), GAR_OK);
    }
    struct gar_column *head = NULL;
    struct gar_column *tail = NULL;
    assert_int_equal(gar_column_slice(column, 0, cut, &head, NULL), GAR_OK);
    assert_int_equal(gar_column_slice(column, cut, ROWS - cut, &tail, NULL), GAR_OK);
    assert_int_equal(gar_aggregate_update(states[0], groups, head, cut, NULL), GAR_OK);
    assert_int_equal(gar_aggregate_update(states[1], groups != NULL ? backwards + cut : NULL, tail,
                                          ROWS - cut, NULL),
                     GAR_OK);
    assert_int_equal(gar_aggregate_combine(states[0], states[1], NULL, map, group_count, NULL),
                     GAR_OK);
    struct gar_column *result = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = gar_aggregate_finish(states[0], spec, 0, group_count, rows,
                                                        gar_memory_system(), &result, &err);
    if (status < 0) {
        fail_msg("%s", err.message);
    }
    for (uint32_t g = 0; g < group_count; g++) {
        expect_group(spec, column, groups, g, result, g);
    }
    gar_column_unref(result);
    gar_column_unref(head);
    gar_column_unref(tail);
    gar_aggregate_free(states[0]);
    gar_aggregate_free(states[1]);
}

static void test_every_kind_type_and_encoding(void **context)
{
    (void)context;
    uint32_t groups[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        groups[i] = (uint32_t)(next_random() % (GROUPS - 1)); /* the last group stays empty */
    }
    for (int64_t t = 0; t < GAR_COUNT_OF(all_types); t++) {
        for (int32_t e = 0; e < ENCODINGS; e++) {
            struct gar_column *column = encoded_column(all_types[t], e);
            for (int32_t kind = GAR_AGGREGATE_COUNT; kind <= GAR_AGGREGATE_BOOL_OR; kind++) {
                const struct gar_aggregate_spec spec = {
                    .kind = (enum gar_aggregate_kind)kind,
                    .argument = all_types[t],
                    .result = result_type((enum gar_aggregate_kind)kind, all_types[t]),
                    .ddof = 1};
                struct gar_aggregate *probe = NULL;
                if (kind == GAR_AGGREGATE_PRODUCT ||
                    gar_aggregate_new(&spec, gar_memory_system(), &probe, NULL) != GAR_OK) {
                    continue;
                }
                gar_aggregate_free(probe);
                check_call(&spec, column, NULL);
                check_call(&spec, column, groups);
            }
            gar_column_unref(column);
        }
    }
}

static struct gar_column *i64_column(const int64_t *values, int64_t count);

/* ---- kinds whose values are checked in Python: any split gives what the whole gives ---- */

static struct gar_column *finish_parts(const struct gar_aggregate_spec *spec,
                                       const struct gar_column *column,
                                       const struct gar_column *second, const uint32_t *groups,
                                       int64_t parts, const int64_t *rows, enum gar_status *status)
{
    struct gar_aggregate *states[4] = {NULL};
    struct gar_column *result = NULL;
    uint32_t map[GROUPS];
    *status = GAR_OK;
    for (int64_t p = 0; p < parts && *status >= 0; p++) {
        const int64_t first = ROWS * p / parts;
        const int64_t count = ROWS * (p + 1) / parts - first;
        uint32_t numbers[ROWS];
        struct gar_column *a = NULL;
        struct gar_column *b = NULL;
        for (int64_t i = 0; i < count; i++) {
            numbers[i] = (groups[first + i] + (uint32_t)p) % GROUPS;
        }
        *status = gar_aggregate_new(spec, gar_memory_system(), &states[p], NULL);
        *status = *status < 0 ? *status : gar_aggregate_resize(states[p], GROUPS, NULL);
        *status = *status < 0 ? *status : gar_column_slice(column, first, count, &a, NULL);
        *status = *status < 0 ? *status : gar_column_slice(second, first, count, &b, NULL);
        *status = *status < 0 ? *status
                              : gar_aggregate_update_pair(states[p], numbers, a,
                                                          spec->has_second ? b : NULL,
                                                          (uint64_t)first, count, NULL);
        gar_column_unref(a);
        gar_column_unref(b);
    }
    for (int64_t p = parts - 1; p > 0 && *status >= 0; p--) { /* the last first */
        for (uint32_t g = 0; g < GROUPS; g++) {
            map[g] = (g + GROUPS - (uint32_t)p) % GROUPS;
        }
        *status = gar_aggregate_combine(states[0], states[p], NULL, map, GROUPS, NULL);
    }
    *status = *status < 0 ? *status : gar_aggregate_seal(states[0], NULL);
    *status = *status < 0 ? *status
                          : gar_aggregate_finish(states[0], spec, 0, GROUPS, rows,
                                                 gar_memory_system(), &result, NULL);
    for (int64_t p = 0; p < parts; p++) {
        gar_aggregate_free(states[p]);
    }
    return result;
}

static void expect_same(const struct gar_aggregate_spec *spec, const struct gar_column *a,
                        const struct gar_column *b)
{
    for (int64_t g = 0; g < GROUPS; g++) {
        struct gar_value x = {0};
        struct gar_value y = {0};
        assert_int_equal(gar_value_from_column(a, g, &x, NULL), GAR_OK);
        assert_int_equal(gar_value_from_column(b, g, &y, NULL), GAR_OK);
        bool is_same = gar_value_equal(&x, &y);
        if (x.is_valid && y.is_valid && gar_type_is_float(x.type)) {
            is_same = (isnan(x.f64) && isnan(y.f64)) ||
                      fabs(x.f64 - y.f64) <= 1e-9 * fmax(1, fabs(x.f64));
        }
        if (!is_same) {
            fail_msg("%s: group %d differs", gar_aggregate_kind_name(spec->kind), (int)g);
        }
        gar_value_destroy(&x);
        gar_value_destroy(&y);
    }
}

static void check_splits(const struct gar_aggregate_spec *spec, const struct gar_column *column,
                         const struct gar_column *second, const uint32_t *groups,
                         const int64_t *rows)
{
    enum gar_status status;
    struct gar_column *whole = finish_parts(spec, column, second, groups, 1, rows, &status);
    assert_int_equal(status, GAR_OK);
    for (int64_t parts = 2; parts <= 4; parts++) {
        struct gar_column *split = finish_parts(spec, column, second, groups, parts, rows, &status);
        assert_int_equal(status, GAR_OK);
        expect_same(spec, whole, split);
        gar_column_unref(split);
    }
    gar_column_unref(whole);
}

/* False when the kind does not take the type. */
static bool make_spec(int32_t kind, struct gar_type type, struct gar_aggregate_spec *out)
{
    const bool has_second = kind == GAR_AGGREGATE_CORR || kind == GAR_AGGREGATE_COVAR_POP ||
                            kind == GAR_AGGREGATE_COVAR_SAMP || kind == GAR_AGGREGATE_ARG_MIN ||
                            kind == GAR_AGGREGATE_ARG_MAX;
    *out = (struct gar_aggregate_spec){.kind = (enum gar_aggregate_kind)kind,
                                       .argument = type,
                                       .result = result_type((enum gar_aggregate_kind)kind, type),
                                       .has_second = has_second,
                                       .second = gar_type_of(has_second ? GAR_FLOAT64 : GAR_NULL),
                                       .fraction = 0.3,
                                       .delimiter = ", ",
                                       .delimiter_size = 2,
                                       .ddof = 1};
    struct gar_aggregate *probe = NULL;
    if (gar_aggregate_new(out, gar_memory_system(), &probe, NULL) != GAR_OK) {
        return false;
    }
    gar_aggregate_free(probe);
    return true;
}

static void test_splits(void **context)
{
    (void)context;
    uint32_t groups[ROWS];
    int64_t rows[GROUPS] = {0};
    for (int64_t i = 0; i < ROWS; i++) {
        groups[i] = (uint32_t)(next_random() % (GROUPS - 1));
        rows[groups[i]]++;
    }
    struct gar_column *second = random_column(gar_type_of(GAR_FLOAT64), ROWS, true);
    for (int64_t t = 0; t < GAR_COUNT_OF(all_types); t++) {
        for (int32_t e = 0; e < ENCODINGS; e++) {
            struct gar_column *column = encoded_column(all_types[t], e);
            for (int32_t kind = GAR_AGGREGATE_SKEW; kind < GAR_AGGREGATE_KINDS; kind++) {
                struct gar_aggregate_spec spec;
                if (make_spec(kind, all_types[t], &spec)) {
                    check_splits(&spec, column, second, groups, rows);
                }
            }
            gar_column_unref(column);
        }
    }
    gar_column_unref(second);
}

static void test_splits_without_memory(void **context)
{
    (void)context;
    uint32_t groups[ROWS];
    int64_t rows[GROUPS] = {0};
    for (int64_t i = 0; i < ROWS; i++) {
        groups[i] = (uint32_t)(next_random() % GROUPS);
        rows[groups[i]]++;
    }
    struct gar_column *second = random_column(gar_type_of(GAR_FLOAT64), ROWS, true);
    for (int32_t kind = GAR_AGGREGATE_SKEW; kind < GAR_AGGREGATE_KINDS; kind++) {
        const struct gar_type type = gar_type_of(
            kind == GAR_AGGREGATE_MODE || kind >= GAR_AGGREGATE_STRING_AGG ? GAR_STRING
                                                                           : GAR_FLOAT64);
        struct gar_aggregate_spec spec;
        assert_true(make_spec(kind, type, &spec));
        struct gar_column *column = random_column(type, ROWS, true);
        const int64_t before = gar_memory_system_live_bytes();
        const int64_t blocks = gar_alloc_live_blocks();
        bool is_done = false;
        for (int64_t n = 1; !is_done; n++) {
            enum gar_status status;
            (void)gar_alloc_fail_at(n, false);
            struct gar_column *result =
                finish_parts(&spec, column, second, groups, 2, rows, &status);
            is_done = gar_alloc_fail_at(0, false) < n;
            assert_int_equal(status, is_done ? GAR_OK : GAR_ERR_NOMEM);
            gar_column_unref(result);
            assert_int_equal(gar_memory_system_live_bytes(), before);
            assert_int_equal(gar_alloc_live_blocks(), blocks);
        }
        gar_column_unref(column);
    }
    gar_column_unref(second);
}

/* Candidates of first and arg_max are cut to one a group; the answer stays. */
static void test_cut(void **context)
{
    (void)context;
    enum { MANY = 40000, TIMES = 5 };
    int64_t values[MANY];
    const int64_t rows[1] = {MANY * TIMES};
    const struct gar_type type = gar_type_of(GAR_INT64);
    for (int32_t k = 0; k < 2; k++) {
        const struct gar_aggregate_spec spec = {
            .kind = k == 0 ? GAR_AGGREGATE_LAST : GAR_AGGREGATE_ARG_MAX,
            .argument = type,
            .result = type,
            .has_second = k == 1,
            .second = gar_type_of(k == 1 ? GAR_INT64 : GAR_NULL)};
        struct gar_aggregate *state = NULL;
        const int64_t before = gar_memory_system_live_bytes();
        assert_int_equal(gar_aggregate_new(&spec, gar_memory_system(), &state, NULL), GAR_OK);
        assert_int_equal(gar_aggregate_resize(state, 1, NULL), GAR_OK);
        for (int64_t step = 0; step < TIMES; step++) {
            for (int64_t i = 0; i < MANY; i++) {
                values[i] = step * MANY + i;
            }
            struct gar_column *column = i64_column(values, MANY);
            assert_int_equal(gar_aggregate_update_pair(state, NULL, column, k == 1 ? column : NULL,
                                                       (uint64_t)(step * MANY), MANY, NULL),
                             GAR_OK);
            gar_column_unref(column);
        }
        assert_true(gar_memory_system_live_bytes() - before < (int64_t)MANY * 3 * 32);
        assert_int_equal(gar_aggregate_seal(state, NULL), GAR_OK);
        struct gar_column *result = NULL;
        struct gar_value v = {0};
        assert_int_equal(
            gar_aggregate_finish(state, &spec, 0, 1, rows, gar_memory_system(), &result, NULL),
            GAR_OK);
        assert_int_equal(gar_value_from_column(result, 0, &v, NULL), GAR_OK);
        assert_int_equal(v.i64, MANY * TIMES - 1);
        gar_column_unref(result);
        gar_aggregate_free(state);
    }
}

static struct gar_column *i64_column(const int64_t *values, int64_t count)
{
    struct gar_column *column = NULL;
    assert_int_equal(
        gar_column_new(gar_memory_system(), gar_type_of(GAR_INT64), count, false, &column, NULL),
        GAR_OK);
    memcpy(gar_column_values_mut(column), values, (size_t)count * sizeof *values);
    column->null_count = 0;
    return column;
}

static enum gar_status run_i64(enum gar_aggregate_kind kind, enum gar_type_id result,
                               const int64_t *values, int64_t count, const uint32_t *groups,
                               struct gar_value *out, struct gar_error *err)
{
    const struct gar_aggregate_spec spec = {
        .kind = kind, .argument = gar_type_of(GAR_INT64), .result = gar_type_of(result)};
    struct gar_aggregate *state = NULL;
    struct gar_column *result_column = NULL;
    struct gar_column *column = i64_column(values, count);
    assert_int_equal(gar_aggregate_new(&spec, gar_memory_system(), &state, NULL), GAR_OK);
    assert_int_equal(gar_aggregate_resize(state, 1, NULL), GAR_OK);
    enum gar_status status = gar_aggregate_update(state, groups, column, count, err);
    if (status == GAR_OK) {
        status = gar_aggregate_finish(state, &spec, 0, 1, &count, gar_memory_system(),
                                      &result_column, err);
    }
    if (status == GAR_OK) {
        assert_int_equal(gar_value_from_column(result_column, 0, out, NULL), GAR_OK);
    }
    gar_column_unref(result_column);
    gar_column_unref(column);
    gar_aggregate_free(state);
    return status;
}

/* Only the final sum counts: on the way it may leave 64 bits. */
static void test_sums_beyond_64_bits(void **context)
{
    (void)context;
    const int64_t up_and_down[4] = {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN + 3};
    const int64_t too_much[2] = {INT64_MAX, 1};
    const uint32_t zero[4] = {0, 0, 0, 0};
    for (int32_t grouped = 0; grouped < 2; grouped++) {
        const uint32_t *groups = grouped ? zero : NULL;
        struct gar_value v;
        struct gar_error err = GAR_ERROR_INIT;
        assert_int_equal(run_i64(GAR_AGGREGATE_SUM, GAR_INT64, up_and_down, 4, groups, &v, &err),
                         GAR_OK);
        assert_int_equal(v.i64, 1);
        assert_int_equal(run_i64(GAR_AGGREGATE_SUM, GAR_INT64, too_much, 2, groups, &v, &err),
                         GAR_ERR_OVERFLOW);
        assert_non_null(strstr(err.message, "sum is 9223372036854775808"));
        assert_non_null(strstr(err.message, "int64"));
        assert_int_equal(run_i64(GAR_AGGREGATE_MEAN, GAR_FLOAT64, too_much, 2, groups, &v, &err),
                         GAR_OK);
        assert_true(v.f64 == 4611686018427387904.0);
        assert_int_equal(run_i64(GAR_AGGREGATE_PRODUCT, GAR_INT64, too_much, 2, groups, &v, &err),
                         GAR_OK);
        assert_int_equal(v.i64, INT64_MAX);
        assert_int_equal(
            run_i64(GAR_AGGREGATE_PRODUCT, GAR_INT64, up_and_down, 4, groups, &v, &err),
            GAR_ERR_OVERFLOW);
    }
}

static void test_allocation_failures(void **context)
{
    (void)context;
    struct gar_column *column = random_column(gar_type_of(GAR_STRING), ROWS, true);
    uint32_t groups[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        groups[i] = (uint32_t)(next_random() % GROUPS);
    }
    const int64_t before = gar_memory_system_live_bytes();
    const int64_t blocks = gar_alloc_live_blocks();
    for (int32_t k = 0; k < 2; k++) {
        const struct gar_aggregate_spec spec = {
            .kind = k == 0 ? GAR_AGGREGATE_MIN : GAR_AGGREGATE_COUNT_DISTINCT,
            .argument = gar_type_of(GAR_STRING),
            .result = gar_type_of(k == 0 ? GAR_STRING : GAR_INT64)};
        bool is_done = false;
        for (int64_t n = 1; !is_done; n++) {
            struct gar_aggregate *state = NULL;
            struct gar_column *result = NULL;
            const int64_t rows[GROUPS] = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS};
            (void)gar_alloc_fail_at(n, false);
            enum gar_status status = gar_aggregate_new(&spec, gar_memory_system(), &state, NULL);
            status = status < 0 ? status : gar_aggregate_resize(state, GROUPS, NULL);
            status = status < 0 ? status : gar_aggregate_update(state, groups, column, ROWS, NULL);
            status = status < 0 ? status
                                : gar_aggregate_finish(state, &spec, 0, GROUPS, rows,
                                                       gar_memory_system(), &result, NULL);
            is_done = gar_alloc_fail_at(0, false) < n;
            assert_int_equal(status, is_done ? GAR_OK : GAR_ERR_NOMEM);
            gar_column_unref(result);
            gar_aggregate_free(state);
            assert_int_equal(gar_memory_system_live_bytes(), before);
            assert_int_equal(gar_alloc_live_blocks(), blocks);
        }
    }
    gar_column_unref(column);
}

/* Texts that are alike at the start: short, empty, with zeros and high bytes, long ones. */
static void test_least_and_greatest_texts(void **context)
{
    (void)context;
    enum { TEXTS = 400, TEXT_BYTES = 16 };
    static const uint8_t letters[4] = {0, 'a', 0x7f, 0xff};
    for (int32_t round = 0; round < 60; round++) {
        static uint8_t texts[TEXTS][TEXT_BYTES];
        int64_t sizes[TEXTS];
        struct gar_builder builder;
        struct gar_column *column = NULL;
        int64_t best = 0;
        const bool is_min = round % 2 == 0;
        gar_builder_init(&builder, gar_memory_system(), gar_type_of(GAR_BINARY));
        for (int64_t i = 0; i < TEXTS; i++) {
            sizes[i] = (int64_t)(next_random() % (round % 3 == 0 ? TEXT_BYTES + 1 : 6));
            for (int64_t b = 0; b < sizes[i]; b++) {
                texts[i][b] = b < round % 5 ? 'x' : letters[next_random() % 4];
            }
            assert_int_equal(gar_builder_append_bytes(&builder, texts[i], sizes[i], NULL), GAR_OK);
            int32_t order =
                memcmp(texts[i], texts[best], (size_t)gar_min_i64(sizes[i], sizes[best]));
            order = order != 0 ? order : (sizes[i] > sizes[best]) - (sizes[i] < sizes[best]);
            best = (is_min ? order < 0 : order > 0) ? i : best;
        }
        assert_int_equal(gar_builder_finish(&builder, &column, NULL), GAR_OK);
        gar_builder_destroy(&builder);
        const struct gar_aggregate_spec spec = {.kind =
                                                    is_min ? GAR_AGGREGATE_MIN : GAR_AGGREGATE_MAX,
                                                .argument = gar_type_of(GAR_BINARY),
                                                .result = gar_type_of(GAR_BINARY)};
        const int64_t rows = TEXTS;
        struct gar_aggregate *state = NULL;
        struct gar_column *result = NULL;
        assert_int_equal(gar_aggregate_new(&spec, gar_memory_system(), &state, NULL), GAR_OK);
        assert_int_equal(gar_aggregate_resize(state, 1, NULL), GAR_OK);
        assert_int_equal(gar_aggregate_update(state, NULL, column, TEXTS, NULL), GAR_OK);
        assert_int_equal(
            gar_aggregate_finish(state, &spec, 0, 1, &rows, gar_memory_system(), &result, NULL),
            GAR_OK);
        int64_t size = 0;
        const uint8_t *bytes = gar_column_bytes_at(result, 0, &size);
        assert_int_equal(size, sizes[best]);
        assert_memory_equal(bytes, texts[best], (size_t)size);
        gar_column_unref(result);
        gar_column_unref(column);
        gar_aggregate_free(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_type_and_encoding),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_splits_without_memory),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_sums_beyond_64_bits),
        cmocka_unit_test(test_least_and_greatest_texts),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
