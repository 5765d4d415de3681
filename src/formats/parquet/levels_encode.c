/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the RLE / bit-packing hybrid: long repeats as runs, the rest as packed groups of eight. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/encode_priv.h"

#define GROUP 8
/* Repeats from here on are shorter as a run whatever the width. */
#define RUN_VALUES_MIN   16
#define VARINT_BYTES_MAX 10
/* Groups in one packed run: keeps its header short and its length within 31 bits. */
#define PACKED_VALUES_MAX (1 << 16)

enum gar_status gar_parquet_bytes_room(struct parquet_bytes *bytes, int64_t more, uint8_t **out,
                                       struct gar_error *err)
{
    if (bytes->buffer == NULL) {
        GAR_TRY(gar_buffer_new(bytes->memory, gar_max_i64(more, 4096), &bytes->buffer, err));
        bytes->buffer->size = 0;
    }
    const int64_t used = bytes->buffer->size;
    const int64_t want = used + more;
    if (want > bytes->buffer->capacity - 64) {
        GAR_TRY(gar_buffer_resize(bytes->buffer, gar_max_i64(want, 2 * used), err));
        bytes->buffer->size = used;
    }
    *out = bytes->buffer->data + used;
    return GAR_OK;
}

enum gar_status gar_parquet_bytes_append(struct parquet_bytes *bytes, const void *data,
                                         int64_t count, struct gar_error *err)
{
    uint8_t *to = NULL;
    GAR_TRY(gar_parquet_bytes_room(bytes, count, &to, err));
    memcpy(to, data, (size_t)count);
    bytes->buffer->size += count;
    return GAR_OK;
}

static int64_t put_varint(uint8_t *out, uint64_t value)
{
    int64_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static enum gar_status append_run(uint32_t value, int64_t count, int32_t width,
                                  struct parquet_bytes *out, struct gar_error *err)
{
    uint8_t *to = NULL;
    GAR_TRY(gar_parquet_bytes_room(out, VARINT_BYTES_MAX + 4, &to, err));
    int64_t n = put_varint(to, (uint64_t)count << 1);
    for (int32_t k = 0; k < width; k += 8) {
        to[n++] = (uint8_t)(value >> k);
    }
    out->buffer->size += n;
    return GAR_OK;
}

/* Values of the last group that are not there are written as zeros. */
static enum gar_status append_packed(const uint32_t *values, int64_t count, int32_t width,
                                     struct parquet_bytes *out, struct gar_error *err)
{
    while (count > 0) {
        const int64_t n = gar_min_i64(count, PACKED_VALUES_MAX);
        const int64_t groups = (n + GROUP - 1) / GROUP;
        uint8_t *to = NULL;
        GAR_TRY(gar_parquet_bytes_room(out, VARINT_BYTES_MAX + groups * width + 8, &to, err));
        int64_t at = put_varint(to, ((uint64_t)groups << 1) | 1);
        uint64_t bits = 0;
        int32_t have = 0;
        const int64_t end = at + groups * width;
        for (int64_t i = 0; i < n; i++) {
            bits |= (uint64_t)values[i] << have;
            have += width;
            if (have >= 32) {
                const uint32_t word = (uint32_t)bits;
                memcpy(to + at, &word, sizeof word);
                at += 4;
                bits >>= 32;
                have -= 32;
            }
        }
        for (; at < end; at++) {
            to[at] = (uint8_t)bits;
            bits >>= 8;
        }
        out->buffer->size += end;
        values += n;
        count -= n;
    }
    return GAR_OK;
}

static int64_t run_length(const uint32_t *values, int64_t count)
{
    int64_t n = 1;
    while (n < count && values[n] == values[0]) {
        n++;
    }
    return n;
}

enum gar_status gar_rle_append(const uint32_t *values, int64_t count, int32_t width,
                               struct parquet_bytes *out, struct gar_error *err)
{
    int64_t start = 0; /* of the values not yet written */
    int64_t i = 0;
    while (i < count) {
        const int64_t run = run_length(values + i, count - i);
        if (run < RUN_VALUES_MIN) {
            i += run;
            continue;
        }
        /* Packed values come in whole groups, so that the run gives up a few of its own. */
        const int64_t fill = (GROUP - (i - start) % GROUP) % GROUP;
        if (i + fill > start) {
            GAR_TRY(append_packed(values + start, i + fill - start, width, out, err));
        }
        GAR_TRY(append_run(values[i], run - fill, width, out, err));
        i += run;
        start = i;
    }
    return append_packed(values + start, count - start, width, out, err);
}

enum gar_status gar_levels_append(const uint8_t *validity, int64_t from, int64_t rows,
                                  struct parquet_bytes *out, struct gar_error *err)
{
    uint8_t *to = NULL;
    const int64_t bytes = gar_bits_bytes(rows);
    GAR_TRY(gar_parquet_bytes_room(out, 4 + VARINT_BYTES_MAX + 1 + bytes, &to, err));
    int64_t n = 4;
    const int64_t set = validity == NULL ? rows : gar_bits_count(validity, from, rows);
    if (set == rows || set == 0) {
        n += put_varint(to + n, (uint64_t)rows << 1);
        to[n++] = set != 0;
    } else {
        n += put_varint(to + n, ((uint64_t)bytes << 1) | 1);
        to[n + bytes - 1] = 0;
        gar_bits_copy(to + n, 0, validity, from, rows);
        n += bytes;
    }
    const uint32_t length = (uint32_t)(n - 4);
    memcpy(to, &length, sizeof length);
    out->buffer->size += n;
    return GAR_OK;
}
