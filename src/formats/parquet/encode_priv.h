/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the row group encoder: a column's rows become dense physical values, these become pages. */
#ifndef GAR_FORMATS_PARQUET_ENCODE_PRIV_H
#define GAR_FORMATS_PARQUET_ENCODE_PRIV_H

#include "base/strbuf.h"
#include "formats/parquet/page_codec_priv.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

/* How a type is stored. */
struct parquet_storage {
    int32_t physical; /* enum gar_parquet_physical */
    int32_t
        bytes; /* of a dense value; 0 for booleans (a bitmap) and texts (struct parquet_slice) */
    int32_t logical;   /* enum parquet_logical */
    int32_t converted; /* enum parquet_converted */
};

struct parquet_storage gar_parquet_storage_of(struct gar_type type);

/* A text's bytes, borrowed from the batches. */
struct parquet_slice {
    const uint8_t *data;
    int64_t bytes;
};

/* One column of a row group before it is encoded. A zeroed struct is safe to destroy. */
struct parquet_dense {
    struct gar_type type;
    struct parquet_storage storage;
    int64_t rows;
    int64_t count;               /* non-null rows */
    struct gar_buffer *validity; /* owned; NULL when there are no nulls */
    struct gar_buffer *values;   /* owned; count values */
    struct gar_column **held;    /* owned references that slices point into */
    struct gar_column **sources; /* owned references: the same rows as they came */
    int64_t held_count;
};

/* Gathers column `number` of the batches (selection-free). Errors: GAR_ERR_NOMEM, GAR_ERR_OVERFLOW (a timestamp in seconds
 * beyond milliseconds). Owns: the caller destroys. */
GAR_MUST_USE enum gar_status gar_parquet_dense_make(struct gar_batch *const *batches, int64_t count,
                                                    int64_t number, struct gar_memory *memory,
                                                    struct parquet_dense *out,
                                                    struct gar_error *err);
void gar_parquet_dense_destroy(struct parquet_dense *dense);

/* A growing run of bytes in column memory. A zeroed struct with memory set is valid. */
struct parquet_bytes {
    struct gar_memory *memory; /* borrowed */
    struct gar_buffer *buffer; /* owned; size is what is in use */
};

/* Room for `bytes` more at the end: *out points to it; the caller then adds what it wrote to buffer->size. */
GAR_MUST_USE enum gar_status gar_parquet_bytes_room(struct parquet_bytes *bytes, int64_t more,
                                                    uint8_t **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_parquet_bytes_append(struct parquet_bytes *bytes, const void *data,
                                                      int64_t count, struct gar_error *err);

/* A dictionary of dense values, or none when it would not pay. */
struct parquet_dictionary {
    struct gar_buffer *codes;  /* owned; uint32_t for each dense value */
    struct gar_buffer *firsts; /* owned; uint32_t, for each entry the dense value it came from */
    int64_t entries;
    int64_t bytes; /* of the entries in PLAIN */
};

/* *out has entries 0 when there are too many distinct values or their bytes pass bytes_max. */
GAR_MUST_USE enum gar_status gar_parquet_dictionary_make(const struct parquet_dense *dense,
                                                         int64_t bytes_max,
                                                         struct gar_memory *memory,
                                                         struct parquet_dictionary *out,
                                                         struct gar_error *err);
void gar_parquet_dictionary_destroy(struct parquet_dictionary *dictionary);

/* Statistics in the footer's form: PLAIN bytes. has_bounds false: none. */
struct parquet_statistics {
    struct gar_strbuf min;
    struct gar_strbuf max;
    bool has_bounds;
};

/* numbers: the dense values that show every distinct one, count of them; NULL: look at all. */
GAR_MUST_USE enum gar_status gar_parquet_statistics_make(const struct parquet_dense *dense,
                                                         const uint32_t *numbers, int64_t count,
                                                         struct parquet_statistics *out,
                                                         struct gar_error *err);
void gar_parquet_statistics_destroy(struct parquet_statistics *statistics);

/* One encoded column chunk; places are relative to its first byte. A zeroed struct is safe to destroy. */
struct parquet_encoded {
    struct gar_buffer *bytes; /* owned */
    int64_t dictionary_bytes; /* dictionary page with header; 0: none */
    int64_t uncompressed_bytes;
    int64_t values;
    int64_t null_count;
    enum gar_parquet_codec codec;
    bool has_dictionary;
    struct parquet_statistics statistics;
};

GAR_MUST_USE enum gar_status gar_parquet_column_encode(
    const struct parquet_dense *dense, const struct gar_parquet_write_options *options,
    struct page_codec *codec, struct gar_memory *memory, struct parquet_encoded *out,
    struct gar_error *err);
void gar_parquet_encoded_destroy(struct parquet_encoded *encoded);

/* PLAIN bytes of dense values [from, from + count); of the values numbered by `numbers` when that is not NULL. */
GAR_MUST_USE enum gar_status gar_parquet_plain_append(const struct parquet_dense *dense,
                                                      int64_t from, int64_t count,
                                                      const uint32_t *numbers,
                                                      struct parquet_bytes *out,
                                                      struct gar_error *err);

/* The hybrid of runs and packed groups, without a length in front. width 0..32. */
GAR_MUST_USE enum gar_status gar_rle_append(const uint32_t *values, int64_t count, int32_t width,
                                            struct parquet_bytes *out, struct gar_error *err);
/* Definition levels of rows [from, from + rows): validity bits (NULL: none is null), with their length in front. */
GAR_MUST_USE enum gar_status gar_levels_append(const uint8_t *validity, int64_t from, int64_t rows,
                                               struct parquet_bytes *out, struct gar_error *err);

struct gar_parquet_group {
    int64_t rows;
    int64_t column_count;
    struct parquet_encoded *columns; /* owned */
};

/* What the footer keeps of a column chunk that has been handed out. */
struct parquet_placed {
    int64_t offset;
    int64_t bytes;
    struct parquet_encoded encoded; /* its bytes given away */
};

/* footer_write.c: the metadata of a whole file. placed: column_count of each group, group after group. */
GAR_MUST_USE enum gar_status gar_parquet_footer_write(
    const struct gar_schema *schema, const int64_t *group_rows, int64_t group_count,
    const struct parquet_placed *placed, struct gar_strbuf *out, struct gar_error *err);
/* arrow_facts_write.c: the Arrow schema as base64, when some type needs it to come back as it was; else empty. */
GAR_MUST_USE enum gar_status gar_parquet_arrow_facts_write(const struct gar_schema *schema,
                                                           struct gar_strbuf *out,
                                                           struct gar_error *err);

#endif
