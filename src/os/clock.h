/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Time-outs and deadlines use the monotonic one only: it never jumps. */
#ifndef GAR_OS_CLOCK_H
#define GAR_OS_CLOCK_H

#include "base/attrs.h"

#define GAR_CLOCK_NEVER INT64_MAX /* a deadline that does not come */
#define GAR_NS_PER_MS   INT64_C(1000000)
#define GAR_NS_PER_S    INT64_C(1000000000)

/* Monotonic nanoseconds since some start. */
int64_t gar_clock_ns(void);
/* Wall clock, nanoseconds since 1970-01-01 UTC. */
int64_t gar_clock_wall_ns(void);
/* CPU time of the calling thread, nanoseconds. */
int64_t gar_clock_thread_cpu_ns(void);
/* now + after, GAR_CLOCK_NEVER on overflow or after < 0. */
int64_t gar_clock_deadline(int64_t after_ns);

#endif
