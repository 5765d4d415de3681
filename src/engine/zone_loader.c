/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of time zones for kernels/zone.h. Names come from users and from files, so that only names that stay
 * inside a folder are looked for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/zone_loader_priv.h"
#include "kernels/zone.h"
#include "os/file.h"
#include "os/mutex.h"

enum { FILE_BYTES_MAX = 1 << 20, FOLDER_BYTES = 1024, FOLDERS = 4 };

/* Written once, under `once`; "" where there is none. */
static char folders[FOLDERS][FOLDER_BYTES];
static struct gar_once once = GAR_ONCE_INIT;

static void take_folder(int32_t at, const char *text)
{
    if (text != NULL && strlen(text) < FOLDER_BYTES) {
        (void)snprintf(folders[at], FOLDER_BYTES, "%s", text);
    }
}

static void take_folders(void)
{
    take_folder(0, getenv("TZDIR"));
    take_folder(1, "/usr/share/zoneinfo");
    take_folder(2, "/usr/lib/zoneinfo");
    take_folder(3, getenv("GAR_TZDATA"));
}

void gar_zone_loader_install(void)
{
    gar_once_run(&once, take_folders);
    gar_zone_set_loader(gar_zone_load_file);
}

/* Letters, digits, '_', '+', '-', '.', and '/' between parts; no part is empty or starts with a dot. */
static bool is_zone_name(const char *name)
{
    char before = '/';
    for (const char *c = name; *c != '\0'; c++) {
        const bool is_alnum =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if ((!is_alnum && strchr("_+-./", *c) == NULL) ||
            (before == '/' && (*c == '/' || *c == '.'))) {
            return false;
        }
        before = *c;
    }
    return before != '/';
}

static enum gar_status read_whole(int fd, const char *path, int64_t bytes, uint8_t **out_data,
                                  int64_t *out_bytes, struct gar_error *err)
{
    if (bytes > FILE_BYTES_MAX) {
        return gar_error_set(err, GAR_ERR_FORMAT, "%s: %lld bytes are too many for a time zone",
                             path, (long long)bytes);
    }
    uint8_t *data = gar_malloc(bytes);
    if (data == NULL) {
        return gar_error_nomem(err, bytes);
    }
    const enum gar_status status = gar_file_read_at(fd, path, data, bytes, 0, out_bytes, err);
    if (status != GAR_OK) {
        gar_free(data);
        return status;
    }
    *out_data = data;
    return GAR_OK;
}

/* GAR_EOF when the folder has no such file. */
static enum gar_status load_from(const char *folder, const char *name, uint8_t **out_data,
                                 int64_t *out_bytes, struct gar_error *err)
{
    char path[FOLDER_BYTES + 256];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return GAR_EOF;
    }
    struct gar_error why = GAR_ERROR_INIT;
    struct gar_file_info info;
    int fd = -1;
    enum gar_status status = gar_file_open(path, GAR_FILE_READ, &fd, &why);
    if (status == GAR_OK) {
        status = gar_file_stat_fd(fd, path, &info, &why);
    }
    if (status == GAR_OK && info.kind != GAR_FILE_REGULAR) {
        status = GAR_EOF; /* "Europe" is a folder */
    } else if (status == GAR_OK) {
        status = read_whole(fd, path, info.bytes, out_data, out_bytes, &why);
    }
    if (fd >= 0) {
        (void)(gar_file_close(fd, path, NULL) < 0); /* nothing was written */
    }
    if (status >= 0) {
        return status;
    }
    const bool is_absent =
        why.os_errno == ENOENT || why.os_errno == ENOTDIR || why.os_errno == EISDIR;
    return is_absent ? GAR_EOF : gar_error_set(err, status, "%s", why.message);
}

enum gar_status gar_zone_load_file(const char *name, uint8_t **out_data, int64_t *out_bytes,
                                   struct gar_error *err)
{
    char shown[160];
    gar_error_quote(name, (int64_t)strlen(name), shown, sizeof shown);
    if (!is_zone_name(name)) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "unknown time zone '%s'; zones are called like Europe/Berlin, UTC or +02:00", shown);
    }
    char places[FOLDERS * (FOLDER_BYTES + 2)];
    int64_t used = 0;
    places[0] = '\0';
    for (int32_t i = 0; i < FOLDERS; i++) {
        if (folders[i][0] == '\0') {
            continue;
        }
        const enum gar_status status = load_from(folders[i], name, out_data, out_bytes, err);
        if (status != GAR_EOF) {
            return status;
        }
        used += snprintf(places + used, sizeof places - (size_t)used, "%s%s", used > 0 ? ", " : "",
                         folders[i]);
    }
    return gar_error_set(err, GAR_ERR_VALUE,
                         "unknown time zone '%s'; looked in %s: check its name, or install the "
                         "package tzdata, or set GAR_TZDATA to the folder of the zone files",
                         shown, places);
}
