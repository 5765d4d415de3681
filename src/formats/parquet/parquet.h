/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet: footer, column chunk decoder, statistics for pruning, row group encoder. Bytes in, columns out and back;
 * no IO and no threads. Messages name column, row group, page and offset; the caller puts the path in front.
 *
 * Reading:  gar_parquet_footer_need -> gar_parquet_file_parse -> gar_parquet_prune -> gar_parquet_chunk_range
 *           -> gar_parquet_reader_new -> gar_parquet_reader_read / _skip / _read_selected -> gar_parquet_reader_free
 * Writing:  gar_parquet_writer_new -> (gar_parquet_writer_append -> gar_parquet_writer_next ...)
 *           -> gar_parquet_writer_finish -> gar_parquet_writer_next ... -> gar_parquet_writer_free */
#ifndef GAR_FORMATS_PARQUET_PARQUET_H
#define GAR_FORMATS_PARQUET_PARQUET_H

#include "arrow/batch.h"
#include "arrow/value.h"

/* ------------------------------------------------------------------ the footer */

/* Numbers as the format gives them. */
enum gar_parquet_codec {
    GAR_PARQUET_NONE = 0,
    GAR_PARQUET_SNAPPY = 1,
    GAR_PARQUET_GZIP = 2,
    GAR_PARQUET_LZO = 3, /* refused */
    GAR_PARQUET_BROTLI = 4,
    GAR_PARQUET_LZ4_HADOOP = 5, /* deprecated; read only */
    GAR_PARQUET_ZSTD = 6,
    GAR_PARQUET_LZ4_RAW = 7,
};

enum gar_parquet_physical {
    GAR_PARQUET_BOOLEAN = 0,
    GAR_PARQUET_INT32 = 1,
    GAR_PARQUET_INT64 = 2,
    GAR_PARQUET_INT96 = 3,
    GAR_PARQUET_FLOAT = 4,
    GAR_PARQUET_DOUBLE = 5,
    GAR_PARQUET_BYTE_ARRAY = 6,
    GAR_PARQUET_FIXED = 7, /* FIXED_LEN_BYTE_ARRAY */
};

/* One top-level column. Strings live as long as the file. */
struct gar_parquet_column {
    const char *name;
    struct gar_type type;    /* as in the schema; null type when unsupported */
    const char *unsupported; /* NULL, or why it cannot be read ("nested (list)") */
    int64_t leaf;        /* number of its column chunk in each row group (the first, when nested) */
    uint8_t physical;    /* enum gar_parquet_physical */
    uint8_t conversion;  /* how physical values become `type`; private */
    bool optional;       /* may have nulls: definition levels are there */
    bool min_max_signed; /* the legacy min/max fields are in the right order */
    int32_t fixed_bytes; /* length of FIXED values, else 0 */
    int32_t field_id;    /* -1: none */
};

/* One column chunk as the footer describes it; places checked against the file's size. */
struct gar_parquet_chunk {
    int64_t offset;              /* first byte: dictionary page if any, else first data page */
    int64_t bytes;               /* pages with their headers, compressed */
    int64_t uncompressed_bytes;  /* as written; a hint */
    int64_t values;              /* levels, nulls included */
    int64_t null_count;          /* -1: unknown */
    int64_t distinct_count;      /* -1: unknown */
    int64_t nan_count;           /* -1: unknown */
    int64_t column_index_offset; /* page index and Bloom filter places; 0: none */
    int64_t column_index_bytes;
    int64_t offset_index_offset;
    int64_t offset_index_bytes;
    int64_t bloom_offset;
    int64_t bloom_bytes;
    const uint8_t *min; /* statistics as stored (PLAIN without length), NULL: none */
    const uint8_t *max;
    const uint8_t *legacy_min; /* the deprecated fields */
    const uint8_t *legacy_max;
    int32_t min_bytes;
    int32_t max_bytes;
    int32_t legacy_min_bytes;
    int32_t legacy_max_bytes;
    uint32_t encodings; /* bit per encoding number below 32 */
    uint8_t codec;      /* enum gar_parquet_codec */
    int8_t min_exact;   /* is_min_value_exact: 1, 0, or -1 when not said */
    int8_t max_exact;
};

struct gar_parquet_row_group {
    int64_t rows;
    int64_t bytes;                    /* total_byte_size as written; a hint */
    int64_t first_row;                /* number of its first row in the file */
    struct gar_parquet_chunk *chunks; /* leaf_count items */
};

struct gar_parquet_key_value {
    const char *key;
    const char *value; /* "" when absent */
    int64_t value_bytes;
};

/* An immutable parsed footer. */
struct gar_parquet_file {
    int64_t refs; /* atomic */
    int64_t file_bytes;
    int64_t rows;
    struct gar_schema *schema; /* owned; one field per top-level column, duplicates allowed */
    struct gar_parquet_column *columns; /* schema->count items */
    int64_t leaf_count;
    struct gar_parquet_row_group *row_groups;
    int64_t row_group_count;
    struct gar_parquet_key_value *metadata;
    int64_t metadata_count;
    const char *created_by; /* "" when absent */
    uint8_t
        *column_orders; /* leaf_count items: 0 unknown, 1 type-defined, 2 IEEE 754 total order */
    struct gar_parquet_store *store; /* private: what owns the memory of all this */
};

/* How many bytes of the file's end are worth reading first: enough for most footers, never more than the file. */
int64_t gar_parquet_first_read_bytes(int64_t file_bytes);

/* Looks at the last bytes of a file (tail_bytes of them, 8 or more unless the file is shorter) and says how many
 * bytes of its end gar_parquet_file_parse needs. head: the file's first 4 bytes, or NULL; only for better messages.
 * Errors: GAR_ERR_FORMAT: too short, not Parquet, truncated, footer longer than the file; GAR_ERR_UNSUPPORTED: encrypted.
 * Threads: any. */
GAR_MUST_USE enum gar_status gar_parquet_footer_need(const uint8_t *tail, int64_t tail_bytes,
                                                     int64_t file_bytes, const uint8_t *head,
                                                     int64_t *out_need, struct gar_error *err);

/* Parses the footer out of the last tail_bytes (>= need) bytes. Copies what it keeps.
 * Errors: as above, and GAR_ERR_FORMAT for malformed metadata, GAR_ERR_NOMEM. Owns: caller unrefs. Threads: any. */
GAR_MUST_USE enum gar_status gar_parquet_file_parse(const uint8_t *tail, int64_t tail_bytes,
                                                    int64_t file_bytes,
                                                    struct gar_parquet_file **out,
                                                    struct gar_error *err);
struct gar_parquet_file *gar_parquet_file_ref(struct gar_parquet_file *file);
/* Bytes that it holds, about. */
int64_t gar_parquet_file_memory(const struct gar_parquet_file *file);
void gar_parquet_file_unref(struct gar_parquet_file *file);

/* GAR_ERR_UNSUPPORTED naming the column and why, unless the column can be read. */
GAR_MUST_USE enum gar_status gar_parquet_column_check(const struct gar_parquet_file *file,
                                                      int64_t column, struct gar_error *err);

/* The chunk of a top-level column in a row group. */
GAR_INLINE const struct gar_parquet_chunk *gar_parquet_chunk(const struct gar_parquet_file *file,
                                                             int64_t row_group, int64_t column)
{
    return &file->row_groups[row_group].chunks[file->columns[column].leaf];
}

/* ------------------------------------------------------------------ statistics */

/* What is proven about one column of one row group. */
struct gar_parquet_bounds {
    struct gar_value min; /* lower bound of all non-null, non-NaN values; is_valid false: unknown */
    struct gar_value max; /* upper bound */
    bool min_exact;       /* the bound is a value that occurs */
    bool max_exact;
    int64_t null_count; /* -1: unknown */
    int64_t rows;       /* of the row group */
    bool may_have_nan;  /* floats: NaN may be there beside the bounds */
};

/* The safe rules: NaN bounds, deprecated fields of an unsigned or text order, int96, writers known to be wrong and bytes
 * of a wrong length give "unknown". Never fails for bad statistics. -0.0 and 0.0 are widened to cover each other.
 * Errors: GAR_ERR_NOMEM. Owns: caller destroys with gar_parquet_bounds_destroy. Threads: any. */
GAR_MUST_USE enum gar_status gar_parquet_bounds_get(const struct gar_parquet_file *file,
                                                    int64_t row_group, int64_t column,
                                                    struct gar_parquet_bounds *out,
                                                    struct gar_error *err);
void gar_parquet_bounds_destroy(struct gar_parquet_bounds *bounds);

enum gar_parquet_compare {
    GAR_PARQUET_EQ,
    GAR_PARQUET_NE,
    GAR_PARQUET_LT,
    GAR_PARQUET_LE,
    GAR_PARQUET_GT,
    GAR_PARQUET_GE
};

/* True if `column OP literal` is false or null for every row, as the bounds prove. literal has the column's type
 * (else false is returned); a null literal gives true. */
bool gar_parquet_bounds_exclude(const struct gar_parquet_bounds *bounds,
                                enum gar_parquet_compare op, const struct gar_value *literal);

/* ------------------------------------------------------------------ reading column chunks */

/* Decompression contexts and other things worth keeping between readers of one thread. */
struct gar_parquet_scratch;
GAR_MUST_USE enum gar_status gar_parquet_scratch_new(struct gar_memory *memory,
                                                     struct gar_parquet_scratch **out,
                                                     struct gar_error *err);
void gar_parquet_scratch_free(struct gar_parquet_scratch *scratch);

struct gar_parquet_reader_options {
    struct gar_parquet_scratch *scratch; /* borrowed for the reader's life; NULL: one of its own */
    bool flat;                           /* never DICTIONARY columns */
    bool as_binary;                      /* a column of strings as binary: UTF-8 is not checked */
};

struct gar_parquet_reader;

/* Starts reading one column chunk, which lies at data->data + data_offset in full (chunk->bytes). Holds references to
 * file and data: strings of uncompressed pages point into it. options NULL: the defaults. All page headers are looked at
 * here: sizes, encodings and row counts that disagree fail now.
 * Errors: GAR_ERR_UNSUPPORTED (column, codec or encoding), GAR_ERR_FORMAT, GAR_ERR_NOMEM.
 * Owns: caller frees the reader. Threads: one at a time. */
GAR_MUST_USE enum gar_status gar_parquet_reader_new(
    struct gar_parquet_file *file, int64_t row_group, int64_t column, struct gar_buffer *data,
    int64_t data_offset, const struct gar_parquet_reader_options *options,
    struct gar_memory *memory, struct gar_parquet_reader **out, struct gar_error *err);
void gar_parquet_reader_free(struct gar_parquet_reader *reader);

/* Rows that are left. */
int64_t gar_parquet_reader_left(const struct gar_parquet_reader *reader);
/* True if every page is dictionary-encoded and flat was not asked for: columns come as DICTIONARY. */
bool gar_parquet_reader_is_dictionary(const struct gar_parquet_reader *reader);
/* The dictionary (FLAT, entries may repeat) and its id; only when is_dictionary. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_parquet_reader_dictionary(struct gar_parquet_reader *reader,
                                                           struct gar_column **out,
                                                           uint64_t *out_id, struct gar_error *err);

/* The next `rows` rows (<= left) as one column of the schema's type: DICTIONARY if is_dictionary, else FLAT. All columns
 * of one reader share the dictionary and its id. Strings are views into page buffers that the column holds.
 * Errors: GAR_ERR_FORMAT naming column, row group, page and offset; GAR_ERR_NOMEM; GAR_ERR_OVERFLOW for values beyond the
 * type (int96). After a failure the reader can only be freed. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_parquet_reader_read(struct gar_parquet_reader *reader,
                                                     int64_t rows, struct gar_column **out,
                                                     struct gar_error *err);
/* Passes over rows; pages passed whole are not decompressed. */
GAR_MUST_USE enum gar_status gar_parquet_reader_skip(struct gar_parquet_reader *reader,
                                                     int64_t rows, struct gar_error *err);
/* Of the next `rows` rows only those in selection (ascending, each < rows): a column of `count` rows. Pages without
 * a selected row are not decompressed. */
GAR_MUST_USE enum gar_status gar_parquet_reader_read_selected(
    struct gar_parquet_reader *reader, int64_t rows, const uint32_t *selection, int64_t count,
    struct gar_column **out, struct gar_error *err);

/* ------------------------------------------------------------------ writing */

/* A zeroed struct is replaced by defaults field by field, but for the codec: see gar_parquet_write_options_init. */
struct gar_parquet_write_options {
    enum gar_parquet_codec codec; /* none, snappy, gzip, brotli, zstd, lz4_raw */
    int32_t level;                /* 0: the codec's usual one */
    int64_t row_group_rows;       /* 0: 1,048,576 */
    int64_t row_group_bytes;      /* in memory; 0: 256 MiB */
    int64_t page_bytes;           /* before compression; 0: 1 MiB */
    int64_t dictionary_bytes_max; /* larger dictionaries fall back to plain pages; 0: 1 MiB */
    bool no_dictionary;
    bool no_statistics;
};

/* snappy and the defaults. */
void gar_parquet_write_options_init(struct gar_parquet_write_options *options);
/* "none"/"uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"/"lz4_raw"; GAR_ERR_VALUE naming the text and the choice. */
GAR_MUST_USE enum gar_status gar_parquet_codec_parse(const char *text, enum gar_parquet_codec *out,
                                                     struct gar_error *err);

/* One encoded row group: bytes and their description, without a place in a file yet. */
struct gar_parquet_group;
/* Encodes batches (of `schema`, selections honoured) as one row group. Pure; groups may be encoded in parallel.
 * Errors: GAR_ERR_NOMEM, GAR_ERR_UNSUPPORTED, GAR_ERR_OVERFLOW (a text over 2^31 - 1 bytes a page). Owns: caller frees.
 * Threads: any. */
GAR_MUST_USE enum gar_status gar_parquet_group_encode(
    const struct gar_schema *schema, struct gar_batch *const *batches, int64_t count,
    const struct gar_parquet_write_options *options, struct gar_memory *memory,
    struct gar_parquet_group **out, struct gar_error *err);
void gar_parquet_group_free(struct gar_parquet_group *group);
int64_t gar_parquet_group_rows(const struct gar_parquet_group *group);

/* One file being written. The caller writes what gar_parquet_writer_next hands out, in order. */
struct gar_parquet_writer;
GAR_MUST_USE enum gar_status gar_parquet_writer_new(struct gar_schema *schema,
                                                    const struct gar_parquet_write_options *options,
                                                    struct gar_memory *memory,
                                                    struct gar_parquet_writer **out,
                                                    struct gar_error *err);
void gar_parquet_writer_free(struct gar_parquet_writer *writer);
/* Takes rows; encodes a row group whenever one is full. Errors: as gar_parquet_group_encode, GAR_ERR_TYPE for another
 * schema. */
GAR_MUST_USE enum gar_status gar_parquet_writer_append(struct gar_parquet_writer *writer,
                                                       struct gar_batch *batch,
                                                       struct gar_error *err);
/* Adds a group that was encoded elsewhere (moved, also on failure); rows appended before it go out first. */
GAR_MUST_USE enum gar_status gar_parquet_writer_add(struct gar_parquet_writer *writer,
                                                    struct gar_parquet_group *group,
                                                    struct gar_error *err);
/* Encodes what is left and the footer. No appending after it. */
GAR_MUST_USE enum gar_status gar_parquet_writer_finish(struct gar_parquet_writer *writer,
                                                       struct gar_error *err);
/* The next bytes of the file, valid until the next call on the writer; GAR_EOF when there are none now. */
enum gar_status gar_parquet_writer_next(struct gar_parquet_writer *writer, const uint8_t **out_data,
                                        int64_t *out_bytes);
int64_t gar_parquet_writer_rows(const struct gar_parquet_writer *writer);
/* Bytes handed out so far: the file's size after finish and the last next. */
int64_t gar_parquet_writer_bytes(const struct gar_parquet_writer *writer);

#endif
