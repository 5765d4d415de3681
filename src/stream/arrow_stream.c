/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters between our streams and the Arrow C stream interface. Nothing foreign is believed: a missing callback, a
 * failing one and arrays that lie become errors of the query. */
#include "stream/arrow_stream.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

/* ---- ours, seen as an ArrowArrayStream ---- */

struct exported {
    struct gar_stream *stream; /* owned */
    enum gar_text_layout layout;
    struct gar_memory *memory; /* owned reference */
    bool has_interrupt;
    struct gar_interrupt interrupt;
    void (*release)(void *context);
    void *context;
    struct gar_error error; /* of the last failed call */
};

static int fail(struct exported *exported, enum gar_status status);
static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out);
static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out);
static const char *get_last_error(struct ArrowArrayStream *self);
static void release_exported(struct ArrowArrayStream *self);

enum gar_status gar_stream_export(struct gar_stream *stream,
                                  const struct gar_arrow_export_options *options,
                                  struct ArrowArrayStream *out, struct gar_error *err)
{
    struct exported *exported = gar_calloc(1, (int64_t)sizeof *exported);
    if (exported == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *exported);
    }
    exported->stream = stream;
    exported->layout = options->layout;
    exported->memory = gar_memory_ref(options->memory);
    exported->has_interrupt = options->interrupt != NULL;
    if (options->interrupt != NULL) {
        exported->interrupt = *options->interrupt;
    }
    exported->release = options->release;
    exported->context = options->context;
    out->get_schema = get_schema;
    out->get_next = get_next;
    out->get_last_error = get_last_error;
    out->release = release_exported;
    out->private_data = exported;
    return GAR_OK;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    struct exported *exported = self->private_data;
    return fail(exported, gar_schema_export(gar_stream_schema(exported->stream), exported->layout,
                                            out, &exported->error));
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct exported *exported = self->private_data;
    struct gar_batch *batch = NULL;
    enum gar_status status =
        gar_stream_next(exported->stream, exported->has_interrupt ? &exported->interrupt : NULL,
                        &batch, &exported->error);
    if (status == GAR_EOF) {
        memset(out, 0, sizeof *out);
        return 0;
    }
    if (status == GAR_OK) {
        status = gar_batch_export(batch, exported->layout, exported->memory, out, &exported->error);
        gar_batch_unref(batch);
    }
    return fail(exported, status);
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    const struct exported *exported = self->private_data;
    return exported->error.message[0] == '\0' ? NULL : exported->error.message;
}

static void release_exported(struct ArrowArrayStream *self)
{
    struct exported *exported = self->private_data;
    self->release = NULL;
    self->private_data = NULL;
    gar_stream_free(exported->stream);
    gar_memory_unref(exported->memory);
    if (exported->release != NULL) {
        exported->release(exported->context);
    }
    gar_free(exported);
}

/* 0, or the errno that consumers of the interface expect. */
static int fail(struct exported *exported, enum gar_status status)
{
    if (status >= 0) {
        exported->error.message[0] = '\0';
        return 0;
    }
    if (status == GAR_ERR_INTERRUPTED) {
        return EINTR;
    }
    if (status == GAR_ERR_CANCELLED) {
        return ECANCELED;
    }
    if (status == GAR_ERR_TIMEOUT) {
        return ETIMEDOUT;
    }
    if (status == GAR_ERR_NOMEM) {
        return ENOMEM;
    }
    if (status == GAR_ERR_UNSUPPORTED) {
        return ENOTSUP;
    }
    if (status == GAR_ERR_IO || status == GAR_ERR_INTERNAL) {
        return EIO;
    }
    return EINVAL;
}

/* ---- foreign ones ---- */

struct gar_arrow_reader {
    struct ArrowArrayStream abi;   /* owned */
    struct ArrowSchema abi_schema; /* owned */
    struct gar_schema *schema;     /* owned reference */
    enum gar_status end;           /* GAR_OK while it goes on */
    struct gar_error error;
};

static enum gar_status producer_error(struct ArrowArrayStream *abi, int code,
                                      struct gar_error *err);
static enum gar_status read_batch(struct gar_arrow_reader *reader, struct gar_memory *memory,
                                  struct gar_batch **out, struct gar_error *err);

enum gar_status gar_arrow_reader_open(struct ArrowArrayStream *abi, struct gar_arrow_reader **out,
                                      struct gar_error *err)
{
    if (abi->release == NULL) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "the Arrow stream has been released already; a stream can be read once");
    }
    struct gar_arrow_reader *reader = gar_calloc(1, (int64_t)sizeof *reader);
    if (reader == NULL) {
        abi->release(abi);
        abi->release = NULL;
        return gar_error_nomem(err, (int64_t)sizeof *reader);
    }
    reader->abi = *abi;
    abi->release = NULL;
    enum gar_status status = GAR_OK;
    if (reader->abi.get_schema == NULL || reader->abi.get_next == NULL) {
        status = gar_error_set(err, GAR_ERR_CALLBACK,
                               "the Arrow stream has no get_schema or get_next function");
    } else {
        const int code = reader->abi.get_schema(&reader->abi, &reader->abi_schema);
        if (code != 0) {
            reader->abi_schema.release = NULL; /* not to be trusted after a failure */
            status = producer_error(&reader->abi, code, err);
        } else if (reader->abi_schema.release == NULL) {
            status =
                gar_error_set(err, GAR_ERR_CALLBACK, "the Arrow stream gave a released schema");
        } else {
            status = gar_schema_import(&reader->abi_schema, &reader->schema, err);
        }
    }
    if (status != GAR_OK) {
        gar_arrow_reader_free(reader);
        return status;
    }
    *out = reader;
    return GAR_OK;
}

struct gar_schema *gar_arrow_reader_schema(const struct gar_arrow_reader *reader)
{
    return reader->schema;
}

enum gar_status gar_arrow_reader_next(struct gar_arrow_reader *reader, struct gar_memory *memory,
                                      struct gar_batch **out, struct gar_error *err)
{
    if (reader->end == GAR_OK) {
        const enum gar_status status = read_batch(reader, memory, out, &reader->error);
        if (status == GAR_OK) {
            return GAR_OK;
        }
        reader->end = status;
    }
    if (reader->end < 0 && err != NULL) {
        *err = reader->error;
    }
    return reader->end;
}

void gar_arrow_reader_free(struct gar_arrow_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->abi_schema.release != NULL) {
        reader->abi_schema.release(&reader->abi_schema);
    }
    if (reader->abi.release != NULL) {
        reader->abi.release(&reader->abi);
    }
    gar_schema_unref(reader->schema);
    gar_free(reader);
}

static enum gar_status read_batch(struct gar_arrow_reader *reader, struct gar_memory *memory,
                                  struct gar_batch **out, struct gar_error *err)
{
    struct ArrowArray array;
    memset(&array, 0, sizeof array);
    const int code = reader->abi.get_next(&reader->abi, &array);
    if (code != 0) {
        return producer_error(&reader->abi, code, err);
    }
    if (array.release == NULL) {
        return GAR_EOF;
    }
    return gar_batch_import(&reader->abi_schema, &array, reader->schema, memory, out, err);
}

static enum gar_status producer_error(struct ArrowArrayStream *abi, int code, struct gar_error *err)
{
    const char *text = abi->get_last_error == NULL ? NULL : abi->get_last_error(abi);
    char quoted[512];
    if (text == NULL) {
        text = strerror(
            code); /* NOLINT(concurrency-mt-unsafe): glibc's is thread-safe for known numbers */
    }
    gar_error_quote(text, (int64_t)strlen(text), quoted, (int64_t)sizeof quoted);
    const enum gar_status status = code == ENOMEM      ? GAR_ERR_NOMEM
                                   : code == ECANCELED ? GAR_ERR_CANCELLED
                                   : code == EINTR     ? GAR_ERR_INTERRUPTED
                                                       : GAR_ERR_CALLBACK;
    return gar_error_set(err, status, "the producer of the Arrow stream failed: %s", quoted);
}

/* ---- a foreign one, seen as ours ---- */

struct reader_source {
    struct gar_arrow_reader *reader; /* owned */
    struct gar_memory *memory;       /* owned reference */
};

static enum gar_status next_of_reader(void *context, const struct gar_interrupt *interrupt,
                                      struct gar_batch **out, struct gar_error *err)
{
    (void)interrupt;
    struct reader_source *source = context;
    return gar_arrow_reader_next(source->reader, source->memory, out, err);
}

static void release_reader(void *context)
{
    struct reader_source *source = context;
    gar_arrow_reader_free(source->reader);
    gar_memory_unref(source->memory);
    gar_free(source);
}

enum gar_status gar_arrow_reader_stream(struct gar_arrow_reader *reader, struct gar_memory *memory,
                                        struct gar_stream **out, struct gar_error *err)
{
    static const struct gar_stream_source kind = {.next = next_of_reader,
                                                  .release = release_reader};
    struct reader_source *source = gar_calloc(1, (int64_t)sizeof *source);
    if (source == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *source);
    }
    const enum gar_status status = gar_stream_new_inline(reader->schema, &kind, source, out, err);
    if (status != GAR_OK) {
        gar_free(source);
        return status;
    }
    source->reader = reader;
    source->memory = gar_memory_ref(memory);
    return GAR_OK;
}
