/* SPDX-License-Identifier: Apache-2.0 */
/* Fork state: a generation counter and handlers that owners of locks add. */
#include "os/fork.h"

#include <pthread.h>

#include "os/mutex.h"

static struct gar_mutex lock = GAR_MUTEX_INIT; /* guards the list; held across a fork */
static struct gar_fork_handler *newest;        /* newest first */
static uint64_t generation;
static struct gar_once once = GAR_ONCE_INIT;

static void before(void) GAR_NO_TSA
{
    gar_mutex_lock(&lock);
    for (struct gar_fork_handler *h = newest; h != NULL; h = h->next) {
        h->before();
    }
}

/* The list is newest first; locks are given back in any order. */
static void after_in_parent(void) GAR_NO_TSA
{
    for (struct gar_fork_handler *h = newest; h != NULL; h = h->next) {
        h->after_in_parent();
    }
    gar_mutex_unlock(&lock);
}

static void after_in_child(void) GAR_NO_TSA
{
    generation++;
    for (struct gar_fork_handler *h = newest; h != NULL; h = h->next) {
        h->after_in_child();
    }
    gar_mutex_unlock(&lock);
}

static void install(void)
{
    (void)pthread_atfork(before, after_in_parent, after_in_child);
}

uint64_t gar_fork_generation(void)
{
    gar_once_run(&once, install);
    return generation;
}

void gar_fork_register(struct gar_fork_handler *handler)
{
    gar_once_run(&once, install);
    gar_mutex_lock(&lock);
    const struct gar_fork_handler *found = newest;
    while (found != NULL && found != handler) {
        found = found->next;
    }
    if (found == NULL) {
        handler->next = newest;
        newest = handler;
    }
    gar_mutex_unlock(&lock);
}
