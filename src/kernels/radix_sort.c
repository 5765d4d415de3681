/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort: insertion for a few entries, counting passes from the lowest digit for what fits in
 * L2, a split by the highest differing bits above that. Passes go to and fro between the two
 * arrays; a range knows in which of them it lies and in which it has to end. */
#include "kernels/radix_sort.h"

#include <string.h>

#include "base/bits.h"
#include "base/stop.h"

enum {
    INSERTION_MAX = 24,
    WIDE_FROM = 1 << 12,   /* entries from which 11-bit digits pay */
    SPLIT_ABOVE = 1 << 15, /* entries; with scratch 1 MiB */
    NARROW_BITS = 8,
    WIDE_BITS = 11,
    DEPTH_MAX = 8,
};

static void insertion_sort(struct gar_sort_entry *entries, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const struct gar_sort_entry e = entries[i];
        int64_t at = i;
        while (at > 0 && entries[at - 1].key > e.key) {
            entries[at] = entries[at - 1];
            at--;
        }
        entries[at] = e;
    }
}

/* Bits in which keys differ; *out_is_sorted tells that they ascend already. */
static uint64_t differing_bits(const struct gar_sort_entry *entries, int64_t count,
                               bool *out_is_sorted)
{
    uint64_t bits = 0;
    uint64_t unsorted = 0;
    for (int64_t i = 1; i < count; i++) {
        bits |= entries[i].key ^ entries[0].key;
        unsorted |= (uint64_t)(entries[i].key < entries[i - 1].key);
    }
    *out_is_sorted = unsorted == 0;
    return bits;
}

/* One stable counting pass by `bits` bits at `shift`. starts gets the first place of each digit, and
 * the end. */
static inline void pass(const struct gar_sort_entry *from, struct gar_sort_entry *to, int64_t count,
                        int32_t shift, int32_t bits, uint32_t *places, uint32_t *starts)
{
    const int32_t digits = 1 << bits;
    const uint64_t mask = (uint64_t)digits - 1;
    memset(places, 0, (size_t)digits * sizeof *places);
    for (int64_t i = 0; i < count; i++) {
        places[(from[i].key >> shift) & mask]++;
    }
    uint32_t sum = 0;
    for (int32_t d = 0; d < digits; d++) {
        const uint32_t n = places[d];
        starts[d] = places[d] = sum;
        sum += n;
    }
    starts[digits] = sum;
    for (int64_t i = 0; i < count; i++) {
        to[places[(from[i].key >> shift) & mask]++] = from[i];
    }
}

/* Counting passes from the lowest differing bit up; the result is in `entries` or, with to_scratch,
 * in `scratch`. */
static void sort_by_digits(struct gar_sort_entry *entries, struct gar_sort_entry *scratch,
                           int64_t count, uint64_t bits, bool to_scratch)
{
    uint32_t places[1 << WIDE_BITS];
    uint32_t starts[(1 << WIDE_BITS) + 1];
    struct gar_sort_entry *from = entries;
    struct gar_sort_entry *to = scratch;
    const int32_t width = count >= WIDE_FROM ? WIDE_BITS : NARROW_BITS;
    int32_t shift = gar_ctz64(bits);
    while (shift < 64 && bits >> shift != 0) {
        if (((bits >> shift) & ((UINT64_C(1) << width) - 1)) != 0) {
            if (width == WIDE_BITS) {
                pass(from, to, count, shift, WIDE_BITS, places, starts);
            } else {
                pass(from, to, count, shift, NARROW_BITS, places, starts);
            }
            struct gar_sort_entry *const swap = from;
            from = to;
            to = swap;
        }
        shift += width;
    }
    struct gar_sort_entry *want = to_scratch ? scratch : entries;
    if (from != want) {
        memcpy(want, from, (size_t)count * sizeof *want);
    }
}

/* The range lies in `entries`; it ends there, or in `scratch` with to_scratch. */
static void sort_range(struct gar_sort_entry *entries, struct gar_sort_entry *scratch,
                       int64_t count, bool to_scratch, int32_t depth)
{
    bool is_done = count <= INSERTION_MAX;
    uint64_t bits = 0;
    if (is_done) {
        insertion_sort(entries, count);
    } else {
        bits = differing_bits(entries, count, &is_done);
    }
    if (is_done) {
        if (to_scratch && count > 0) {
            memcpy(scratch, entries, (size_t)count * sizeof *entries);
        }
        return;
    }
    if (count > SPLIT_ABOVE && gar_stop_requested()) {
        return;
    }
    if (count <= SPLIT_ABOVE || depth >= DEPTH_MAX) {
        sort_by_digits(entries, scratch, count, bits, to_scratch);
        return;
    }
    uint32_t places[1 << NARROW_BITS];
    uint32_t starts[(1 << NARROW_BITS) + 1];
    const int32_t highest = 63 - gar_clz64(bits);
    const int32_t shift = highest >= NARROW_BITS - 1 ? highest - (NARROW_BITS - 1) : 0;
    pass(entries, scratch, count, shift, NARROW_BITS, places, starts);
    for (int32_t d = 0; d < 1 << NARROW_BITS; d++) {
        const int64_t first = starts[d];
        sort_range(scratch + first, entries + first, (int64_t)starts[d + 1] - first, !to_scratch,
                   depth + 1);
    }
}

void gar_radix_sort(struct gar_sort_entry *entries, struct gar_sort_entry *scratch, int64_t count)
{
    sort_range(entries, scratch, count, false, 0);
}
