/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nests: what nested types are made of, one per distinct content for the life of the process. */
#include <string.h>

#include "arrow/type.h"
#include "base/hash.h"
#include "base/utf8.h"

#define NEST_BYTES_MAX (INT64_C(16) << 20)
#define NEST_BUCKETS   1024

/* The nest and its names follow the entry. */
struct entry {
    struct entry *next;
    const struct gar_nest *nest;
    enum gar_type_id id;
};

/* Entries are never taken out, so readers need no lock: one is filled first and then published by a compare-and-swap on
 * its bucket. Fixed room rather than allocations, because it outlives every account. */
static struct {
    struct entry *heads[NEST_BUCKETS]; /* atomic */
    int64_t used;                      /* atomic; bytes handed out */
    uint8_t room[NEST_BYTES_MAX] GAR_ALIGNED(16);
} nests;

/* The name under which field i is kept. */
static const char *kept_name(enum gar_type_id id, const struct gar_nest_field *fields, int32_t i)
{
    switch (id) {
    case GAR_LIST:
    case GAR_FIXED_LIST: return "item";
    case GAR_MAP: return i == 0 ? "key" : "value";
    default: return fields[i].name;
    }
}

static enum gar_status check_name(const struct gar_nest_field *fields, int32_t i,
                                  struct gar_error *err)
{
    const char *name = fields[i].name;
    const int64_t bytes = name != NULL ? (int64_t)strlen(name) : 0;
    if (name == NULL || bytes > GAR_NEST_NAME_MAX || !gar_utf8_valid(name, bytes)) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "the name of struct field %d is not UTF-8 text of at most %d bytes", i,
                             GAR_NEST_NAME_MAX);
    }
    for (int32_t k = 0; k < i; k++) {
        if (strcmp(fields[k].name, name) == 0) {
            char quoted[96];
            return gar_error_set(err, GAR_ERR_TYPE,
                                 "a struct has two fields '%s'; names must be distinct",
                                 gar_error_quote(name, bytes, quoted, (int64_t)sizeof quoted));
        }
    }
    return GAR_OK;
}

static enum gar_status check_nest(enum gar_type_id id, const struct gar_nest_field *fields,
                                  int32_t count, int32_t width, int32_t *out_depth,
                                  struct gar_error *err)
{
    if (!gar_type_is_nested(gar_type_of(id))) {
        return gar_error_set(err, GAR_ERR_TYPE, "type number %d has no fields", (int)id);
    }
    const int32_t want = id == GAR_MAP ? 2 : 1;
    if (count < 0 || count > GAR_NEST_FIELDS_MAX || (id != GAR_STRUCT && count != want)) {
        return gar_error_set(err, GAR_ERR_TYPE, "a nested type cannot have %d fields", count);
    }
    if (width < 0 || (id != GAR_FIXED_LIST && width != 0)) {
        return gar_error_set(err, GAR_ERR_TYPE, "a list of %d items a row is impossible", width);
    }
    int32_t depth = 0;
    for (int32_t i = 0; i < count; i++) {
        if (id == GAR_STRUCT) {
            GAR_TRY(check_name(fields, i, err));
        }
        GAR_TRY(gar_type_check(fields[i].type, err));
        const struct gar_nest *inner = fields[i].type.nest;
        depth = inner != NULL && inner->depth > depth ? inner->depth : depth;
    }
    if (depth >= GAR_NEST_DEPTH_MAX) {
        return gar_error_set(err, GAR_ERR_TYPE, "a type with more than %d levels of nesting",
                             GAR_NEST_DEPTH_MAX);
    }
    *out_depth = depth + 1;
    return GAR_OK;
}

static bool same_nest(const struct entry *entry, enum gar_type_id id,
                      const struct gar_nest_field *fields, int32_t count, int32_t width)
{
    const struct gar_nest *nest = entry->nest;
    if (entry->id != id || nest->count != count || nest->width != width) {
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        if (!gar_type_equal(nest->fields[i].type, fields[i].type) ||
            strcmp(nest->fields[i].name, kept_name(id, fields, i)) != 0) {
            return false;
        }
    }
    return true;
}

static const struct gar_nest *find_nest(const struct entry *head, enum gar_type_id id,
                                        const struct gar_nest_field *fields, int32_t count,
                                        int32_t width)
{
    for (const struct entry *at = head; at != NULL; at = at->next) {
        if (same_nest(at, id, fields, count, width)) {
            return at->nest;
        }
    }
    return NULL;
}

/* The bucket; names and kinds of types are enough to spread. */
static struct entry **bucket_of(enum gar_type_id id, const struct gar_nest_field *fields,
                                int32_t count, int32_t width)
{
    uint64_t hash = (uint64_t)id * 31 + (uint64_t)width;
    for (int32_t i = 0; i < count; i++) {
        const char *name = kept_name(id, fields, i);
        hash = hash * UINT64_C(0x9e3779b97f4a7c15) + gar_hash_bytes(name, (int64_t)strlen(name)) +
               (uint64_t)fields[i].type.id + ((uint64_t)(uintptr_t)fields[i].type.nest >> 4);
        hash ^= hash >> 29;
    }
    return &nests.heads[hash % NEST_BUCKETS];
}

/* An entry that nobody sees yet; NULL when the room is full. */
static struct entry *new_entry(enum gar_type_id id, const struct gar_nest_field *fields,
                               int32_t count, int32_t width, int32_t depth)
{
    const int64_t fields_at = (int64_t)sizeof(struct entry);
    const int64_t names_at = fields_at + (int64_t)sizeof(struct gar_nest) +
                             count * (int64_t)sizeof(struct gar_nest_field);
    int64_t bytes = names_at;
    for (int32_t i = 0; i < count; i++) {
        bytes += (int64_t)strlen(kept_name(id, fields, i)) + 1;
    }
    bytes = (bytes + 15) / 16 * 16;
    int64_t at = __atomic_load_n(&nests.used, __ATOMIC_RELAXED);
    do {
        if (bytes > NEST_BYTES_MAX - at) {
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&nests.used, &at, at + bytes, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    struct entry *entry = (struct entry *)(void *)(nests.room + at);
    struct gar_nest *nest = (struct gar_nest *)(void *)(nests.room + at + fields_at);
    char *name = (char *)nests.room + at + names_at;
    nest->count = count;
    nest->width = width;
    nest->depth = depth;
    for (int32_t i = 0; i < count; i++) {
        const char *kept = kept_name(id, fields, i);
        const size_t name_bytes = strlen(kept) + 1;
        memcpy(name, kept, name_bytes);
        nest->fields[i] = (struct gar_nest_field){name, fields[i].type, true};
        name += name_bytes;
    }
    *entry = (struct entry){NULL, nest, id};
    return entry;
}

const struct gar_nest *gar_nest_intern(enum gar_type_id id, const struct gar_nest_field *fields,
                                       int32_t count, int32_t width, struct gar_error *err)
{
    int32_t depth = 0;
    if (check_nest(id, fields, count, width, &depth, err) < 0) {
        return NULL;
    }
    struct entry **bucket = bucket_of(id, fields, count, width);
    struct entry *head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    const struct gar_nest *found = find_nest(head, id, fields, count, width);
    if (found != NULL) {
        return found;
    }
    struct entry *entry = new_entry(id, fields, count, width, depth);
    if (entry == NULL) {
        (void)gar_error_set(err, GAR_ERR_UNSUPPORTED,
                            "the nested types of this process need more than %d MiB",
                            (int)(NEST_BYTES_MAX >> 20));
        return NULL;
    }
    do {
        found = find_nest(head, id, fields, count, width);
        if (found != NULL) {
            return found; /* another thread was faster; the room stays unused */
        }
        entry->next = head;
    } while (!__atomic_compare_exchange_n(bucket, &head, entry, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return entry->nest;
}
