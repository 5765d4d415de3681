/* SPDX-License-Identifier: Apache-2.0 */
/* Container limits, read from made-up proc and sys folders. */
#include "os/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/file.h"
#include "os/map.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/gar_limits_test_XXXXXX");
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command); /* NOLINT(cert-env33-c): a fixed command on a folder made here */
}

static void put(const char *path, const char *text)
{
    char full[512];
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    char *slash = strrchr(full, '/');
    *slash = '\0';
    assert_int_equal(gar_dir_make(full, NULL), GAR_OK);
    *slash = '/';
    int fd;
    assert_int_equal(gar_file_open(full, GAR_FILE_CREATE, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_write(fd, full, text, (int64_t)strlen(text), NULL), GAR_OK);
    assert_int_equal(gar_file_close(fd, full, NULL), GAR_OK);
}

static void test_none(void **state)
{
    (void)state;
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_true(limits.cpus >= 1);
    assert_int_equal(limits.cgroup_bytes, INT64_MAX);
    assert_int_equal(limits.cpu_quota_milli, INT64_MAX);
    assert_true(limits.ram_bytes > 0);
}

static void test_v2_parents(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/meminfo", "MemTotal:        4096000 kB\nMemFree: 1 kB\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/memory.max", "536870912\n");
    put("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_int_equal(limits.ram_bytes, INT64_C(4096000) * 1024);
    assert_int_equal(limits.cgroup_bytes, 536870912);
    assert_int_equal(limits.memory_bytes, 536870912);
    assert_int_equal(limits.cpu_quota_milli, 1000);
    assert_int_equal(limits.cpus, 1);
}

/* The host's path is named but only the container's root is mounted. */
static void test_v2_foreign_path(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/kubepods/pod1/x\n");
    put("sys/fs/cgroup/memory.max", "1048576000\n");
    put("sys/fs/cgroup/cpu.max", "50000 100000\n");
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_int_equal(limits.cgroup_bytes, 1048576000);
    assert_int_equal(limits.cpu_quota_milli, 500);
    assert_int_equal(limits.cpus, 1);
}

static void test_v1(void **state)
{
    (void)state;
    put("proc/self/cgroup", "9:memory:/docker/1\n5:cpu,cpuacct:/docker/1\n2:cpuset:/docker/1\n");
    put("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "268435456\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "150000\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_int_equal(limits.cgroup_bytes, 268435456);
    assert_int_equal(limits.cpu_quota_milli, 1500);
    assert_true(limits.cpus <= 2);
}

/* Both at once: the controllers are v1's, v2 is only mounted. The quota may be any ancestor's. */
static void test_hybrid(void **state)
{
    (void)state;
    put("proc/self/cgroup", "3:cpuacct,cpu:/a/b\n2:memory:/a\n0::/user.slice\n");
    put("sys/fs/cgroup/unified/user.slice/cgroup.procs", "1\n");
    put("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n");
    put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n");
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_int_equal(limits.cpu_quota_milli, 400);
    assert_int_equal(limits.cpus, 1);
    assert_int_equal(limits.cgroup_bytes, 1073741824);
}

/* A quota above what the affinity mask allows bounds nothing. */
static void test_v2_wide_quota(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "409600000 100000\n");
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_int_equal(limits.cpu_quota_milli, 4096000);
    assert_int_equal(limits.cpus, limits.cpus_affinity);
}

static void test_nonsense(void **state)
{
    (void)state;
    put("proc/self/cgroup", "\n:\n0:\n0::\n::::\n1:memory\n");
    put("sys/fs/cgroup/memory.max", "-5");
    put("sys/fs/cgroup/cpu.max", "0 0\n");
    put("proc/meminfo", "MemTotal:");
    struct gar_os_limits limits;
    gar_os_limits_read(root, &limits);
    assert_int_equal(limits.cgroup_bytes, INT64_MAX);
    assert_int_equal(limits.cpu_quota_milli, INT64_MAX);
    assert_true(limits.ram_bytes > 0);
}

static void test_usage(void **state)
{
    (void)state;
    struct gar_os_usage usage;
    gar_os_usage_read(&usage);
    assert_true(usage.resident_bytes > 0);
    assert_true(usage.peak_resident_bytes > 0);
    assert_int_equal(usage.threads >= 1, 1);
    assert_true(usage.open_files >= 3);
    assert_true(usage.minor_faults > 0);
    assert_true(gar_os_limits()->cpus >= 1);
}

static void test_map(void **state)
{
    (void)state;
    char *data = gar_map_new(2 * GAR_MAP_HUGE_BYTES, true);
    assert_non_null(data);
    assert_int_equal((intptr_t)data % GAR_MAP_HUGE_BYTES, 0);
    gar_map_populate(data, GAR_MAP_HUGE_BYTES);
    assert_int_equal(data[0], 0);
    data[2 * GAR_MAP_HUGE_BYTES - 1] = 7;
    gar_map_discard(data, 2 * GAR_MAP_HUGE_BYTES);
    assert_int_equal(data[2 * GAR_MAP_HUGE_BYTES - 1], 0);
    gar_map_free(data, 2 * GAR_MAP_HUGE_BYTES);
    data = gar_map_new(3 * GAR_MAP_PAGE_BYTES, false);
    assert_non_null(data);
    data[3 * GAR_MAP_PAGE_BYTES - 1] = 1;
    gar_map_free(data, 3 * GAR_MAP_PAGE_BYTES);
    assert_null(gar_map_new(INT64_MAX / GAR_MAP_HUGE_BYTES * GAR_MAP_HUGE_BYTES, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_none, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_v2_parents, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_v2_foreign_path, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_v1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_hybrid, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_v2_wide_quota, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_nonsense, make_root, remove_root),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
