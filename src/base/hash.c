/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of bytes, by the xxHash header in its inline mode (no link dependency). */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t gar_hash_bytes(const void *data, int64_t bytes)
{
    return XXH3_64bits(data, (size_t)bytes);
}

uint64_t gar_hash_xxh64(const void *data, int64_t bytes)
{
    return XXH64(data, (size_t)bytes, 0);
}
