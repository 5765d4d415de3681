/* SPDX-License-Identifier: Apache-2.0 */
/* Between our streams and the Arrow C stream interface, in both directions. */
#ifndef GAR_STREAM_ARROW_STREAM_H
#define GAR_STREAM_ARROW_STREAM_H

#include <gar/arrow_abi.h>

#include "arrow/abi.h"
#include "stream/stream.h"

struct gar_arrow_export_options {
    enum gar_text_layout layout;
    struct gar_memory *memory;             /* for what must be copied; a reference is kept */
    const struct gar_interrupt *interrupt; /* copied; may be NULL; asked while get_next waits */
    void (*release)(void *context);        /* called after the stream is freed; may be NULL */
    void *context;
};
/* Moves the stream into *out on success; out->release frees it. Errors inside get_next come as errno (EINTR, ECANCELED,
 * ETIMEDOUT, ENOMEM, EIO, ENOTSUP, EINVAL) with get_last_error's text. Threads: one consumer at a time. */
GAR_MUST_USE enum gar_status gar_stream_export(struct gar_stream *stream,
                                               const struct gar_arrow_export_options *options,
                                               struct ArrowArrayStream *out, struct gar_error *err);

/* Pulls from a foreign Arrow stream. */
struct gar_arrow_reader;

/* Moves *abi (its release is NULL afterwards, also on failure) and reads its schema. may block.
 * Errors: GAR_ERR_CALLBACK with the producer's text; GAR_ERR_UNSUPPORTED naming a field. Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_arrow_reader_open(struct ArrowArrayStream *abi,
                                                   struct gar_arrow_reader **out,
                                                   struct gar_error *err);
struct gar_schema *gar_arrow_reader_schema(const struct gar_arrow_reader *reader); /* borrowed */
/* GAR_OK with *out, GAR_EOF, or an error (stays). Blocks as the producer does: IO pool or the caller's thread, one at
 * a time. */
GAR_MUST_USE enum gar_status gar_arrow_reader_next(struct gar_arrow_reader *reader,
                                                   struct gar_memory *memory,
                                                   struct gar_batch **out, struct gar_error *err);
void gar_arrow_reader_free(struct gar_arrow_reader *reader);
/* An inline gar_stream over the reader (moved on success). memory is kept. */
GAR_MUST_USE enum gar_status gar_arrow_reader_stream(struct gar_arrow_reader *reader,
                                                     struct gar_memory *memory,
                                                     struct gar_stream **out,
                                                     struct gar_error *err);

#endif
