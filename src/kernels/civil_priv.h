/* SPDX-License-Identifier: Apache-2.0 */
/* Days to year, month and day in 32-bit arithmetic that compilers vectorise, after Neri and Schneider, "Euclidean affine
 * functions and their application to calendar algorithms" (2022). */
#ifndef GAR_KERNELS_CIVIL_PRIV_H
#define GAR_KERNELS_CIVIL_PRIV_H

#include "base/attrs.h"

/* The algorithm's epoch is shifted by 82 cycles of 400 years, so that it takes days before 1970 too. */
#define GAR_CIVIL_SHIFT_DAYS  (719468 + 146097 * 82)
#define GAR_CIVIL_SHIFT_YEARS (400 * 82)
#define GAR_CIVIL_DAYS_MIN    (-GAR_CIVIL_SHIFT_DAYS)
#define GAR_CIVIL_DAYS_MAX    ((1 << 30) - 1 - GAR_CIVIL_SHIFT_DAYS)

struct civil {
    int32_t year;
    int32_t month;
    int32_t day;
};

GAR_INLINE struct civil civil_of(int32_t days)
{
    const uint32_t n1 = 4 * (uint32_t)(days + GAR_CIVIL_SHIFT_DAYS) + 3;
    const uint32_t century = n1 / 146097;
    const uint32_t n2 = 4 * (n1 % 146097 / 4) + 3;
    const uint64_t p2 = UINT64_C(2939745) * n2;
    const uint32_t year_of_century = (uint32_t)(p2 >> 32);
    const uint32_t day_of_year = (uint32_t)p2 / 2939745 / 4;
    const uint32_t n3 = 2141 * day_of_year + 197913;
    const uint32_t is_next = day_of_year >= 306;
    struct civil c;
    c.year = (int32_t)(100 * century + year_of_century + is_next) - GAR_CIVIL_SHIFT_YEARS;
    c.month = (int32_t)((n3 >> 16) - (is_next ? 12 : 0));
    c.day = (int32_t)((n3 & 0xffff) / 2141 + 1);
    return c;
}

#endif
