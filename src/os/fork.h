/* SPDX-License-Identifier: Apache-2.0 */
/* What fork(2) does to us: the child has one thread. Owners of threads compare generations; owners of locks register. */
#ifndef GAR_OS_FORK_H
#define GAR_OS_FORK_H

#include "base/attrs.h"

/* Counts the forks that led to this process; an object made under another number lost its threads. */
uint64_t gar_fork_generation(void);

/* Called around every fork, the newest first. Lives for ever: use static storage; one that is known already stays where it
 * is. Nobody may register while holding a lock that a handler takes. */
struct gar_fork_handler {
    void (*before)(void);
    void (*after_in_parent)(void);
    void (*after_in_child)(void);
    struct gar_fork_handler *next; /* owned by os/fork.c */
};
void gar_fork_register(struct gar_fork_handler *handler);

#endif
