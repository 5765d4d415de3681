/* SPDX-License-Identifier: Apache-2.0 */
/* Pairing heap. `previous` is the left sibling, or the parent of a first child, or NULL at the root. */
#include <assert.h>
#include <stddef.h>

#include "runtime/timer_priv.h"

static struct gar_timer *merge(struct gar_timer *a, struct gar_timer *b);
static struct gar_timer *merge_siblings(struct gar_timer *first);

void gar_timer_insert(struct gar_timer **root, struct gar_timer *timer)
{
    assert(!timer->is_running);
    timer->child = NULL;
    timer->sibling = NULL;
    timer->previous = NULL;
    timer->is_running = true;
    *root = merge(*root, timer);
}

void gar_timer_remove(struct gar_timer **root, struct gar_timer *timer)
{
    assert(timer->is_running);
    struct gar_timer *rest = merge_siblings(timer->child);
    if (timer == *root) {
        *root = rest;
    } else {
        if (timer->previous->child == timer) {
            timer->previous->child = timer->sibling;
        } else {
            timer->previous->sibling = timer->sibling;
        }
        if (timer->sibling != NULL) {
            timer->sibling->previous = timer->previous;
        }
        *root = merge(*root, rest);
    }
    timer->is_running = false;
}

/* Both are roots or NULL. */
static struct gar_timer *merge(struct gar_timer *a, struct gar_timer *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    if (b->deadline_ns < a->deadline_ns) {
        struct gar_timer *swap = a;
        a = b;
        b = swap;
    }
    b->previous = a;
    b->sibling = a->child;
    if (a->child != NULL) {
        a->child->previous = b;
    }
    a->child = b;
    return a;
}

/* Pairs from left to right, then all pairs from right to left: the order that gives the logarithmic bound. */
static struct gar_timer *merge_siblings(struct gar_timer *first)
{
    struct gar_timer *pairs = NULL;
    while (first != NULL) {
        struct gar_timer *a = first;
        struct gar_timer *b = a->sibling;
        first = b == NULL ? NULL : b->sibling;
        a->sibling = NULL;
        a->previous = NULL;
        if (b != NULL) {
            b->sibling = NULL;
            b->previous = NULL;
        }
        struct gar_timer *pair = merge(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    struct gar_timer *all = NULL;
    while (pairs != NULL) {
        struct gar_timer *pair = pairs;
        pairs = pair->sibling;
        pair->sibling = NULL;
        all = merge(all, pair);
    }
    return all;
}
