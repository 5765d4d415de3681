/* SPDX-License-Identifier: Apache-2.0 */
/* DELTA_BINARY_PACKED: blocks of miniblocks of bit-packed differences. Also the lengths of the two delta byte array
 * encodings. Streaming: memory does not depend on what the header says. */
#ifndef GAR_FORMATS_PARQUET_DELTA_PRIV_H
#define GAR_FORMATS_PARQUET_DELTA_PRIV_H

#include "base/attrs.h"

/* Miniblocks of a block that a stream may have (writers use 4). */
#define DELTA_MINIBLOCKS_MAX 512

struct delta_decoder {
    const uint8_t *next; /* the miniblock's packed bytes, or the next block's header */
    const uint8_t *end;
    const uint8_t *widths; /* of the current block, one byte a miniblock */
    int64_t left;          /* values that are still to come, by the header */
    int64_t miniblock_values;
    int64_t in_miniblock; /* values of the miniblock already given */
    int32_t miniblocks;   /* in a block */
    int32_t miniblock;    /* number of the current one; = miniblocks before the first block */
    uint64_t min_delta;
    uint64_t last;  /* value given last; arithmetic wraps */
    bool has_first; /* the first value, which the header holds, was given */
};

/* Reads the header. False when malformed. */
bool gar_delta_init(struct delta_decoder *decoder, const uint8_t *data, int64_t bytes);
/* The next count values, wrapped to 64 or 32 bits. False when malformed or there are not so many. */
bool gar_delta_read_i64(struct delta_decoder *decoder, int64_t count, int64_t *out);
bool gar_delta_read_i32(struct delta_decoder *decoder, int64_t count, int32_t *out);
bool gar_delta_skip(struct delta_decoder *decoder, int64_t count);
/* The byte behind a stream that has not been read from: where the next part of the page starts. NULL when malformed. */
const uint8_t *gar_delta_end(const struct delta_decoder *decoder);

#endif
