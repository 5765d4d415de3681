/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes: started by exec of a program, watched by descriptor, never by number. */
#ifndef GAR_OS_PROCESS_H
#define GAR_OS_PROCESS_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_process_options {
    const char *const *argv; /* argv[0]: a path, or a name looked up in PATH; ends with NULL */
    const char *const *environment; /* the whole environment; ends with NULL */
    const int *
        fds; /* become descriptors 0, 1, 2, ... of the new process; -1: /dev/null; nothing else is passed on */
    int32_t fd_count;
};

/* Zeroed = none. */
struct gar_process {
    int64_t pid;
    int fd; /* readable when it has ended; -1 once closed */
};

/* Leads its own process group, blocks and ignores no signal. The descriptors must be above fd_count (gar_fd_move_up).
 * Errors: GAR_ERR_IO naming the program, with the system's reason.
 * Owns: gar_process_close after gar_process_reap. Threads: the caller should outlive the process: a death signal that the
 * process asks for follows the starting thread. Blocks until the program is loaded (a few ms). */
GAR_MUST_USE enum gar_status gar_process_start(const struct gar_process_options *options,
                                               struct gar_process *out, struct gar_error *err);
/* SIGKILL to it and to all that is left of its group. Before it is reaped only. */
void gar_process_kill(const struct gar_process *process);

struct gar_process_end {
    int32_t exit_code; /* -1: it did not exit by itself, or nobody knows */
    int32_t signal;    /* 0: none */
    bool is_known;     /* false: somebody else reaped it */
};
/* After fd became readable. False while it still runs. Never blocks. */
bool gar_process_reap(const struct gar_process *process, struct gar_process_end *out);
/* Is it stopped by a signal (SIGSTOP, a debugger)? */
bool gar_process_is_stopped(const struct gar_process *process);
void gar_process_close(struct gar_process *process);

/* Die with the thread that started this process; false when that has gone already. parent: its process's number. */
bool gar_process_follow_parent(int64_t parent);
int64_t gar_process_self(void);
/* May there be a process of this number? */
bool gar_process_may_live(int64_t pid);
/* How often the kernel has killed for lack of memory in our cgroup; -1 unknown. Reads a file. */
int64_t gar_process_oom_kills(void);
/* Resident bytes that the process has alone, without what it shares; -1 unknown. Reads a file. */
int64_t gar_process_private_bytes(const struct gar_process *process);

#endif
