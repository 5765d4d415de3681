/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of the RLE / bit-packing hybrid. A packed run of one-bit levels is a piece of a bitmap as it stands. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/bit_unpack_priv.h"
#include "formats/parquet/levels_priv.h"

#define HEADER_BYTES_MAX 5
#define PACK_VALUES      8

void gar_rle_init(struct rle_decoder *decoder, const uint8_t *data, int64_t bytes, int32_t width)
{
    *decoder = (struct rle_decoder){.next = data, .end = data + bytes, .width = width};
}

/* Leaves the run that is over and reads the next header; false at the end or when malformed. Runs of no value are legal. */
static bool next_run(struct rle_decoder *d)
{
    if (d->is_packed) {
        d->next += gar_bits_bytes(d->packed_at * d->width);
        d->is_packed = false;
    }
    while (d->left == 0) {
        uint64_t header = 0;
        int32_t i = 0;
        for (;; i++) {
            if (d->next == d->end || i == HEADER_BYTES_MAX) {
                return false;
            }
            const uint8_t byte = *d->next++;
            header |= (uint64_t)(byte & 0x7f) << (7 * i);
            if ((byte & 0x80) == 0) {
                break;
            }
        }
        const int64_t there = d->end - d->next;
        if ((header & 1) != 0) {
            int64_t values = (int64_t)(header >> 1) * PACK_VALUES;
            /* Some writers cut the padding of the last run. */
            if (d->width > 0) {
                values = gar_min_i64(values, there * 8 / d->width);
            }
            d->left = values;
            d->packed_at = 0;
            d->is_packed = values > 0;
        } else {
            const int32_t bytes = (d->width + 7) / 8;
            if (there < bytes) {
                return false;
            }
            d->value = 0;
            for (int32_t k = 0; k < bytes; k++) {
                d->value |= (uint32_t)d->next[k] << (8 * k);
            }
            d->next += bytes;
            d->left = (int64_t)(header >> 1);
        }
    }
    return true;
}

static uint32_t max_of(const uint32_t *values, int64_t count)
{
    uint32_t max = 0;
    for (int64_t i = 0; i < count; i++) {
        max = values[i] > max ? values[i] : max;
    }
    return max;
}

bool gar_rle_read(struct rle_decoder *d, int64_t count, uint32_t *out, uint32_t *out_max)
{
    uint32_t max = 0;
    while (count > 0) {
        if (d->left == 0 && !next_run(d)) {
            return false;
        }
        const int64_t n = gar_min_i64(count, d->left);
        if (d->is_packed) {
            gar_bit_unpack(d->next, d->end - d->next, d->width, d->packed_at, n, out);
            const uint32_t packed_max = max_of(out, n);
            max = packed_max > max ? packed_max : max;
            d->packed_at += n;
        } else {
            for (int64_t i = 0; i < n; i++) {
                out[i] = d->value;
            }
            max = d->value > max ? d->value : max;
        }
        d->left -= n;
        out += n;
        count -= n;
    }
    *out_max = max;
    return true;
}

bool gar_rle_read_bits(struct rle_decoder *d, int64_t count, uint8_t *bits, int64_t offset,
                       int64_t *out_set)
{
    int64_t set = 0;
    while (count > 0) {
        if (d->left == 0 && !next_run(d)) {
            return false;
        }
        const int64_t n = gar_min_i64(count, d->left);
        if (d->is_packed) {
            gar_bits_copy(bits, offset, d->next, d->packed_at, n);
            set += gar_bits_count(d->next, d->packed_at, n);
            d->packed_at += n;
        } else {
            if (d->value > 1) {
                return false;
            }
            gar_bits_fill(bits, offset, n, d->value != 0);
            set += d->value != 0 ? n : 0;
        }
        d->left -= n;
        offset += n;
        count -= n;
    }
    *out_set = set;
    return true;
}

bool gar_rle_skip_bits(struct rle_decoder *d, int64_t count, int64_t *out_set)
{
    int64_t set = 0;
    while (count > 0) {
        if (d->left == 0 && !next_run(d)) {
            return false;
        }
        const int64_t n = gar_min_i64(count, d->left);
        if (d->is_packed) {
            set += gar_bits_count(d->next, d->packed_at, n);
            d->packed_at += n;
        } else {
            if (d->value > 1) {
                return false;
            }
            set += d->value != 0 ? n : 0;
        }
        d->left -= n;
        count -= n;
    }
    *out_set = set;
    return true;
}

bool gar_rle_skip(struct rle_decoder *d, int64_t count)
{
    while (count > 0) {
        if (d->left == 0 && !next_run(d)) {
            return false;
        }
        const int64_t n = gar_min_i64(count, d->left);
        if (d->is_packed) {
            d->packed_at += n;
        }
        d->left -= n;
        count -= n;
    }
    return true;
}

void gar_packed_levels_read(const uint8_t *data, int64_t at, int64_t count, uint8_t *bits,
                            int64_t offset, int64_t *out_set)
{
    int64_t set = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = at + i;
        const bool value = ((data[from >> 3] >> (7 - (from & 7))) & 1) != 0;
        gar_bit_put(bits, offset + i, value);
        set += value;
    }
    *out_set = set;
}
