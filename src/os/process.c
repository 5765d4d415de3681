/* SPDX-License-Identifier: Apache-2.0 */
/* Processes over posix_spawn(3) and pidfds. */
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fault.h"

#define PIDFD_ID ((idtype_t)3) /* P_PIDFD, Linux 5.4; older headers lack the name */

static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    const int code = posix_spawnattr_setsigmask(attributes, &none);
    return code != 0 ? code : posix_spawnattr_setsigdefault(attributes, &all);
}

static int set_files(posix_spawn_file_actions_t *actions, const struct gar_process_options *options)
{
    int code = 0;
    for (int32_t i = 0; code == 0 && i < options->fd_count; i++) {
        code = options->fds[i] < 0
                   ? posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0)
                   : posix_spawn_file_actions_adddup2(actions, options->fds[i], i);
    }
    return code != 0 ? code : posix_spawn_file_actions_addclosefrom_np(actions, options->fd_count);
}

/* posix_spawn does not write its argument lists. */
static int spawn(const struct gar_process_options *options, pid_t *out)
{
    union {
        const char *const *constant;
        char *const *plain;
    } argv = {.constant = options->argv}, environment = {.constant = options->environment};
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        return code;
    }
    code = posix_spawn_file_actions_init(&actions);
    if (code != 0) {
        (void)posix_spawnattr_destroy(&attributes);
        return code;
    }
    code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETPGROUP);
    code = code != 0 ? code : posix_spawnattr_setpgroup(&attributes, 0);
    code = code != 0 ? code : set_signals(&attributes);
    code = code != 0 ? code : set_files(&actions, options);
    code = code != 0 ? code
                     : posix_spawnp(out, options->argv[0], &actions, &attributes, argv.plain,
                                    environment.plain);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return code;
}

enum gar_status gar_process_start(const struct gar_process_options *options,
                                  struct gar_process *out, struct gar_error *err)
{
    pid_t pid = 0;
    int code = gar_os_fault_hit(GAR_OS_PROCESS);
    code = code != 0 ? code : spawn(options, &pid);
    if (code != 0) {
        return gar_error_set_errno(err, code, "cannot start '%s'", options->argv[0]);
    }
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        code = errno;
        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return gar_error_set_errno(err, code, "cannot watch process %lld ('%s')", (long long)pid,
                                   options->argv[0]);
    }
    out->pid = pid;
    out->fd = fd;
    return GAR_OK;
}

void gar_process_kill(const struct gar_process *process)
{
    /* Not reaped yet, so the number is still its own (or, where the host reaps all children, gone). */
    if (process->pid > 1) {
        (void)kill(-(pid_t)process->pid, SIGKILL);
        (void)syscall(SYS_pidfd_send_signal, process->fd, SIGKILL, NULL, 0);
    }
}

bool gar_process_reap(const struct gar_process *process, struct gar_process_end *out)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    int code;
    do {
        code = waitid(PIDFD_ID, (id_t)process->fd, &info, WEXITED | WNOHANG);
    } while (code != 0 && errno == EINTR);
    *out = (struct gar_process_end){.exit_code = -1};
    if (code != 0) { /* ECHILD: the host reaps all children */
        return true;
    }
    if (info.si_pid == 0) {
        return false;
    }
    out->is_known = true;
    if (info.si_code == CLD_EXITED) {
        out->exit_code = info.si_status;
    } else {
        out->signal = info.si_status;
    }
    return true;
}

bool gar_process_is_stopped(const struct gar_process *process)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    const int code = waitid(PIDFD_ID, (id_t)process->fd, &info, WSTOPPED | WNOHANG | WNOWAIT);
    return code == 0 && info.si_pid != 0 && info.si_code == CLD_STOPPED;
}

void gar_process_close(struct gar_process *process)
{
    if (process->pid != 0 && process->fd >= 0) {
        (void)close(process->fd);
    }
    *process = (struct gar_process){0, -1};
}

bool gar_process_follow_parent(int64_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return getppid() == (pid_t)parent;
}

int64_t gar_process_self(void)
{
    return getpid();
}

bool gar_process_may_live(int64_t pid)
{
    return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

/* Text of a small file, cut; empty when it cannot be read. */
static void read_small(const char *path, char *out, size_t out_bytes)
{
    size_t got = 0;
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        got = fread(out, 1, out_bytes - 1, file);
        (void)fclose(file);
    }
    out[got] = 0;
}

/* The counter in a file of the control group that a line of /proc/self/cgroup names; -1: there is none. */
static int64_t read_oom_kills(const char *groups, const char *line, const char *root,
                              const char *file)
{
    char path[640];
    char text[512];
    const char *at = strstr(groups, line);
    if (at == NULL) {
        return -1;
    }
    at += strlen(line);
    (void)snprintf(path, sizeof path, "%s%.*s/%s", root, (int)strcspn(at, "\n"), at, file);
    read_small(path, text, sizeof text);
    const char *count = strstr(text, "oom_kill ");
    return count == NULL ? -1 : strtoll(count + strlen("oom_kill "), NULL, 10);
}

int64_t gar_process_oom_kills(void)
{
    char groups[2048];
    read_small("/proc/self/cgroup", groups, sizeof groups);
    const int64_t kills = read_oom_kills(groups, "0::", "/sys/fs/cgroup", "memory.events");
    return kills >= 0
               ? kills
               : read_oom_kills(groups, ":memory:", "/sys/fs/cgroup/memory", "memory.oom_control");
}

int64_t gar_process_private_bytes(const struct gar_process *process)
{
    char path[64];
    char text[128];
    (void)snprintf(path, sizeof path, "/proc/%lld/statm", (long long)process->pid);
    read_small(path, text, sizeof text);
    char *end = text;
    (void)strtoll(end, &end, 10);
    const int64_t resident = strtoll(end, &end, 10);
    const int64_t shared = strtoll(end, &end, 10);
    return end == text ? -1 : gar_max_i64(resident - shared, 0) * (int64_t)sysconf(_SC_PAGESIZE);
}
