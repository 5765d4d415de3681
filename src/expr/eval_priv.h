/* SPDX-License-Identifier: Apache-2.0 */
/* Programs inside: registers, instructions, variants, and what the instruction files share.
 *
 * A bound tree is compiled to a list of instructions in order of need; each writes one register. A vector of up to
 * GAR_VECTOR_ROWS rows goes through the whole list before the next one starts, so that registers stay in cache.
 *
 * Guards: an instruction that can fail may have a guard register (bool); rows whose guard is not true cannot raise its error.
 * That is how a branch of `when` that a row does not take, or the right side of an `and` whose left side is false, stays silent
 * although whole vectors are computed.
 *
 * Decimal registers hold 64-bit values with a bound on their size, or 128-bit values (is_wide), as the data of this vector
 * needs; which one is decided vector by vector. */
#ifndef GAR_EXPR_EVAL_PRIV_H
#define GAR_EXPR_EVAL_PRIV_H

#include <string.h>

#include "base/bits.h"
#include "expr/bind_priv.h"
#include "expr/program.h"
#include "kernels/text.h"
#include "kernels/vector.h"

struct gar_reg {
    const void *
        values; /* bool: words; decimals: int64_t or gar_i128; text: views; else the type's layout */
    void *dest;                 /* where the instruction that owns the register writes this time */
    void *own;                  /* scratch of a full vector, 16 bytes a row for text and decimals */
    uint64_t *valid;            /* bitmap or NULL: no nulls */
    const uint8_t *const *data; /* text: the buffers of far views */
    uint64_t own_valid[GAR_VECTOR_WORDS];
    uint64_t bound;    /* narrow decimals: no |value| is greater */
    bool is_const;     /* row 0 stands for all */
    bool is_null;      /* const: null; values[0] is zero */
    int32_t full_rows; /* const: rows that values are written out for */
    bool is_wide;      /* decimals: 128-bit values */
};

struct gar_instr;
struct gar_hoist;

/* A dictionary of decimals as 64-bit values, if they fit. A zeroed struct is empty. */
struct gar_narrow {
    const struct gar_column *of; /* identifies the dictionary together with its id; not owned */
    uint64_t id;
    int64_t *values; /* owned; NULL when some entry does not fit */
    uint64_t bound;
};

/* Works out rows 0..n-1. Before: out->dest is set, out->values = out->dest; out->valid has the conjunction of the arguments'
 * validity if is_strict, else NULL. */
typedef enum gar_status (*gar_instr_fn)(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out, int64_t n,
                                        struct gar_error *err);

struct gar_instr {
    gar_instr_fn run;
    const struct gar_bound *node; /* what it computes; borrowed from the program */
    int32_t out;
    int32_t guard; /* register, or -1 */
    int32_t arg_count;
    int32_t *args;  /* in the variant's arena */
    bool is_strict; /* null in, null out */
    bool is_flat;   /* constant arguments are written out for all rows first */
    uint8_t lane;   /* enum gar_lane of the arguments, GAR_LANE_COUNT if they have none */
    int32_t output; /* writes straight into this output, or -1 */
    struct gar_text_sink *sink; /* text results; owned by the variant */
    void *state;                /* matcher, hash set, zone, ...; owned */
    void (*state_free)(void *state);
    int32_t used;            /* LOAD: position among the program's columns, or -1 */
    struct gar_hoist *hoist; /* LOAD of a table worked out per dictionary entry */
};

/* A subtree of one column, worked out once for each entry of the column's dictionary. */
struct gar_hoist {
    int64_t column;
    const struct gar_bound *node;
    struct gar_variant *variant; /* computes node over the dictionary; owned, made at first use */
    uint64_t dictionary_id;      /* of the table below; 0: none */
    uint64_t failed_id;          /* the last dictionary whose entries raised an error */
    struct gar_column *table;    /* result for each entry, FLAT; owned */
    bool has_null_entry;      /* the table's last entry is the result for null, which is a value */
    uint64_t table_id;        /* the table as a dictionary */
    struct gar_narrow narrow; /* decimal tables */
    uint8_t *flags; /* bool tables: a byte an entry, true and not null; then not null; owned */
    struct gar_hoist *next;
};

struct gar_variant {
    struct gar_arena arena;
    uint64_t signature; /* bit per used column: is its dictionary worked on */
    int64_t instr_count;
    struct gar_instr *instrs;
    int32_t reg_count;
    struct gar_reg *regs;
    int32_t output_count;
    int32_t *outputs;               /* registers */
    const struct gar_bound **roots; /* output_count bound trees */
    struct gar_buffer *scratch;     /* all registers' own memory */
    struct gar_hoist *hoists;       /* in the arena */
    struct gar_variant *next;
};

struct gar_program {
    int64_t refs; /* atomic */
    struct gar_binder binder;
    struct gar_schema *schema;
    int64_t output_count;
    struct gar_bound **outputs;
    int64_t used_count; /* columns that are read, at most 64 of them take part in signatures */
    int64_t *used;
    int64_t stage_count; /* one bool output: its conjuncts, grouped; else 0 */
    struct gar_bound **stages;
    bool *stage_can_fail;
};

/* Rows seen so far with a column's present dictionary: a dictionary longer than one batch may pay over several. */
struct gar_dictionary_use {
    uint64_t dictionary_id;
    int64_t rows;
    struct gar_narrow narrow; /* of decimal dictionaries that are worked on */
};

struct gar_eval {
    struct gar_program *program;
    struct gar_memory *memory;
    const struct gar_vector_kernels *kernels;
    struct gar_variant *variants;        /* of all outputs together */
    struct gar_variant **stage_variants; /* of each stage */
    struct gar_dictionary_use *uses;     /* of each used column (64 at most) */
    int32_t dense_stages; /* how many stages look at all rows before a selection is made */
    /* The run in progress. */
    struct gar_column *const *columns; /* of the batch */
    const struct gar_batch *batch;     /* borrowed, for its rows' origin; NULL: of none */
    const uint32_t *rows;              /* rows of this vector, or NULL: base .. */
    int64_t base; /* row of the batch (or position in the selection) where this vector starts */
    int64_t vector_rows; /* rows of this vector */
    const struct gar_variant *variant;
    gar_i128 *wide_temp[2]; /* GAR_VECTOR_ROWS each; owned */
    uint32_t *code_temp;    /* GAR_VECTOR_ROWS; owned */
};

/* --- compile.c --- */

/* What a node's instruction is; filled by gar_instr_choose. */
GAR_MUST_USE enum gar_status gar_instr_choose(const struct gar_bound *node, struct gar_instr *instr,
                                              struct gar_error *err);
GAR_MUST_USE enum gar_status gar_variant_new(struct gar_eval *eval,
                                             const struct gar_bound *const *roots, int64_t count,
                                             uint64_t signature, struct gar_variant **out,
                                             struct gar_error *err);
void gar_variant_free(struct gar_variant *variant);
/* Can evaluating the node itself (not what is below) raise an error? */
bool gar_node_can_fail(const struct gar_bound *node);
bool gar_tree_can_fail(const struct gar_bound *node);
/* The only column below node: its position; -1: none, -2: several. */
int64_t gar_tree_column(const struct gar_bound *node);

bool gar_bound_same_tree(const struct gar_bound *a, const struct gar_bound *b);

/* --- range.c --- */

/* *out = one range test for a AND b if they are comparisons of one value from below and above; else NULL. */
GAR_MUST_USE enum gar_status gar_bound_join_range(struct gar_binder *binder, struct gar_bound *a,
                                                  struct gar_bound *b, struct gar_bound **out,
                                                  struct gar_error *err);
/* The same for every AND in the tree. */
GAR_MUST_USE enum gar_status gar_bound_join_ranges(struct gar_binder *binder,
                                                   struct gar_bound **node, struct gar_error *err);
enum gar_status gar_run_range(struct gar_eval *eval, const struct gar_instr *instr,
                              struct gar_reg **args, struct gar_reg *out, int64_t n,
                              struct gar_error *err);

/* --- eval.c --- */

/* All outputs of the variant over columns, rows given by `rows` (or all of 0..count-1 when NULL). out[i] are new columns. */
GAR_MUST_USE enum gar_status gar_variant_run(struct gar_eval *eval, struct gar_variant *variant,
                                             struct gar_column *const *columns,
                                             const uint32_t *rows, int64_t count,
                                             struct gar_column **out, struct gar_error *err);
/* One vector; the caller has set eval's run fields. */
GAR_MUST_USE enum gar_status gar_variant_step(struct gar_eval *eval, struct gar_variant *variant,
                                              int64_t n, struct gar_error *err);
/* Instructions without arguments. */
enum gar_status gar_run_load(struct gar_eval *eval, const struct gar_instr *instr,
                             struct gar_reg **args, struct gar_reg *out, int64_t n,
                             struct gar_error *err);
enum gar_status gar_run_hoisted(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err);
enum gar_status gar_run_const(struct gar_eval *eval, const struct gar_instr *instr,
                              struct gar_reg **args, struct gar_reg *out, int64_t n,
                              struct gar_error *err);
/* out = a test of args[0], and args[1] (a guard) if there. */
enum gar_status gar_run_guard(struct gar_eval *eval, const struct gar_instr *instr,
                              struct gar_reg **args, struct gar_reg *out, int64_t n,
                              struct gar_error *err);
/* Makes the hoist's table for this dictionary column unless it is there. *out_done false: entries raise errors, work by rows. */
GAR_MUST_USE enum gar_status gar_hoist_prepare(struct gar_eval *eval, struct gar_hoist *hoist,
                                               const struct gar_column *column, bool *out_done,
                                               struct gar_error *err);
/* Fills narrow from a FLAT decimal column unless it is there. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_narrow_prepare(const struct gar_eval *eval,
                                                struct gar_narrow *narrow,
                                                const struct gar_column *flat, uint64_t id,
                                                struct gar_error *err);
/* The signature for a batch: which dictionaries are worth working on. */
uint64_t gar_eval_signature(struct gar_eval *eval, struct gar_column *const *columns, int64_t rows);
/* The variant with this signature in the list, made if it is not there. */
GAR_MUST_USE enum gar_status gar_variant_get(struct gar_eval *eval, struct gar_variant **list,
                                             const struct gar_bound *const *roots, int64_t count,
                                             uint64_t signature, struct gar_variant **out,
                                             struct gar_error *err);

/* The variant to run over these columns: dictionaries that are worth it are worked on, their tables made. */
GAR_MUST_USE enum gar_status gar_variant_choose(struct gar_eval *eval, struct gar_variant **list,
                                                const struct gar_bound *const *roots, int64_t count,
                                                struct gar_column *const *columns,
                                                uint64_t signature, struct gar_variant **out,
                                                struct gar_error *err);

/* --- for instructions --- */

/* For messages: ", row 7" with the row of the query's input that lane i of this vector is; "" when it is not known. Returns
 * out, which has room for GAR_ROW_TEXT_BYTES. */
#define GAR_ROW_TEXT_BYTES 32
const char *gar_lane_row_text(const struct gar_eval *eval, int64_t i, char *out);

/* Lanes whose errors count: valid in out, and true in the guard. */
void gar_active_lanes(const struct gar_eval *eval, const struct gar_instr *instr,
                      const struct gar_reg *out, int64_t n, uint64_t *active);
/* Makes lane i null. */
void gar_reg_set_null(struct gar_reg *out, int64_t i, int64_t n);
/* All n lanes valid, in a bitmap of its own. */
void gar_reg_own_valid(struct gar_reg *out, int64_t n);
/* out->valid = own_valid, dropped when all lanes are valid. */
void gar_reg_tidy_valid(struct gar_reg *out, int64_t n);
/* Values of a constant written out for n lanes. */
void gar_reg_fill(struct gar_reg *reg, struct gar_type type, int64_t n);
/* 128-bit values of a decimal register (a constant has one); temp: 0 or 1. */
const gar_i128 *gar_reg_wide(struct gar_eval *eval, const struct gar_reg *reg, int64_t n,
                             int32_t temp);
enum gar_lane gar_type_lane(struct gar_type type);
/* Lane i as text for messages. */
const char *gar_lane_text(const struct gar_reg *reg, struct gar_type type, int64_t i, char *out,
                          int64_t out_bytes);
/* "int64 overflow in add: 9223372036854775807 + 1, row 3". */
enum gar_status gar_lane_overflow(const struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, int64_t i, struct gar_error *err);
const char *gar_instr_name(const struct gar_instr *instr);
/* The zone of a timestamp type; NULL for none and for UTC. */
GAR_MUST_USE enum gar_status gar_type_zone(struct gar_type type, const struct gar_zone **out,
                                           struct gar_error *err);

GAR_INLINE uint64_t gar_word_mask(int64_t n, int64_t word)
{
    const int64_t left = n - 64 * word;
    return left >= 64 ? UINT64_MAX : left <= 0 ? 0 : (UINT64_C(1) << left) - 1;
}

GAR_INLINE int64_t gar_words(int64_t n)
{
    return (n + 63) >> 6;
}

GAR_INLINE bool gar_word_bit(const uint64_t *words, int64_t i)
{
    return (words[i >> 6] >> (i & 63)) & 1;
}

GAR_INLINE bool gar_reg_is_valid(const struct gar_reg *reg, int64_t i)
{
    return reg->is_const ? !reg->is_null : reg->valid == NULL || gar_word_bit(reg->valid, i);
}

/* Lane to read for row i. */
GAR_INLINE int64_t gar_reg_at(const struct gar_reg *reg, int64_t i)
{
    return reg->is_const ? 0 : i;
}

/* A bool register's word, constants spread. */
GAR_INLINE uint64_t gar_bool_word(const struct gar_reg *reg, int64_t word)
{
    const uint64_t *words = reg->values;
    return reg->is_const ? 0 - (words[0] & 1) : words[word];
}

GAR_INLINE uint64_t gar_valid_word(const struct gar_reg *reg, int64_t word)
{
    if (reg->is_const) {
        return reg->is_null ? 0 : UINT64_MAX;
    }
    return reg->valid == NULL ? UINT64_MAX : reg->valid[word];
}

/* Choosing lanes among several registers: start, take (each lane at most once; null lanes stay null), finish. */
void gar_choice_start(const struct gar_instr *instr, struct gar_reg *out, bool is_wide, int64_t n);
GAR_MUST_USE enum gar_status gar_choice_take(struct gar_eval *eval, const struct gar_instr *instr,
                                             const struct gar_reg *from, const uint64_t *take,
                                             struct gar_reg *out, int64_t n, struct gar_error *err);
void gar_choice_finish(const struct gar_instr *instr, struct gar_reg *out, int64_t n);

/* --- instruction choosers, one a file; each fills run, flags and state --- */
enum gar_status gar_choose_arith(const struct gar_bound *node, struct gar_instr *instr,
                                 struct gar_error *err);
enum gar_status gar_choose_decimal(const struct gar_bound *node, struct gar_instr *instr,
                                   struct gar_error *err);
enum gar_status gar_choose_compare(const struct gar_bound *node, struct gar_instr *instr,
                                   struct gar_error *err);
enum gar_status gar_choose_logic(const struct gar_bound *node, struct gar_instr *instr,
                                 struct gar_error *err);
enum gar_status gar_choose_cast(const struct gar_bound *node, struct gar_instr *instr,
                                struct gar_error *err);
enum gar_status gar_choose_text(const struct gar_bound *node, struct gar_instr *instr,
                                struct gar_error *err);
enum gar_status gar_choose_time(const struct gar_bound *node, struct gar_instr *instr,
                                struct gar_error *err);

#endif
