/* SPDX-License-Identifier: Apache-2.0 */
/* The hybrid of run lengths and bit packing: definition levels, dictionary codes, booleans; and the older packed levels.
 *
 * A decoder is a view of the page's bytes and a position. Every header read consumes input and every read is asked for a
 * number of values, so no input makes it loop. */
#ifndef GAR_FORMATS_PARQUET_LEVELS_PRIV_H
#define GAR_FORMATS_PARQUET_LEVELS_PRIV_H

#include "base/attrs.h"

struct rle_decoder {
    const uint8_t
        *next; /* after the current run's header (packed: its bytes; run: after its value) */
    const uint8_t *end;
    int64_t left;      /* values left in the current run */
    int64_t packed_at; /* value number inside the packed run */
    uint32_t value;    /* of a run of equal values */
    int32_t width;     /* bits of a value, 0..32 */
    bool is_packed;
};

/* width 0..32, checked by the caller. */
void gar_rle_init(struct rle_decoder *decoder, const uint8_t *data, int64_t bytes, int32_t width);
/* The next count values; *out_max gets their greatest. False when the input does not hold so many. */
bool gar_rle_read(struct rle_decoder *decoder, int64_t count, uint32_t *out, uint32_t *out_max);
/* Width 1: the next count bits to bitmap positions [offset, offset + count), which may hold anything before; *out_set
 * gets how many are 1. */
bool gar_rle_read_bits(struct rle_decoder *decoder, int64_t count, uint8_t *bits, int64_t offset,
                       int64_t *out_set);
/* Width 1: pass over count bits and count the ones. */
bool gar_rle_skip_bits(struct rle_decoder *decoder, int64_t count, int64_t *out_set);
bool gar_rle_skip(struct rle_decoder *decoder, int64_t count);

/* The deprecated BIT_PACKED levels of width 1: most significant bit first. Bits [at, at + count) to the bitmap. */
void gar_packed_levels_read(const uint8_t *data, int64_t at, int64_t count, uint8_t *bits,
                            int64_t offset, int64_t *out_set);

#endif
