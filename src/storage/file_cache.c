/* SPDX-License-Identifier: Apache-2.0 */
/* A table of sets of four slots. A value goes into the set that its file's inode says, over the slot used longest ago;
 * when all are too large together, a hand goes round and drops what it finds, but what was just added.
 *
 * Why a value found is that of the file: size, time of content, time of change (of anything, set by the kernel
 * alone), device and inode are the same. Two changes within one tick of the kernel's clock have the same times, so a
 * value is kept only when the last change is over SETTLED_NS old. */
#include "storage/file_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/mutex.h"

#define SETTLED_NS (2 * GAR_NS_PER_S)

enum { SETS = 256, WAYS = 4, SLOTS = SETS * WAYS };

struct slot {
    char *path; /* owned; NULL: empty */
    const struct gar_file_cache_kind *kind;
    void *value; /* owned reference */
    struct gar_source_id id;
    int64_t changed_ns;
    int64_t bytes;
    int64_t used; /* number of the last use */
};

static struct gar_mutex lock = GAR_MUTEX_INIT;
static struct {
    struct slot slots[SLOTS];
    int64_t limit;
    int64_t bytes;
    int64_t uses;
    int64_t hand;
} cache; /* under lock */

/* ---- fork ---- */

static void lock_cache(void) GAR_ACQUIRES(lock)
{
    gar_mutex_lock(&lock);
}

static void unlock_cache(void) GAR_RELEASES(lock)
{
    gar_mutex_unlock(&lock);
}

static void handle_forks(void)
{
    static struct gar_fork_handler handler = {
        .before = lock_cache, .after_in_parent = unlock_cache, .after_in_child = unlock_cache};
    gar_fork_register(&handler);
}

/* ---- slots ---- */

/* Taken out of the table; freed when the lock is released. */
struct dropped {
    char *path;
    const struct gar_file_cache_kind *kind;
    void *value;
};

static struct dropped drop_locked(struct slot *slot) GAR_REQUIRES(lock)
{
    const struct dropped dropped = {slot->path, slot->kind, slot->value};
    cache.bytes -= slot->bytes;
    *slot = (struct slot){0};
    return dropped;
}

static void dropped_free(const struct dropped *dropped)
{
    gar_free(dropped->path);
    if (dropped->value != NULL) {
        dropped->kind->unref(dropped->value);
    }
}

static struct slot *set_of(const struct gar_source_id *id)
{
    return &cache.slots[(gar_hash_u64(id->inode ^ id->device) % SETS) * WAYS];
}

static bool is_same(const struct slot *slot, const char *path, const struct gar_source_id *id,
                    int64_t changed_ns)
{
    return slot->path != NULL && slot->changed_ns == changed_ns && slot->id.bytes == id->bytes &&
           slot->id.modified_ns == id->modified_ns && slot->id.device == id->device &&
           slot->id.inode == id->inode && strcmp(slot->path, path) == 0;
}

/* One value less while there are too many bytes; false when there are not. keep stays. */
static bool shrink_locked(const struct slot *keep, struct dropped *out) GAR_REQUIRES(lock)
{
    if (cache.bytes <= cache.limit) {
        return false;
    }
    for (int64_t i = 0; i < SLOTS; i++) {
        cache.hand = (cache.hand + 1) % SLOTS;
        struct slot *slot = &cache.slots[cache.hand];
        if (slot->path != NULL && slot != keep) {
            *out = drop_locked(slot);
            return true;
        }
    }
    return false;
}

static void shrink(const struct slot *keep)
{
    bool is_dropped = true;
    while (is_dropped) {
        struct dropped dropped = {.path = NULL};
        gar_mutex_lock(&lock);
        is_dropped = shrink_locked(keep, &dropped);
        gar_mutex_unlock(&lock);
        dropped_free(&dropped);
    }
}

void gar_file_cache_set_limit(int64_t bytes)
{
    static struct gar_once once = GAR_ONCE_INIT;
    gar_once_run(&once, handle_forks);
    gar_mutex_lock(&lock);
    cache.limit = bytes;
    gar_mutex_unlock(&lock);
    shrink(NULL);
}

void *gar_file_cache_find(const struct gar_file_cache_kind *kind, const struct gar_source *source)
{
    const struct gar_source_id id = gar_source_id_of(source);
    const int64_t changed_ns = gar_source_changed_ns(source);
    const char *path = gar_source_path(source);
    void *found = NULL;
    gar_mutex_lock(&lock);
    struct slot *set = set_of(&id);
    for (int i = 0; i < WAYS && found == NULL && cache.bytes > 0; i++) {
        if (set[i].kind == kind && is_same(&set[i], path, &id, changed_ns)) {
            set[i].used = ++cache.uses;
            found = set[i].value;
            kind->ref(found);
        }
    }
    gar_mutex_unlock(&lock);
    return found;
}

void gar_file_cache_add(const struct gar_file_cache_kind *kind, const struct gar_source *source,
                        void *value, int64_t bytes)
{
    const struct gar_source_id id = gar_source_id_of(source);
    const int64_t changed_ns = gar_source_changed_ns(source);
    const char *path = gar_source_path(source);
    const int64_t latest_ns = gar_max_i64(changed_ns, id.modified_ns);
    if (gar_source_is_stream(source) || gar_clock_wall_ns() - latest_ns < SETTLED_NS ||
        !gar_source_is_unchanged(source)) { /* the value may be of a later state */
        return;
    }
    bytes += (int64_t)strlen(path) + 1;
    gar_mutex_lock(&lock);
    const bool is_wanted = bytes <= cache.limit / 2;
    gar_mutex_unlock(&lock);
    char *copy = is_wanted ? gar_strdup(path) : NULL;
    if (copy == NULL) {
        return; /* what is not kept is worked out again */
    }
    gar_mutex_lock(&lock);
    struct slot *set = set_of(&id);
    struct slot *slot = &set[0];
    for (int i = 1; i < WAYS; i++) {
        slot = set[i].used < slot->used ? &set[i] : slot;
    }
    for (int i = 0; i < WAYS; i++) { /* of an earlier state of the file, or added meanwhile */
        slot = set[i].path != NULL && strcmp(set[i].path, path) == 0 ? &set[i] : slot;
    }
    const struct dropped before = drop_locked(slot);
    kind->ref(value);
    *slot = (struct slot){
        .path = copy,
        .kind = kind,
        .value = value,
        .id = id,
        .changed_ns = changed_ns,
        .bytes = bytes,
        .used = ++cache.uses,
    };
    cache.bytes += bytes;
    gar_mutex_unlock(&lock);
    dropped_free(&before);
    shrink(slot);
}
