/* SPDX-License-Identifier: Apache-2.0 */
/* Batches through a region: round trips, layouts of other libraries, and regions that a hostile worker wrote; and the book of
 * free regions, leases, cutting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "actors/arena.h"
#include "actors/cutter.h"
#include "actors/setup.h"
#include "arrow/abi.h"
#include "base/alloc.h"

enum { ROWS = 300 };

static struct gar_schema *schema;
static struct gar_batch *batch;
static struct ArrowSchema abi;
static struct gar_wire_layout *layout;

static uint64_t seed = 99;

static uint64_t roll(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* Row i: double, bool, text; every third text and every fifth double is null. */
static int open_all(void **state)
{
    (void)state;
    static char names[3][2] = {"d", "b", "s"};
    const struct gar_field fields[] = {{.name = names[0], .type = gar_type_of(GAR_FLOAT64)},
                                       {.name = names[1], .type = gar_type_of(GAR_BOOL)},
                                       {.name = names[2], .type = gar_type_of(GAR_STRING)}};
    struct gar_memory *memory = gar_memory_system();
    struct gar_column *columns[3];
    struct gar_buffer *bytes = NULL;
    int32_t index = 0;
    int32_t at = 0;
    if (gar_schema_new(fields, 3, false, &schema, NULL) < 0 ||
        gar_column_new(memory, fields[0].type, ROWS, true, &columns[0], NULL) < 0 ||
        gar_column_new(memory, fields[1].type, ROWS, false, &columns[1], NULL) < 0 ||
        gar_column_new(memory, fields[2].type, ROWS, true, &columns[2], NULL) < 0 ||
        gar_buffer_new(memory, ROWS * 32, &bytes, NULL) < 0) {
        return 1;
    }
    double *doubles = gar_column_values_mut(columns[0]);
    uint8_t *bits = gar_column_values_mut(columns[1]);
    struct gar_string_view *views = gar_column_values_mut(columns[2]);
    for (int32_t i = 0; i < ROWS; i++) {
        doubles[i] = i;
        if (i % 5 == 0) {
            gar_bit_clear(gar_column_validity_mut(columns[0]), i);
        }
        if (i % 2 == 0) {
            gar_bit_set(bits, i);
        }
        if (i % 3 == 0) {
            gar_bit_clear(gar_column_validity_mut(columns[2]), i);
            continue;
        }
        const int32_t size = i % 31;
        memset(bytes->data + at, 'a' + i % 26, (size_t)size);
        views[i] = gar_view_make(bytes->data + at, size, 0, at);
        at += size;
    }
    bytes->size = at;
    for (int k = 0; k < 3; k++) {
        columns[k]->null_count = -1;
    }
    return gar_column_add_data(columns[2], bytes, &index, NULL) < 0 ||
           gar_batch_new(schema, columns, ROWS, &batch, NULL) < 0 ||
           gar_schema_export(schema, GAR_TEXT_LARGE_OFFSETS, &abi, NULL) < 0 ||
           gar_wire_layout_new(&abi, &layout, NULL) < 0;
}

static int close_all(void **state)
{
    (void)state;
    gar_free(layout);
    abi.release(&abi);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
    return 0;
}

/* Rows [offset, offset + rows) as a region. The caller frees *out (aligned by hand: *out_region). */
static int64_t make_region(int64_t offset, int64_t rows, enum gar_text_layout text, void **out,
                           uint8_t **out_region)
{
    struct gar_batch *slice = NULL;
    struct ArrowArray array;
    struct ArrowSchema from_abi;
    struct gar_wire_layout *from = NULL;
    struct gar_wire_span spans[8];
    int64_t bytes = 0;
    assert_int_equal(gar_batch_slice(batch, offset, rows, &slice, NULL), GAR_OK);
    assert_int_equal(gar_batch_export(slice, text, gar_memory_system(), &array, NULL), GAR_OK);
    assert_int_equal(gar_schema_export(schema, text, &from_abi, NULL), GAR_OK);
    assert_int_equal(gar_wire_layout_match(layout, &from_abi, &from, NULL), GAR_OK);
    assert_int_equal(gar_wire_measure(layout, from, &array, spans, &bytes, NULL), GAR_OK);
    *out = malloc((size_t)bytes + 64);
    const size_t over = (size_t)((uintptr_t)*out % 64);
    *out_region = (uint8_t *)*out + (64 - over) % 64;
    gar_wire_write(layout, from, spans, *out_region);
    gar_free(from);
    from_abi.release(&from_abi);
    array.release(&array);
    gar_batch_unref(slice);
    return bytes;
}

static int32_t releases;

static void count_release(void *context)
{
    (void)context;
    releases++;
}

static enum gar_status read_region(const uint8_t *region, int64_t bytes, int64_t rows,
                                   struct gar_batch **out, struct gar_error *err)
{
    struct ArrowArray array;
    const struct gar_wire_source source = {.region = region,
                                           .bytes = bytes,
                                           .rows = rows,
                                           .memory = gar_memory_system(),
                                           .on_release = count_release};
    GAR_TRY(gar_wire_read(layout, &source, &array, err));
    return gar_batch_import(&abi, &array, schema, gar_memory_system(), out, err);
}

static void check_rows(const struct gar_batch *got, int64_t offset)
{
    for (int64_t k = 0; k < got->rows; k++) {
        const int64_t i = offset + k;
        assert_int_equal(gar_column_is_null(got->columns[0], k), i % 5 == 0);
        assert_int_equal(gar_column_is_null(got->columns[2], k), i % 3 == 0);
        if (i % 5 != 0) {
            assert_true(((const double *)got->columns[0]->values)[k] == (double)i);
        }
        assert_int_equal(gar_bit_get(got->columns[1]->values, got->columns[1]->values_offset + k),
                         i % 2 == 0);
        if (i % 3 != 0) {
            int64_t size = 0;
            const uint8_t *text = gar_column_bytes_at(got->columns[2], k, &size);
            assert_int_equal(size, i % 31);
            assert_true(size == 0 || text[size - 1] == 'a' + i % 26);
        }
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset < 20; offset++) {
        const int64_t rows = offset == 19 ? 0 : ROWS - 3 * offset;
        for (int text = 0; text < 2; text++) {
            void *block = NULL;
            uint8_t *region = NULL;
            struct gar_batch *got = NULL;
            releases = 0;
            const int64_t bytes =
                make_region(offset, rows, (enum gar_text_layout)text, &block, &region);
            assert_int_equal(read_region(region, bytes, rows, &got, NULL), GAR_OK);
            assert_int_equal(got->rows, rows);
            check_rows(got, offset);
            assert_int_equal(releases, rows == 0 ? 1 : 0);
            gar_batch_unref(got);
            assert_int_equal(releases, 1);
            free(block);
        }
    }
}

/* Change bytes at random: refused, or a sound batch; never a look outside (the sanitizer's part). */
static void test_hostile_regions(void **state)
{
    (void)state;
    void *block = NULL;
    uint8_t *region = NULL;
    int32_t accepted = 0;
    const int64_t bytes = make_region(0, ROWS, GAR_TEXT_VIEWS, &block, &region);
    for (int32_t i = 0; i < 20000; i++) {
        /* A copy of exactly the size, so that every step beyond is seen. */
        const int64_t size = i % 4 == 0 ? (int64_t)(roll() % (uint64_t)(bytes + 1)) : bytes;
        uint8_t *copy = aligned_alloc(64, (size_t)((size + 63) / 64 * 64 + 64));
        memcpy(copy, region, (size_t)size);
        const int64_t head = 64 * (1 + layout->count);
        for (uint64_t k = roll() % 4 + 1; k > 0 && size > 0; k--) {
            const uint64_t span = (uint64_t)(roll() % 2 == 0 ? gar_min_i64(head, size) : size);
            const uint64_t at = roll() % span;
            copy[at] = (uint8_t)(roll() % 3 == 0 ? 0xff : roll());
        }
        struct gar_batch *got = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        if (read_region(copy, size, ROWS, &got, &err) >= 0) {
            accepted++;
            for (int64_t k = 0; k < 3; k++) {
                assert_int_equal(gar_column_validate(got->columns[k], &err), GAR_OK);
            }
            gar_batch_unref(got);
        } else {
            assert_true(err.message[0] != 0);
        }
        free(copy);
    }
    assert_true(accepted > 0 && accepted < 20000);
    free(block);
}

/* list<utf8> with 32-bit offsets and an offset of its own, into 64-bit offsets. */
static void test_nested_from_others(void **state)
{
    (void)state;
    struct ArrowSchema item = {.format = "u", .name = "item"};
    struct ArrowSchema *items[1] = {&item};
    struct ArrowSchema list = {.format = "+l", .name = "x", .n_children = 1, .children = items};
    struct ArrowSchema *lists[1] = {&list};
    struct ArrowSchema root = {.format = "+s", .n_children = 1, .children = lists};
    struct ArrowSchema wide_item = {.format = "U", .name = "item"};
    struct ArrowSchema *wide_items[1] = {&wide_item};
    struct ArrowSchema wide_list = {
        .format = "+L", .name = "x", .n_children = 1, .children = wide_items};
    struct ArrowSchema *wide_lists[1] = {&wide_list};
    struct ArrowSchema wide = {.format = "+s", .n_children = 1, .children = wide_lists};
    struct gar_wire_layout *to = NULL;
    struct gar_wire_layout *from = NULL;
    assert_int_equal(gar_wire_layout_new(&wide, &to, NULL), GAR_OK);
    assert_int_equal(gar_wire_layout_match(to, &root, &from, NULL), GAR_OK);
    const int32_t text_offsets[] = {0, 1, 3, 6, 10};
    const int32_t list_offsets[] = {0, 1, 3, 4};
    const void *text_buffers[] = {NULL, text_offsets, "abbcccdddd"};
    const void *list_buffers[] = {NULL, list_offsets};
    const void *root_buffers[] = {NULL};
    struct ArrowArray text = {.length = 4, .n_buffers = 3, .buffers = text_buffers};
    struct ArrowArray *texts[1] = {&text};
    struct ArrowArray rows = {.length = 2,
                              .offset = 1,
                              .n_buffers = 2,
                              .buffers = list_buffers,
                              .n_children = 1,
                              .children = texts};
    struct ArrowArray *row_list[1] = {&rows};
    struct ArrowArray array = {.length = 2,
                               .n_buffers = 1,
                               .buffers = root_buffers,
                               .n_children = 1,
                               .children = row_list};
    struct gar_wire_span spans[3];
    int64_t bytes = 0;
    assert_int_equal(gar_wire_measure(to, from, &array, spans, &bytes, NULL), GAR_OK);
    uint8_t *region = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    gar_wire_write(to, from, spans, region);
    struct ArrowArray got;
    const struct gar_wire_source source = {.region = region,
                                           .bytes = bytes,
                                           .rows = 2,
                                           .memory = gar_memory_system(),
                                           .on_release = count_release};
    releases = 0;
    assert_int_equal(gar_wire_read(to, &source, &got, NULL), GAR_OK);
    const int64_t *offsets = got.children[0]->buffers[1];
    assert_int_equal(offsets[2], 3);
    const struct ArrowArray *inner = got.children[0]->children[0];
    assert_int_equal(inner->length, 3);
    assert_memory_equal(inner->buffers[2], "bbcccdddd", 9);
    assert_int_equal(((const int64_t *)inner->buffers[1])[1], 2);
    /* A child that was moved out keeps the rest alive. */
    struct ArrowArray moved = *got.children[0];
    got.children[0]->release = NULL;
    got.release(&got);
    assert_int_equal(releases, 0);
    moved.release(&moved);
    assert_int_equal(releases, 1);
    free(region);
    gar_free(to);
    gar_free(from);
}

static void test_what_cannot_pass(void **state)
{
    (void)state;
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_wire_layout *made = NULL;
    struct ArrowSchema field = {.format = "+ud:1,2", .name = "odd"};
    struct ArrowSchema *fields[1] = {&field};
    struct ArrowSchema root = {.format = "+s", .n_children = 1, .children = fields};
    assert_int_equal(gar_wire_layout_new(&root, &made, &err), GAR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "column 'odd'"));
    field.format = "g";
    assert_int_equal(gar_wire_layout_match(layout, &root, &made, &err), GAR_ERR_TYPE);
    assert_non_null(strstr(err.message, "returned 1 columns, expected 3"));
}

static void test_setup_block(void **state)
{
    (void)state;
    struct gar_strbuf block = {0};
    struct gar_setup setup;
    const struct gar_setup_options options = {.count = 4,
                                              .name = "embed",
                                              .code = "pickle",
                                              .code_bytes = 6,
                                              .input = &abi,
                                              .output = &abi};
    gar_setup_write(&options, &block);
    gar_setup_set_index(block.data, 3);
    assert_int_equal(gar_setup_read(block.data, block.size, &setup, NULL), GAR_OK);
    assert_int_equal(setup.index, 3);
    assert_string_equal(setup.name, "embed");
    assert_memory_equal(setup.code, "pickle", 6);
    assert_int_equal(setup.output.n_children, 3);
    assert_string_equal(setup.output.children[2]->format, "U");
    assert_string_equal(setup.output.children[2]->name, "s");
    gar_setup_destroy(&setup);
    for (int64_t i = 0; i < block.size; i++) { /* cut anywhere */
        assert_true(gar_setup_read(block.data, i, &setup, NULL) < 0);
    }
    for (int32_t i = 0; i < 20000; i++) {
        char *copy = malloc((size_t)block.size);
        memcpy(copy, block.data, (size_t)block.size);
        copy[roll() % (uint64_t)block.size] = (char)roll();
        if (gar_setup_read(copy, block.size, &setup, NULL) >= 0) {
            gar_setup_destroy(&setup);
        }
        free(copy);
    }
    gar_strbuf_destroy(&block);
}

static void test_regions(void **state)
{
    (void)state;
    enum { MOST = 64 };
    struct gar_regions regions = {.free = NULL};
    struct gar_region held[MOST];
    int32_t count = 0;
    assert_int_equal(gar_regions_extend(&regions, 0, 65536, NULL), GAR_OK);
    for (int32_t i = 0; i < 20000; i++) {
        if (count < MOST && roll() % 2 == 0) {
            struct gar_region *r = &held[count];
            r->bytes = 1 + (int64_t)(roll() % 4000);
            const enum gar_status status = gar_regions_take(&regions, r->bytes, &r->offset, NULL);
            if (status == GAR_PENDING) {
                const int64_t end = gar_regions_end_for(&regions, r->bytes);
                assert_true(end > regions.end);
                assert_int_equal(gar_regions_extend(&regions, regions.end, end, NULL), GAR_OK);
                assert_int_equal(gar_regions_take(&regions, r->bytes, &r->offset, NULL), GAR_OK);
            }
            assert_int_equal(r->offset % 64, 0);
            for (int32_t k = 0; k < count; k++) {
                assert_true(r->offset + r->bytes <= held[k].offset ||
                            held[k].offset + held[k].bytes <= r->offset);
            }
            count++;
        } else if (count > 0) {
            const int32_t k = (int32_t)(roll() % (uint64_t)count);
            gar_regions_give(&regions, held[k].offset, held[k].bytes);
            held[k] = held[--count];
        }
    }
    while (count > 0) {
        count--;
        gar_regions_give(&regions, held[count].offset, held[count].bytes);
    }
    assert_int_equal(regions.count, 1);
    assert_int_equal(regions.free[0].bytes, regions.end);
    gar_regions_destroy(&regions);
}

static void test_leases_outlive_the_worker(void **state)
{
    (void)state;
    struct gar_memory_pool *memory = NULL;
    struct gar_account *account = NULL;
    struct gar_exchange *exchange = NULL;
    struct gar_lease *leases[2] = {NULL, NULL};
    const struct gar_memory_pool_options options = {.limit_bytes = 16 << 20};
    assert_int_equal(gar_memory_pool_new(&options, &memory, NULL), GAR_OK);
    assert_int_equal(gar_account_new(memory, "query", 0, &account, NULL), GAR_OK);
    assert_int_equal(gar_exchange_new(account, 32 << 20, &exchange, NULL), GAR_OK);
    assert_int_equal(gar_exchange_grow(exchange, GAR_ARENA_OUT, 4 << 20, NULL), GAR_OK);
    uint8_t *data = gar_exchange_data(exchange, GAR_ARENA_OUT);
    memset(data, 7, 4 << 20);
    assert_int_equal(gar_exchange_lease(exchange, 3, 1 << 20, 100000, &leases[0], NULL), GAR_OK);
    assert_int_equal(gar_exchange_lease(exchange, 5, 3 << 20, 100000, &leases[1], NULL), GAR_OK);
    gar_lease_release(leases[1]);
    assert_int_equal(gar_exchange_control(exchange)->out_done[5], 1);
    assert_int_equal(gar_exchange_control(exchange)->out_done[3], 0);
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_exchange_grow(exchange, GAR_ARENA_OUT, 24 << 20, &err), GAR_ERR_NOMEM);
    assert_int_equal(gar_exchange_grow(exchange, GAR_ARENA_OUT, 48 << 20, &err), GAR_ERR_NOMEM);
    assert_non_null(strstr(err.message, "smaller batch_size"));
    gar_exchange_close(exchange);
    gar_exchange_unref(exchange);
    assert_int_equal(data[(1 << 20) + 99999], 7); /* leased: stays */
    assert_int_equal(data[2 << 20], 0);           /* went back */
    assert_true(gar_account_used_bytes(account) >= 100000 &&
                gar_account_used_bytes(account) < 200000);
    gar_lease_release(leases[0]);
    assert_int_equal(gar_account_used_bytes(account), 0);
    gar_account_unref(account);
    gar_memory_pool_unref(memory);
}

static void test_cutter(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 7, 64, 299, 300, 1000};
    for (int64_t s = 0; s < GAR_COUNT_OF(sizes); s++) {
        struct gar_cutter cutter;
        int64_t put = 0;
        int64_t taken = 0;
        gar_cutter_init(&cutter, schema, gar_memory_system(), sizes[s]);
        for (;;) {
            struct gar_batch *piece = NULL;
            const enum gar_status status = gar_cutter_take(&cutter, &piece, NULL);
            if (status == GAR_EOF) {
                break;
            }
            if (status == GAR_OK) {
                assert_true(piece->rows == sizes[s] || taken + piece->rows == ROWS);
                check_rows(piece, taken);
                taken += piece->rows;
                gar_batch_unref(piece);
                continue;
            }
            assert_int_equal(status, GAR_PENDING);
            const int64_t rows = gar_min_i64(1 + (int64_t)(roll() % 50), ROWS - put);
            if (rows == 0) {
                gar_cutter_end(&cutter);
                continue;
            }
            struct gar_batch *slice = NULL;
            assert_int_equal(gar_batch_slice(batch, put, rows, &slice, NULL), GAR_OK);
            assert_int_equal(gar_cutter_put(&cutter, slice, NULL), GAR_OK);
            put += rows;
        }
        assert_int_equal(taken, ROWS);
        gar_cutter_destroy(&cutter);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t out[3] = {0};
    assert_int_equal(gar_wire_numbers("38,-2", ',', out, 3), 2);
    assert_int_equal(out[0], 38);
    assert_int_equal(out[1], -2);
    assert_int_equal(gar_wire_numbers("1:9223372036854775807:3", ':', out, 3), 3);
    assert_true(out[1] == INT64_MAX);
    const char *const wrong[] = {"", "1,", ",1", "1,x", "1,2,3,4", "1,99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(gar_wire_numbers(wrong[i], ',', out, 3), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile_regions),
        cmocka_unit_test(test_nested_from_others),
        cmocka_unit_test(test_what_cannot_pass),
        cmocka_unit_test(test_setup_block),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_leases_outlive_the_worker),
        cmocka_unit_test(test_cutter),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
