/* SPDX-License-Identifier: Apache-2.0 */
/* Spreading runs from the end, so that in place no value is overwritten before it is moved. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/spread_priv.h"

/* Row by row without a branch on the bit: the value is masked instead. Stops when the rest is in its place. */
#define SPREAD_BODY(type)                                       \
    type *const v = values;                                     \
    int64_t from = dense - 1;                                   \
    int64_t row = rows - 1;                                     \
    for (; from >= 0 && from != row; row--) {                   \
        const type bit = (type)gar_bit_get(bits, offset + row); \
        v[row] = (type)(v[from] * bit);                         \
        from -= (int64_t)bit;                                   \
    }                                                           \
    if (from < 0 && row >= 0) {                                 \
        memset(v, 0, (size_t)(row + 1) * sizeof *v);            \
    }

static void spread_1(void *values, const uint8_t *bits, int64_t offset, int64_t rows, int64_t dense)
{
    SPREAD_BODY(uint8_t)
}

static void spread_2(void *values, const uint8_t *bits, int64_t offset, int64_t rows, int64_t dense)
{
    SPREAD_BODY(uint16_t)
}

static void spread_4(void *values, const uint8_t *bits, int64_t offset, int64_t rows, int64_t dense)
{
    SPREAD_BODY(uint32_t)
}

static void spread_8(void *values, const uint8_t *bits, int64_t offset, int64_t rows, int64_t dense)
{
    SPREAD_BODY(uint64_t)
}

static void spread_16(void *values, const uint8_t *bits, int64_t offset, int64_t rows,
                      int64_t dense)
{
    uint64_t *const v = values;
    int64_t from = dense - 1;
    int64_t row = rows - 1;
    for (; from >= 0 && from != row; row--) {
        const uint64_t bit = gar_bit_get(bits, offset + row);
        const uint64_t low = v[2 * from] * bit;
        const uint64_t high = v[2 * from + 1] * bit;
        v[2 * row] = low;
        v[2 * row + 1] = high;
        from -= (int64_t)bit;
    }
    if (from < 0 && row >= 0) {
        memset(v, 0, (size_t)(row + 1) * 16);
    }
}

void gar_spread(void *values, int32_t width, const uint8_t *bits, int64_t offset, int64_t rows,
                int64_t dense)
{
    switch (width) {
    case 1: spread_1(values, bits, offset, rows, dense); break;
    case 2: spread_2(values, bits, offset, rows, dense); break;
    case 4: spread_4(values, bits, offset, rows, dense); break;
    case 8: spread_8(values, bits, offset, rows, dense); break;
    case 16: spread_16(values, bits, offset, rows, dense); break;
    default: break;
    }
}

void gar_spread_bits(uint8_t *values, int64_t at, const uint8_t *bits, int64_t offset, int64_t rows,
                     int64_t dense)
{
    int64_t from = dense - 1;
    for (int64_t row = rows - 1; row >= 0 && from != row; row--) {
        const bool is_valid = gar_bit_get(bits, offset + row);
        const bool value = is_valid && gar_bit_get(values, at + from);
        gar_bit_put(values, at + row, value);
        from -= is_valid;
    }
}
