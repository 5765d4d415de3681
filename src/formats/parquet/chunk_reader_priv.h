/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a column chunk reader, shared by its page list, its value decoders and its public functions.
 *
 * A page is "loaded" once: checked, decompressed, split into levels and values, its decoders set up. After that values are taken
 * from it in pieces. "Dense" values are the non-null ones, one after the other; spreading puts them on their rows. */
#ifndef GAR_FORMATS_PARQUET_CHUNK_READER_PRIV_H
#define GAR_FORMATS_PARQUET_CHUNK_READER_PRIV_H

#include "formats/parquet/delta_priv.h"
#include "formats/parquet/levels_priv.h"
#include "formats/parquet/page_codec_priv.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

/* Values decoded at a time where they pass through a buffer: keeps it in the first-level cache. */
#define PARQUET_BLOCK_VALUES 1024

enum { PARQUET_AT_DICTIONARY = -1, PARQUET_AT_CHUNK = -2 };

struct gar_parquet_scratch {
    struct page_codec codec;
    struct gar_memory *memory; /* a reference is held */
};

/* One page as its header describes it; the bytes are known to lie in the chunk. */
struct parquet_page {
    const uint8_t *data; /* behind the header */
    int64_t offset;      /* of the header in the chunk, for messages */
    int32_t bytes;
    int32_t uncompressed_bytes;
    int32_t values;      /* levels, nulls included; entries of a dictionary page */
    int32_t level_bytes; /* v2: uncompressed levels in front */
    uint32_t crc;
    bool has_crc;
    bool is_v2;
    bool is_compressed;
    uint8_t encoding;
    uint8_t level_encoding;
};

enum parquet_level_kind { PARQUET_LEVELS_NONE, PARQUET_LEVELS_RLE, PARQUET_LEVELS_PACKED };

/* The loaded page: where its levels and values are read next. */
struct parquet_page_state {
    int64_t left; /* levels not yet taken */
    enum parquet_level_kind level_kind;
    struct rle_decoder levels;
    const uint8_t *packed_levels;
    int64_t packed_at;
    uint8_t encoding;     /* of the values */
    const uint8_t *next;  /* PLAIN: next value; delta byte arrays: next text byte */
    const uint8_t *end;   /* of the page's values */
    const uint8_t *start; /* of the buffer that views point into */
    struct gar_buffer
        *buffer;   /* owned; what views of this page point into, or NULL until one needs it */
    bool is_ascii; /* PLAIN text: no byte above 127, so nothing is left to validate */
    int64_t bit;   /* PLAIN booleans: next bit from `next` */
    struct rle_decoder codes;     /* dictionary codes and RLE booleans */
    struct delta_decoder delta;   /* numbers, or prefix lengths */
    struct delta_decoder lengths; /* lengths or suffix lengths */
    int64_t split_values;         /* BYTE_STREAM_SPLIT: values in all, and the next one */
    int64_t split_at;
    int64_t built_bytes; /* delta byte arrays: bytes of values built from this page */
    int32_t view_buffer; /* number of `buffer` among the output's text buffers, or -1 */
};

/* Text buffers of the column that is being read, in the order of the views' numbers. */
struct parquet_text {
    struct gar_buffer **buffers; /* owned references */
    int64_t count;
    int64_t capacity;
    int64_t room; /* free bytes in the last buffer when it is being filled (delta byte arrays) */
    bool is_filling;
};

struct gar_parquet_reader {
    struct gar_parquet_file *file; /* a reference is held */
    const struct gar_parquet_column *column;
    struct gar_parquet_column as_binary; /* what column points to when it is read as another type */
    const struct gar_parquet_chunk *chunk;
    int64_t row_group;
    struct gar_buffer *data;                 /* a reference is held */
    const uint8_t *bytes;                    /* the chunk's first byte */
    struct gar_memory *memory;               /* a reference is held */
    struct gar_parquet_scratch *scratch;     /* borrowed, or own_scratch */
    struct gar_parquet_scratch *own_scratch; /* owned, or NULL */

    struct parquet_page *pages; /* owned */
    int64_t page_count;
    int64_t page_capacity;
    struct parquet_page dictionary_page;
    bool has_dictionary_page;
    bool is_dictionary;            /* columns come as DICTIONARY */
    struct gar_column *dictionary; /* owned; decoded on first use */
    uint64_t dictionary_id;

    int64_t left;      /* rows */
    int64_t next_page; /* first page not yet loaded or passed */
    int64_t page;  /* for messages: number of the page, PARQUET_AT_DICTIONARY or PARQUET_AT_CHUNK */
    int64_t place; /* for messages: where its header lies in the chunk */
    struct parquet_page_state state;
    struct gar_buffer
        *page_buffer; /* owned; decompressed bytes of pages that no view points into */
    struct parquet_text text;
    /* Delta byte arrays: the last value, in a buffer of its own between reads. */
    struct gar_buffer *last_buffer; /* owned */
    const uint8_t *last;
    int64_t last_bytes;
    uint32_t *codes; /* owned; PARQUET_BLOCK_VALUES codes on their way through a dictionary */
    uint8_t
        *block; /* owned; PARQUET_BLOCK_VALUES dense values of up to 16 bytes for selected reads */
};

/* page_list.c: reads all page headers. */
GAR_MUST_USE enum gar_status gar_parquet_list_pages(struct gar_parquet_reader *reader,
                                                    struct gar_error *err);

/* Failures: the message is "column 'x', row group 1, page 2 at offset 345: what". GAR_ERR_FORMAT unless said. */
enum gar_status gar_parquet_page_fail(const struct gar_parquet_reader *reader,
                                      struct gar_error *err, const char *what);
/* Puts that place in front of a message that is there. */
void gar_parquet_page_prefix(const struct gar_parquet_reader *reader, struct gar_error *err);

/* page_load.c: makes a page the loaded one. */
GAR_MUST_USE enum gar_status gar_parquet_load_page(struct gar_parquet_reader *reader,
                                                   const struct parquet_page *page,
                                                   bool is_dictionary_page, struct gar_error *err);
/* Decodes the dictionary page if that has not been done; keeps the loaded page's state. */
GAR_MUST_USE enum gar_status gar_parquet_need_dictionary(struct gar_parquet_reader *reader,
                                                         struct gar_error *err);

/* value_decode.c: the next count dense values of the loaded page in the form of the column (codes if is_dictionary; booleans
 * to bit offset `at` of out, other types to out itself). */
GAR_MUST_USE enum gar_status gar_parquet_decode_dense(struct gar_parquet_reader *reader,
                                                      int64_t count, void *out, int64_t at,
                                                      struct gar_error *err);
GAR_MUST_USE enum gar_status gar_parquet_skip_dense(struct gar_parquet_reader *reader,
                                                    int64_t count, struct gar_error *err);
/* text_decode.c: views of texts or fixed-length values. */
GAR_MUST_USE enum gar_status gar_parquet_decode_views(struct gar_parquet_reader *reader,
                                                      int64_t count, struct gar_string_view *out,
                                                      struct gar_error *err);
GAR_MUST_USE enum gar_status gar_parquet_skip_views(struct gar_parquet_reader *reader,
                                                    int64_t count, struct gar_error *err);
/* Adds a text buffer (moved); its number. */
GAR_MUST_USE enum gar_status gar_parquet_text_add(struct gar_parquet_reader *reader,
                                                  struct gar_buffer *buffer, int32_t *out,
                                                  struct gar_error *err);
/* Forgets the text buffers after a read; keeps the last value of a delta byte array. */
GAR_MUST_USE enum gar_status gar_parquet_text_reset(struct gar_parquet_reader *reader,
                                                    struct gar_error *err);

/* Bytes of one value as decode_dense writes it; 0 for booleans. */
int32_t gar_parquet_dense_bytes(const struct gar_parquet_reader *reader);

#endif
