/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of users to files. A glob is walked part by part: a part without wildcards is only joined, one with
 * wildcards lists its folder, "**" enters sub-folders (not its own ancestors, which links may lead to, and not
 * deeper than FOLDER_DEPTH_MAX). */
#include "storage/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "os/file.h"

#define FOLDER_DEPTH_MAX 64

/* ---- lists ---- */

enum gar_status gar_path_list_append(struct gar_path_list *list, const char *path,
                                     struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&list->paths, &list->capacity, list->count + 1,
                     (int64_t)sizeof *list->paths, err));
    char *copy = gar_strdup(path);
    if (copy == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(path) + 1);
    }
    list->paths[list->count++] = copy;
    return GAR_OK;
}

void gar_path_list_destroy(struct gar_path_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        gar_free(list->paths[i]);
    }
    gar_free(list->paths);
    memset(list, 0, sizeof *list);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- URIs ---- */

/* Bytes of the scheme in front of "://", or 0. */
static int64_t scheme_bytes(const char *input)
{
    int64_t n = 0;
    while ((input[n] >= 'a' && input[n] <= 'z') || (input[n] >= 'A' && input[n] <= 'Z') ||
           (n > 0 && ((input[n] >= '0' && input[n] <= '9') || input[n] == '+' || input[n] == '-' ||
                      input[n] == '.'))) {
        n++;
    }
    return n > 0 && strncmp(input + n, "://", 3) == 0 ? n : 0;
}

const char *gar_path_redact(const char *input, char *out, int64_t out_bytes)
{
    const int64_t scheme = scheme_bytes(input);
    if (scheme == 0) {
        return gar_error_quote(input, (int64_t)strlen(input), out, out_bytes);
    }
    const char *rest = input + scheme + 3;
    const int64_t authority = (int64_t)strcspn(rest, "/?#");
    const int64_t end = (int64_t)strcspn(rest, "?#");
    int64_t host = 0;
    for (int64_t i = 0; i < authority; i++) {
        host = rest[i] == '@' ? i + 1 : host;
    }
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s://%.*s", (int)scheme, input,
                   (int)gar_min_i64(end - host, 400), rest + host);
    return gar_error_quote(text, (int64_t)strlen(text), out, out_bytes);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static enum gar_status decode_file_uri(const char *input, const char *path, char **out,
                                       struct gar_error *err)
{
    char *text = gar_strdup(path);
    if (text == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(path) + 1);
    }
    int64_t count = 0;
    for (int64_t i = 0; path[i] != '\0'; i++) {
        char c = path[i];
        if (c == '%') {
            const int high = hex_value(path[i + 1]);
            const int low = high < 0 ? -1 : hex_value(path[i + 2]);
            if (low < 0 || high * 16 + low == 0) {
                gar_free(text);
                return gar_error_set(err, GAR_ERR_VALUE, "'%s' has a malformed %%xx at byte %lld",
                                     input, (long long)(path - input + i));
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        text[count++] = c;
    }
    text[count] = '\0';
    *out = text;
    return GAR_OK;
}

static bool is_scheme(const char *input, int64_t bytes, const char *scheme)
{
    if ((int64_t)strlen(scheme) != bytes) {
        return false;
    }
    for (int64_t i = 0; i < bytes; i++) {
        if ((input[i] | 0x20) != scheme[i]) {
            return false;
        }
    }
    return true;
}

enum gar_status gar_path_local(const char *input, char **out, struct gar_error *err)
{
    if (input == NULL || input[0] == '\0') {
        return gar_error_set(err, GAR_ERR_VALUE, "a path is empty");
    }
    const int64_t scheme = scheme_bytes(input);
    if (scheme == 0) {
        *out = gar_strdup(input);
        return *out != NULL ? GAR_OK : gar_error_nomem(err, (int64_t)strlen(input) + 1);
    }
    char shown[256];
    if (!is_scheme(input, scheme, "file")) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "%.*s:// paths are not supported, only local files: '%s'",
                             (int)gar_min_i64(scheme, 32), input,
                             gar_path_redact(input, shown, (int64_t)sizeof shown));
    }
    const char *rest = input + scheme + 3;
    if (strncmp(rest, "localhost/", 10) == 0) {
        rest += 9;
    }
    if (rest[0] != '/') {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "'%s' names another host; local files are file:///path",
                             gar_path_redact(input, shown, (int64_t)sizeof shown));
    }
    return decode_file_uri(input, rest, out, err);
}

/* ---- wildcards ---- */

bool gar_path_has_wildcard(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

/* Is c in the class that starts behind '['? *end gets the index behind ']', 0 when there is no ']'. */
static bool class_has(const char *p, int64_t bytes, uint8_t c, int64_t *end)
{
    int64_t i = 0;
    const bool negated = i < bytes && (p[i] == '!' || p[i] == '^');
    bool found = false;
    i += negated;
    for (int64_t first = i; i < bytes && (p[i] != ']' || i == first); i++) {
        const uint8_t low = (uint8_t)p[i];
        uint8_t high = low;
        if (i + 2 < bytes && p[i + 1] == '-' && p[i + 2] != ']') {
            high = (uint8_t)p[i + 2];
            i += 2;
        }
        found |= c >= low && c <= high;
    }
    *end = i < bytes ? i + 1 : 0;
    return found != negated;
}

/* Bytes of the UTF-8 character (or one stray byte). */
static int64_t character_bytes(const char *name)
{
    int64_t n = 1;
    while ((name[n] & 0xc0) == 0x80 && ((uint8_t)name[0] & 0xc0) == 0xc0 && n < 4) {
        n++;
    }
    return n;
}

/* One pattern item against the start of name: bytes of name taken (0: no match), *used bytes of pattern. */
static int64_t match_item(const char *pattern, int64_t bytes, const char *name, int64_t *used)
{
    *used = 1;
    if (name[0] == '\0') {
        return 0;
    }
    if (pattern[0] == '?') {
        return character_bytes(name);
    }
    if (pattern[0] == '[') {
        int64_t end;
        const bool is_in = class_has(pattern + 1, bytes - 1, (uint8_t)name[0], &end);
        if (end > 0) {
            *used = end + 1;
            return is_in ? 1 : 0;
        }
    }
    return pattern[0] == name[0] ? 1 : 0;
}

bool gar_glob_match(const char *pattern, int64_t pattern_bytes, const char *name)
{
    int64_t p = 0;
    int64_t n = 0;
    int64_t star = -1; /* where to go on after the last '*', with which place in name */
    int64_t star_name = 0;
    for (;;) {
        if (p < pattern_bytes && pattern[p] == '*') {
            star = ++p;
            star_name = n;
            continue;
        }
        if (p == pattern_bytes && name[n] == '\0') {
            return true;
        }
        int64_t used = 0;
        const int64_t taken =
            p < pattern_bytes ? match_item(pattern + p, pattern_bytes - p, name + n, &used) : 0;
        if (taken > 0) {
            p += used;
            n += taken;
            continue;
        }
        if (star < 0 || name[star_name] == '\0') {
            return false;
        }
        p = star;
        n = ++star_name;
    }
}

/* ---- walking ---- */

static char *join(const char *folder, const char *name, int64_t name_bytes)
{
    struct gar_strbuf path = {0};
    gar_strbuf_append(&path, folder);
    if (folder[0] != '\0' && folder[strlen(folder) - 1] != '/') {
        gar_strbuf_append_char(&path, '/');
    }
    gar_strbuf_append_n(&path, name, name_bytes);
    char *text = gar_strbuf_take(&path);
    gar_strbuf_destroy(&path);
    return text;
}

char *gar_path_join(const char *folder, const char *name)
{
    return join(folder, name, (int64_t)strlen(name));
}

int64_t gar_path_bytes(const char *path)
{
    struct gar_file_info info;
    return strcmp(path, "-") != 0 && gar_file_stat(path, &info, NULL) >= 0 &&
                   info.kind == GAR_FILE_REGULAR
               ? info.bytes
               : -1;
}

bool gar_path_is_folder(const char *path)
{
    struct gar_file_info info;
    return gar_file_stat(path, &info, NULL) >= 0 && info.kind == GAR_FILE_DIRECTORY;
}

static bool is_hidden(const char *name)
{
    return name[0] == '_' || name[0] == '.';
}

struct walk {
    struct gar_path_list *out;
    uint64_t ancestors[FOLDER_DEPTH_MAX][2]; /* device and inode of folders that "**" is in */
    int32_t depth;
    int64_t folders_met; /* that a last part matched and left out */
    struct gar_error *err;
};

static enum gar_status walk_pattern(struct walk *walk, const char *folder, const char *pattern);

/* A path whose pattern is used up. */
static enum gar_status take_file(struct walk *walk, const char *path, enum gar_file_kind kind)
{
    if (kind == GAR_FILE_DIRECTORY) {
        walk->folders_met++;
        return GAR_OK;
    }
    return gar_path_list_append(walk->out, path, walk->err);
}

static const char *rest_of(const char *pattern, int64_t part)
{
    pattern += part;
    while (*pattern == '/') {
        pattern++;
    }
    return pattern;
}

/* Entries of `folder` that match the first part of the pattern. */
static enum gar_status walk_names(struct walk *walk, const char *folder, const char *pattern,
                                  int64_t part)
{
    const char *rest = rest_of(pattern, part);
    struct gar_dir_list list = {0};
    enum gar_status status = gar_dir_read(folder[0] == '\0' ? "." : folder, &list, walk->err);
    for (int64_t i = 0; i < list.count && status >= 0; i++) {
        const struct gar_dir_entry *entry = &list.entries[i];
        if ((is_hidden(entry->name) && entry->name[0] != pattern[0]) ||
            !gar_glob_match(pattern, part, entry->name) ||
            (*rest != '\0' && entry->kind != GAR_FILE_DIRECTORY)) {
            continue;
        }
        char *path = join(folder, entry->name, (int64_t)strlen(entry->name));
        if (path == NULL) {
            status = gar_error_nomem(walk->err, 0);
        } else {
            status =
                *rest == '\0' ? take_file(walk, path, entry->kind) : walk_pattern(walk, path, rest);
        }
        gar_free(path);
    }
    gar_dir_list_destroy(&list);
    return status;
}

static bool is_ancestor(const struct walk *walk, const struct gar_file_info *info)
{
    for (int32_t i = 0; i < walk->depth; i++) {
        if (walk->ancestors[i][0] == info->device && walk->ancestors[i][1] == info->inode) {
            return true;
        }
    }
    return false;
}

/* "**" followed by `rest`: the rest here, then "**" again in every sub-folder. */
static enum gar_status walk_deep(struct walk *walk, const char *folder, const char *rest)
{
    const char *name = folder[0] == '\0' ? "." : folder;
    struct gar_file_info info;
    GAR_TRY(gar_file_stat(name, &info, walk->err));
    if (is_ancestor(walk, &info)) {
        return GAR_OK;
    }
    if (walk->depth == FOLDER_DEPTH_MAX) {
        return gar_error_set(walk->err, GAR_ERR_IO,
                             "'%s' lies more than %d folders deep; name a folder further down",
                             name, FOLDER_DEPTH_MAX);
    }
    walk->ancestors[walk->depth][0] = info.device;
    walk->ancestors[walk->depth][1] = info.inode;
    walk->depth++;
    enum gar_status status = walk_pattern(walk, folder, *rest == '\0' ? "*" : rest);
    struct gar_dir_list list = {0};
    if (status >= 0) {
        status = gar_dir_read(name, &list, walk->err);
    }
    for (int64_t i = 0; i < list.count && status >= 0; i++) {
        if (list.entries[i].kind != GAR_FILE_DIRECTORY || is_hidden(list.entries[i].name)) {
            continue;
        }
        char *path = join(folder, list.entries[i].name, (int64_t)strlen(list.entries[i].name));
        status = path == NULL ? gar_error_nomem(walk->err, 0) : walk_deep(walk, path, rest);
        gar_free(path);
    }
    gar_dir_list_destroy(&list);
    walk->depth--;
    return status;
}

static bool is_deep(const char *pattern)
{
    return strncmp(pattern, "**", 2) == 0 && (pattern[2] == '/' || pattern[2] == '\0');
}

/* Whatever under `folder` ("" or a path that exists) matches the pattern, which is not empty. */
static enum gar_status walk_pattern(struct walk *walk, const char *folder, const char *pattern)
{
    const int64_t part = (int64_t)strcspn(pattern, "/");
    if (is_deep(pattern)) {
        const char *rest = rest_of(pattern, part);
        while (is_deep(rest)) {
            rest = rest_of(rest, 2);
        }
        return walk_deep(walk, folder, rest);
    }
    if (memchr(pattern, '*', (size_t)part) != NULL || memchr(pattern, '?', (size_t)part) != NULL ||
        memchr(pattern, '[', (size_t)part) != NULL) {
        return walk_names(walk, folder, pattern, part);
    }
    const char *rest = rest_of(pattern, part);
    char *path = join(folder, pattern, part);
    if (path == NULL) {
        return gar_error_nomem(walk->err, 0);
    }
    struct gar_file_info info;
    struct gar_error failure = GAR_ERROR_INIT;
    enum gar_status status = gar_file_stat(path, &info, &failure);
    if (status < 0 && (failure.os_errno == ENOENT || failure.os_errno == ENOTDIR)) {
        status = GAR_OK; /* nothing matches */
    } else if (status < 0) {
        if (walk->err != NULL) {
            *walk->err = failure;
        }
    } else if (*rest == '\0') {
        status = take_file(walk, path, info.kind);
    } else if (info.kind == GAR_FILE_DIRECTORY) {
        status = walk_pattern(walk, path, rest);
    }
    gar_free(path);
    return status;
}

static enum gar_status expand_glob(const char *path, struct gar_path_list *out,
                                   struct gar_error *err)
{
    const int64_t before = out->count;
    struct walk walk = {.out = out, .err = err};
    const bool is_absolute = path[0] == '/';
    GAR_TRY(walk_pattern(&walk, is_absolute ? "/" : "", is_absolute ? rest_of(path, 0) : path));
    if (out->count == before) {
        if (walk.folders_met == 0) {
            return gar_error_set_errno(err, ENOENT, "no files match '%s'", path);
        }
        return gar_error_set_errno(
            err, ENOENT, "'%s' matches only folders; '%s/*' or '%s/**' lists the files in them",
            path, path, path);
    }
    qsort(out->paths + before, (size_t)(out->count - before), sizeof *out->paths, compare_paths);
    int64_t kept = before + 1;
    for (int64_t i = before + 1; i < out->count; i++) {
        if (strcmp(out->paths[i], out->paths[kept - 1]) == 0) {
            gar_free(out->paths[i]); /* reached on two ways */
        } else {
            out->paths[kept++] = out->paths[i];
        }
    }
    out->count = kept;
    return GAR_OK;
}

/* ---- folders ---- */

static enum gar_status no_files(const char *path, const char *folder_name, bool has_empty,
                                struct gar_error *err)
{
    if (folder_name != NULL) {
        return gar_error_set_errno(
            err, ENOENT,
            "folder '%s' has no files of its own, only folders such as '%s'; '%s%s**' lists them "
            "recursively",
            path, folder_name, path, path[strlen(path) - 1] == '/' ? "" : "/");
    }
    return gar_error_set_errno(err, ENOENT, "folder '%s' has no files%s", path,
                               has_empty ? " with anything in them (empty ones are left out)"
                                         : " (names that start with '_' or '.' are left out)");
}

static enum gar_status take_entries(const char *path, const struct gar_dir_list *list,
                                    struct gar_path_list *out, struct gar_error *err)
{
    const char *folder_name = NULL;
    bool has_empty = false;
    const int64_t before = out->count;
    for (int64_t i = 0; i < list->count; i++) {
        const struct gar_dir_entry *entry = &list->entries[i];
        if (is_hidden(entry->name)) {
            continue;
        }
        if (entry->kind == GAR_FILE_DIRECTORY) {
            folder_name = folder_name == NULL ? entry->name : folder_name;
            continue;
        }
        char *full = join(path, entry->name, (int64_t)strlen(entry->name));
        if (full == NULL) {
            return gar_error_nomem(err, 0);
        }
        struct gar_file_info info;
        enum gar_status status = gar_file_stat(full, &info, err);
        const bool is_empty = status >= 0 && info.kind == GAR_FILE_REGULAR && info.bytes == 0;
        if (status >= 0 && !is_empty) {
            status = gar_path_list_append(out, full, err);
        }
        has_empty |= is_empty;
        gar_free(full);
        GAR_TRY(status);
    }
    return out->count > before ? GAR_OK : no_files(path, folder_name, has_empty, err);
}

static enum gar_status expand_folder(const char *path, struct gar_path_list *out,
                                     struct gar_error *err)
{
    struct gar_dir_list list = {0};
    enum gar_status status = gar_dir_read(path, &list, err);
    if (status >= 0) {
        status = take_entries(path, &list, out, err);
    }
    gar_dir_list_destroy(&list);
    return status;
}

static enum gar_status expand_one(const char *path, struct gar_path_list *out,
                                  struct gar_error *err)
{
    if (strcmp(path, "-") == 0) {
        return gar_path_list_append(out, path, err);
    }
    struct gar_file_info info;
    struct gar_error failure = GAR_ERROR_INIT;
    const enum gar_status status = gar_file_stat(path, &info, &failure);
    if (status >= 0) {
        return info.kind == GAR_FILE_DIRECTORY ? expand_folder(path, out, err)
                                               : gar_path_list_append(out, path, err);
    }
    if ((failure.os_errno == ENOENT || failure.os_errno == ENOTDIR) &&
        gar_path_has_wildcard(path)) {
        return expand_glob(path, out, err);
    }
    if (failure.os_errno == ENOENT) {
        return gar_error_set_errno(err, ENOENT, "cannot read '%s'", path);
    }
    if (err != NULL) {
        *err = failure;
    }
    return status;
}

enum gar_status gar_paths_expand(const char *const *inputs, int64_t count,
                                 struct gar_path_list *out, struct gar_error *err)
{
    *out = (struct gar_path_list){0};
    enum gar_status status =
        count > 0 ? GAR_OK : gar_error_set(err, GAR_ERR_VALUE, "no path is given");
    for (int64_t i = 0; i < count && status >= 0; i++) {
        char *path = NULL;
        status = gar_path_local(inputs[i], &path, err);
        if (status >= 0) {
            status = expand_one(path, out, err);
        }
        gar_free(path);
    }
    if (status < 0) {
        gar_path_list_destroy(out);
    }
    return status;
}
