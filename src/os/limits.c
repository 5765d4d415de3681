/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the container and the process allow. cgroup v2 keeps all controllers under one path, v1 one path a
 * controller; both are walked from the process's group to the root, because any ancestor may hold the limit. In a
 * container the path in /proc/self/cgroup may be the host's and not exist below the mount: missing folders are skipped,
 * and the root of the mount is always looked at. */
#include "os/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/mutex.h"

#define TEXT_BYTES 4096
#define PATH_BYTES 4096
/* v1 says "no limit" by the largest page-aligned number. */
#define HUGE_BYTES (INT64_C(1) << 60)

static int64_t read_text(const char *path, char *out);
static void read_cgroups(const char *root, struct gar_os_limits *out);
static void read_cgroup_line(const char *root, char *line, struct gar_os_limits *out);
static void walk_up(const char *root, const char *mount, const char *group,
                    struct gar_os_limits *out);
static void read_group(const char *folder, struct gar_os_limits *out);
static bool read_number(const char *folder, const char *file, int64_t *out);
static void note_quota(int64_t quota_us, int64_t period_us, struct gar_os_limits *out);
static int32_t count_affinity(void);
static int64_t ram_bytes(const char *root);
static bool has_controller(const char *list, const char *name);

void gar_os_limits_read(const char *root, struct gar_os_limits *out)
{
    memset(out, 0, sizeof *out);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    out->cpus_online = online > 0 ? (int32_t)gar_min_i64(online, INT32_MAX) : 1;
    out->cpus_affinity = count_affinity();
    if (out->cpus_affinity <= 0) {
        out->cpus_affinity = out->cpus_online;
    }
    out->cpu_quota_milli = INT64_MAX;
    out->cgroup_bytes = INT64_MAX;
    out->address_space_bytes = INT64_MAX;
    read_cgroups(root, out);
    out->cpus = out->cpus_affinity;
    if (out->cpu_quota_milli != INT64_MAX) {
        out->cpus =
            (int32_t)gar_min_i64(out->cpus, gar_max_i64((out->cpu_quota_milli + 999) / 1000, 1));
    }
    out->ram_bytes = ram_bytes(root);
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
        space.rlim_cur < (rlim_t)INT64_MAX) {
        out->address_space_bytes = (int64_t)space.rlim_cur;
    }
    out->memory_bytes =
        gar_min_i64(gar_min_i64(out->ram_bytes, out->cgroup_bytes), out->address_space_bytes);
}

static struct gar_os_limits real_limits;
static struct gar_once real_once = GAR_ONCE_INIT;

static void read_real(void)
{
    gar_os_limits_read("", &real_limits);
}

const struct gar_os_limits *gar_os_limits(void)
{
    gar_once_run(&real_once, read_real);
    return &real_limits;
}

/* The number behind `key` in a "Key:  12 kB" text, or -1. */
static int64_t find_field(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at == NULL ? -1 : (int64_t)strtoll(at + strlen(key), NULL, 10);
}

void gar_os_usage_read(struct gar_os_usage *out)
{
    memset(out, 0xff, sizeof *out); /* all -1 */
    char text[TEXT_BYTES];
    if (read_text("/proc/self/status", text) > 0) {
        const int64_t resident_kib = find_field(text, "VmRSS:");
        const int64_t peak_kib = find_field(text, "VmHWM:");
        out->resident_bytes = resident_kib < 0 ? -1 : resident_kib * 1024;
        out->peak_resident_bytes = peak_kib < 0 ? -1 : peak_kib * 1024;
        out->threads = find_field(text, "Threads:");
    }
    struct gar_dir_list files;
    if (gar_dir_read("/proc/self/fd", &files, NULL) == GAR_OK) {
        out->open_files = files.count - 1; /* less the one that lists */
        gar_dir_list_destroy(&files);
    }
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        out->minor_faults = (int64_t)usage.ru_minflt;
        out->user_ns =
            (int64_t)usage.ru_utime.tv_sec * GAR_NS_PER_S + (int64_t)usage.ru_utime.tv_usec * 1000;
        out->system_ns =
            (int64_t)usage.ru_stime.tv_sec * GAR_NS_PER_S + (int64_t)usage.ru_stime.tv_usec * 1000;
    }
}

/* The first TEXT_BYTES - 1 bytes of a file as text; its size, or -1. Not through os/file.c: its fault hook is for the
 * user's files. */
static int64_t read_text(const char *path, char *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int64_t size = 0;
    while (size < TEXT_BYTES - 1) {
        const ssize_t got = read(fd, out + size, (size_t)(TEXT_BYTES - 1 - size));
        if (got <= 0) {
            break;
        }
        size += (int64_t)got;
    }
    (void)close(fd);
    out[size] = '\0';
    return size;
}

static void read_cgroups(const char *root, struct gar_os_limits *out)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (read_text(path, text) < 0) {
        text[0] = '\0';
    }
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        read_cgroup_line(root, line, out);
    }
}

/* "4:memory:/group" or "0::/group". */
static void read_cgroup_line(const char *root, char *line, struct gar_os_limits *out)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return;
    }
    controllers++;
    *group++ = '\0';
    if (controllers[0] == '\0') {
        walk_up(root, "/sys/fs/cgroup", group, out);
        walk_up(root, "/sys/fs/cgroup/unified", group, out);
    } else if (has_controller(controllers, "memory") || has_controller(controllers, "cpu")) {
        char mount[256];
        (void)snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controllers);
        walk_up(root, mount, group, out);
        if (has_controller(controllers, "cpu")) {
            walk_up(root, "/sys/fs/cgroup/cpu", group, out);
        }
    }
}

static bool has_controller(const char *list, const char *name)
{
    const size_t size = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == '\0')) {
            return true;
        }
    }
    return false;
}

static void walk_up(const char *root, const char *mount, const char *group,
                    struct gar_os_limits *out)
{
    char folder[PATH_BYTES];
    const int size = snprintf(folder, sizeof folder, "%s%s%s", root, mount, group);
    if (size < 0 || size >= (int)sizeof folder) {
        return;
    }
    const size_t shortest = strlen(root) + strlen(mount);
    for (;;) {
        read_group(folder, out);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < shortest) {
            return;
        }
        *slash = '\0';
    }
}

/* Either version's files; those of the other are missing. */
static void read_group(const char *folder, struct gar_os_limits *out)
{
    int64_t bytes;
    if (read_number(folder, "memory.max", &bytes) ||
        read_number(folder, "memory.limit_in_bytes", &bytes)) {
        if (bytes > 0 && bytes < HUGE_BYTES) {
            out->cgroup_bytes = gar_min_i64(out->cgroup_bytes, bytes);
        }
    }
    char path[PATH_BYTES + 32];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_text(path, text) > 0) { /* "150000 100000", or "max 100000" */
        char *end;
        const int64_t quota_us = (int64_t)strtoll(text, &end, 10);
        if (end != text) {
            note_quota(quota_us, (int64_t)strtoll(end, NULL, 10), out);
        }
        return;
    }
    int64_t quota;
    int64_t period;
    if (read_number(folder, "cpu.cfs_quota_us", &quota) &&
        read_number(folder, "cpu.cfs_period_us", &period)) {
        note_quota(quota, period, out);
    }
}

static bool read_number(const char *folder, const char *file, int64_t *out)
{
    char path[PATH_BYTES + 32];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    if (read_text(path, text) <= 0) {
        return false;
    }
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (end == text) { /* "max" */
        return false;
    }
    *out = (int64_t)value;
    return true;
}

static void note_quota(int64_t quota_us, int64_t period_us, struct gar_os_limits *out)
{
    if (quota_us > 0 && period_us > 0 && quota_us < INT64_MAX / 1000) {
        out->cpu_quota_milli =
            gar_min_i64(out->cpu_quota_milli, gar_max_i64(quota_us * 1000 / period_us, 1));
    }
}

/* The mask may be larger than cpu_set_t on big machines. -1 when unknown. */
static int32_t count_affinity(void)
{
    for (size_t bits = 1024; bits <= (size_t)1 << 18; bits *= 4) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (set == NULL) {
            return -1;
        }
        const size_t bytes = CPU_ALLOC_SIZE(bits);
        const int code = sched_getaffinity(0, bytes, set);
        const int32_t count = code == 0 ? CPU_COUNT_S(bytes, set) : -1;
        CPU_FREE(set);
        if (code == 0) {
            return count;
        }
    }
    return -1;
}

static int64_t ram_bytes(const char *root)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_text(path, text) > 0) {
        const int64_t kib = find_field(text, "MemTotal:");
        if (kib > 0) {
            return kib * 1024;
        }
    }
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (int64_t)pages * (int64_t)page_bytes : INT64_MAX;
}
