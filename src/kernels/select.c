/* SPDX-License-Identifier: Apache-2.0 */
/* Quickselect by the median of three, in three parts so that equal keys go at once; where that goes on for too long, by
 * sorting what is left. */
#include "kernels/select.h"

#include <stdlib.h>

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = 0;
    uint64_t y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static uint64_t median_of(uint64_t a, uint64_t b, uint64_t c)
{
    if (a > b) {
        const uint64_t t = a;
        a = b;
        b = t;
    }
    return c <= a ? a : c >= b ? b : c;
}

static void swap(uint64_t *a, uint64_t *b)
{
    const uint64_t t = *a;
    *a = *b;
    *b = t;
}

void gar_select_u64(uint64_t *keys, int64_t count, int64_t k)
{
    int64_t first = 0;
    int64_t end = count;
    int64_t rounds = 128;
    while (end - first > 1) {
        if (rounds-- == 0) {
            qsort(keys + first, (size_t)(end - first), sizeof *keys, compare_keys);
            return;
        }
        const uint64_t pivot =
            median_of(keys[first], keys[first + (end - first) / 2], keys[end - 1]);
        int64_t less =
            first; /* [first, less) below the pivot, [less, at) equal, [more, end) above */
        int64_t more = end;
        for (int64_t at = first; at < more;) {
            if (keys[at] < pivot) {
                swap(&keys[at++], &keys[less++]);
            } else if (keys[at] > pivot) {
                swap(&keys[at], &keys[--more]);
            } else {
                at++;
            }
        }
        if (k < less) {
            end = less;
        } else if (k >= more) {
            first = more;
        } else {
            return;
        }
    }
}
