/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort: insertion for a few entries, counting passes from the lowest byte for what fits in
 * L2, a split by the
 * highest differing byte above that. */
#include "kernels/radix_sort.h"

#include <string.h>

#include "base/bits.h"

enum {
    INSERTION_MAX = 24,
    SPLIT_ABOVE = 1 << 15, /* entries; with scratch 1 MiB */
    DIGITS = 256,
    DEPTH_MAX = 8, /* bytes of a key */
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

/* One stable counting pass by the byte at `shift`. starts gets the first place of each digit, and
 * the end. */
static void pass(const struct gar_sort_entry *from, struct gar_sort_entry *to, int64_t count,
                 int32_t shift, int64_t starts[DIGITS + 1])
{
    int64_t places[DIGITS] = {0};
    for (int64_t i = 0; i < count; i++) {
        places[(from[i].key >> shift) & (DIGITS - 1)]++;
    }
    int64_t sum = 0;
    for (int32_t d = 0; d < DIGITS; d++) {
        const int64_t n = places[d];
        starts[d] = places[d] = sum;
        sum += n;
    }
    starts[DIGITS] = sum;
    for (int64_t i = 0; i < count; i++) {
        to[places[(from[i].key >> shift) & (DIGITS - 1)]++] = from[i];
    }
}

static void sort_by_low_bytes(struct gar_sort_entry *entries, struct gar_sort_entry *scratch,
                              int64_t count, uint64_t bits)
{
    struct gar_sort_entry *from = entries;
    struct gar_sort_entry *to = scratch;
    int64_t starts[DIGITS + 1];
    /* Digits begin at the lowest differing bit, not at a byte border. */
    int32_t shift = gar_ctz64(bits);
    while (shift < 64 && bits >> shift != 0) {
        if (((bits >> shift) & (DIGITS - 1)) != 0) {
            pass(from, to, count, shift, starts);
            struct gar_sort_entry *const swap = from;
            from = to;
            to = swap;
        }
        shift += 8;
    }
    if (from != entries) {
        memcpy(entries, from, (size_t)count * sizeof *entries);
    }
}

static void sort_range(struct gar_sort_entry *entries, struct gar_sort_entry *scratch,
                       int64_t count, int32_t depth)
{
    if (count <= INSERTION_MAX) {
        insertion_sort(entries, count);
        return;
    }
    bool is_sorted = false;
    const uint64_t bits = differing_bits(entries, count, &is_sorted);
    if (is_sorted) {
        return;
    }
    if (count <= SPLIT_ABOVE || depth >= DEPTH_MAX) {
        sort_by_low_bytes(entries, scratch, count, bits);
        return;
    }
    int64_t starts[DIGITS + 1];
    const int32_t highest = 63 - gar_clz64(bits);
    pass(entries, scratch, count, highest >= 7 ? highest - 7 : 0, starts);
    memcpy(entries, scratch, (size_t)count * sizeof *entries);
    for (int32_t d = 0; d < DIGITS; d++) {
        if (starts[d + 1] - starts[d] > 1) {
            sort_range(entries + starts[d], scratch + starts[d], starts[d + 1] - starts[d],
                       depth + 1);
        }
    }
}

void gar_radix_sort(struct gar_sort_entry *entries, struct gar_sort_entry *scratch, int64_t count)
{
    sort_range(entries, scratch, count, 0);
}
