/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share: the input as a file without a name on disk, and reading a frame to its end. */
#ifndef GAR_FUZZ_INPUT_H
#define GAR_FUZZ_INPUT_H

#include <gar/gar.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* One session for all inputs. Small budget: an input that makes the engine want more gets an error. */
static inline struct gar_session *fuzz_session(void)
{
    static struct gar_session *session;
    if (session == NULL) {
        struct gar_settings settings;
        gar_settings_init(&settings);
        settings.memory_limit_bytes = (int64_t)256 << 20;
        settings.num_threads = 1;
        settings.io_threads = 1;
        struct gar_error err;
        if (gar_session_new(&settings, &session, &err) != GAR_OK) {
            (void)fprintf(stderr, "no session: %s\n", err.message);
            abort();
        }
    }
    return session;
}

/* A descriptor of a file in memory that holds the bytes; path (of 64 bytes) names it. */
static inline int fuzz_file(const uint8_t *data, size_t size, char *path)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < size) {
        const ssize_t wrote = pwrite(fd, data + done, size - done, (off_t)done);
        if (wrote <= 0) {
            abort();
        }
        done += (size_t)wrote;
    }
    if (fd < 0) {
        abort();
    }
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* Runs the frame and drops its batches. Any error is fine; what comes must be a whole stream. */
static inline void fuzz_drain(const struct gar_frame *frame)
{
    struct gar_result *result = NULL;
    struct gar_error err;
    if (gar_frame_run(frame, NULL, &result, &err) != GAR_OK) {
        return;
    }
    struct ArrowArray batch;
    while (gar_result_next(result, GAR_TEXT_AS_LARGE, &batch, &err) == GAR_OK) {
        batch.release(&batch);
    }
    gar_result_release(result);
}

#endif
