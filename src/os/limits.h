/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may use: CPUs (affinity mask, cgroup quota) and memory (RAM, cgroup limits, address space). */
#ifndef GAR_OS_LIMITS_H
#define GAR_OS_LIMITS_H

#include "base/attrs.h"

struct gar_os_limits {
    int32_t cpus_online;
    int32_t cpus_affinity;
    int64_t cpu_quota_milli; /* 1,500 = one and a half CPUs; INT64_MAX: none */
    int32_t cpus;            /* usable: the smaller of the two, quota rounded up, at least 1 */
    int64_t ram_bytes;
    int64_t cgroup_bytes;        /* smallest limit of the cgroup and its parents; INT64_MAX: none */
    int64_t address_space_bytes; /* RLIMIT_AS; INT64_MAX: none */
    int64_t memory_bytes;        /* the smallest of the three */
};

/* root: "" for the real system, else a directory that holds proc/ and sys/ for tests. Never fails: what cannot be
 * read counts as no limit. Threads: any; reads files. */
void gar_os_limits_read(const char *root, struct gar_os_limits *out);
/* The same for the real system, read once. */
const struct gar_os_limits *gar_os_limits(void);

/* Figures of the running process, for tests, benchmarks and metrics; -1 where unknown. */
struct gar_os_usage {
    int64_t resident_bytes;
    int64_t peak_resident_bytes;
    int64_t threads;
    int64_t open_files;
    int64_t minor_faults;
    int64_t user_ns;
    int64_t system_ns;
};
void gar_os_usage_read(struct gar_os_usage *out);

#endif
