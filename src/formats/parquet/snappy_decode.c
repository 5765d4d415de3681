/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of a raw snappy stream. */
#include <snappy-c.h>

#include "formats/parquet/page_codec_priv.h"

bool gar_snappy_decode(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes)
{
    size_t got = 0;
    if (snappy_uncompressed_length((const char *)in, (size_t)in_bytes, &got) != SNAPPY_OK ||
        (int64_t)got != out_bytes) {
        return false;
    }
    return snappy_uncompress((const char *)in, (size_t)in_bytes, (char *)out, &got) == SNAPPY_OK &&
           (int64_t)got == out_bytes;
}
