/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of DELTA_BINARY_PACKED. Sums are unsigned, as the format lets them wrap. */
#include "base/bits.h"
#include "formats/parquet/bit_unpack_priv.h"
#include "formats/parquet/delta_priv.h"

#define VARINT_BYTES_MAX 10
#define STEP_VALUES      64
#define BLOCK_VALUES_MAX (INT64_C(1) << 31)

static bool read_varint(struct delta_decoder *d, uint64_t *out)
{
    uint64_t value = 0;
    for (int32_t i = 0; i < VARINT_BYTES_MAX; i++) {
        if (d->next == d->end) {
            return false;
        }
        const uint8_t byte = *d->next++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_zigzag(struct delta_decoder *d, uint64_t *out)
{
    uint64_t raw = 0;
    if (!read_varint(d, &raw)) {
        return false;
    }
    *out = (raw >> 1) ^ (~(raw & 1) + 1);
    return true;
}

bool gar_delta_init(struct delta_decoder *d, const uint8_t *data, int64_t bytes)
{
    *d = (struct delta_decoder){.next = data, .end = data + bytes};
    uint64_t block = 0;
    uint64_t miniblocks = 0;
    uint64_t total = 0;
    if (!read_varint(d, &block) || !read_varint(d, &miniblocks) || !read_varint(d, &total) ||
        !read_zigzag(d, &d->last)) {
        return false;
    }
    if (block == 0 || block > BLOCK_VALUES_MAX || miniblocks == 0 ||
        miniblocks > DELTA_MINIBLOCKS_MAX || block % miniblocks != 0 ||
        (block / miniblocks) % 8 != 0 || total > INT64_MAX) {
        return false;
    }
    d->left = (int64_t)total;
    d->miniblocks = (int32_t)miniblocks;
    d->miniblock = d->miniblocks;
    d->miniblock_values = (int64_t)(block / miniblocks);
    d->in_miniblock = d->miniblock_values;
    return true;
}

/* Bytes of the current miniblock. */
static int64_t miniblock_bytes(const struct delta_decoder *d)
{
    return d->miniblock_values / 8 * d->widths[d->miniblock];
}

/* To the next miniblock, reading a block's header when the block is over. There must be values left. */
static bool next_miniblock(struct delta_decoder *d)
{
    if (d->miniblock < d->miniblocks) {
        const int64_t bytes = miniblock_bytes(d);
        /* The last miniblock may be cut, but then nothing follows it. */
        if (bytes > d->end - d->next) {
            return false;
        }
        d->next += bytes;
        d->miniblock++;
    }
    if (d->miniblock == d->miniblocks) {
        if (!read_zigzag(d, &d->min_delta) || d->end - d->next < d->miniblocks) {
            return false;
        }
        d->widths = d->next;
        d->next += d->miniblocks;
        d->miniblock = 0;
    }
    d->in_miniblock = 0;
    return d->widths[d->miniblock] <= 64;
}

/* Makes the first value or up to STEP_VALUES deltas ready: *out_count values in out. */
static bool read_step(struct delta_decoder *d, int64_t count, uint64_t *out, int64_t *out_count)
{
    if (count > d->left) {
        return false;
    }
    if (!d->has_first) {
        d->has_first = true;
        d->left--;
        out[0] = d->last;
        *out_count = 1;
        return true;
    }
    if (d->in_miniblock == d->miniblock_values && !next_miniblock(d)) {
        return false;
    }
    const int64_t n =
        gar_min_i64(gar_min_i64(count, STEP_VALUES), d->miniblock_values - d->in_miniblock);
    const int32_t width = d->widths[d->miniblock];
    const int64_t there = d->end - d->next;
    if (gar_bits_bytes((d->in_miniblock + n) * width) > there) {
        return false;
    }
    uint64_t last = d->last;
    if (width <= 32) {
        uint32_t deltas[STEP_VALUES];
        gar_bit_unpack(d->next, there, width, d->in_miniblock, n, deltas);
        for (int64_t i = 0; i < n; i++) {
            last += d->min_delta + deltas[i];
            out[i] = last;
        }
    } else {
        uint64_t deltas[STEP_VALUES];
        gar_bit_unpack_u64(d->next, there, width, d->in_miniblock, n, deltas);
        for (int64_t i = 0; i < n; i++) {
            last += d->min_delta + deltas[i];
            out[i] = last;
        }
    }
    d->last = last;
    d->in_miniblock += n;
    d->left -= n;
    *out_count = n;
    return true;
}

bool gar_delta_read_i64(struct delta_decoder *d, int64_t count, int64_t *out)
{
    uint64_t values[STEP_VALUES];
    while (count > 0) {
        int64_t n = 0;
        if (!read_step(d, count, values, &n)) {
            return false;
        }
        for (int64_t i = 0; i < n; i++) {
            out[i] = (int64_t)values[i];
        }
        out += n;
        count -= n;
    }
    return true;
}

bool gar_delta_read_i32(struct delta_decoder *d, int64_t count, int32_t *out)
{
    uint64_t values[STEP_VALUES];
    while (count > 0) {
        int64_t n = 0;
        if (!read_step(d, count, values, &n)) {
            return false;
        }
        for (int64_t i = 0; i < n; i++) {
            out[i] = (int32_t)(uint32_t)values[i];
        }
        out += n;
        count -= n;
    }
    return true;
}

bool gar_delta_skip(struct delta_decoder *d, int64_t count)
{
    uint64_t values[STEP_VALUES];
    while (count > 0) {
        int64_t n = 0;
        if (!read_step(d, count, values, &n)) {
            return false;
        }
        count -= n;
    }
    return true;
}

const uint8_t *gar_delta_end(const struct delta_decoder *decoder)
{
    struct delta_decoder d = *decoder;
    int64_t left = d.left - 1; /* the first value is in the header */
    while (left > 0) {
        if (!next_miniblock(&d)) {
            return NULL;
        }
        left -= d.miniblock_values;
    }
    if (d.miniblock < d.miniblocks) {
        /* The last miniblock with values is there whole; those behind it have no bytes. */
        const int64_t bytes = miniblock_bytes(&d);
        if (bytes > d.end - d.next) {
            return NULL;
        }
        d.next += bytes;
    }
    return d.next;
}
