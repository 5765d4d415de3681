/* SPDX-License-Identifier: Apache-2.0 */
/* Named places where tests may disturb the schedule. Compiled to nothing outside sanitizer builds. */
#ifndef GAR_OS_TEST_POINT_H
#define GAR_OS_TEST_POINT_H

#include "base/attrs.h"

#if defined(GAR_SANITIZED)
#define GAR_TEST_POINT(name) gar_test_point(name)
#else
#define GAR_TEST_POINT(name) ((void)0)
#endif

/* From now on test points yield or sleep at random, up to delay_us_max; seed 0 switches off. Until the first call the
 * environment decides: GAR_TEST_POINTS=number (delays up to 50 us). Afterwards its number makes another sequence of the
 * same seed, so that a program that sets its own can be run in many ways. */
void gar_test_point_set(uint64_t seed, int64_t delay_us_max);
/* The number of the environment, 0 when there is none. */
uint64_t gar_test_point_environment(void);
void gar_test_point(const char *name);

#endif
