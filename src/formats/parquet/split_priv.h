/* SPDX-License-Identifier: Apache-2.0 */
/* BYTE_STREAM_SPLIT: value i's byte j lies at j * total + i. */
#ifndef GAR_FORMATS_PARQUET_SPLIT_PRIV_H
#define GAR_FORMATS_PARQUET_SPLIT_PRIV_H

#include "base/attrs.h"

/* Values [at, at + count) of `total` values of `width` bytes, joined. */
void gar_split_join(const uint8_t *in, int64_t total, int64_t at, int64_t count, int32_t width,
                    uint8_t *out);
/* The portable body, for tests. */
void gar_split_join_portable(const uint8_t *in, int64_t total, int64_t at, int64_t count,
                             int32_t width, uint8_t *out);

#endif
