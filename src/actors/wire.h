/* SPDX-License-Identifier: Apache-2.0 */
/* What passes between a pool and its worker process: messages of one size over the socket, and batches as plain Arrow
 * buffers in a region of shared memory.
 *
 * A layout is compiled once from a schema; both sides compile the same one. A batch in a region is a head, one
 * description for each array of the tree in preorder, and the buffers at multiples of 64 bytes, all offsets counted from the
 * region's start. */
#ifndef GAR_ACTORS_WIRE_H
#define GAR_ACTORS_WIRE_H

#include <gar/arrow_abi.h>

#include "base/attrs.h"
#include "base/error.h"
#include "base/memory.h"

/* ---- messages ---- */

#define GAR_WIRE_MAGIC   UINT32_C(0x57726147)
#define GAR_WIRE_VERSION 1

enum gar_wire_kind {
    /* to the worker */
    GAR_WIRE_SETUP = 1, /* bytes at offset of the inbound arena: a setup block (setup.h) */
    GAR_WIRE_CALL, /* the batch in slot, bytes at offset of the inbound arena, rows; seq counts from 1 */
    GAR_WIRE_GRANT, /* the outbound arena has `bytes` now (fewer than asked: refused) */
    GAR_WIRE_STOP,  /* destroy the actor and exit */
    /* from the worker */
    GAR_WIRE_HELLO = 16, /* extra: its process number */
    GAR_WIRE_READY,      /* the actor is made */
    GAR_WIRE_RESULT,     /* of call seq: slot, offset, bytes of the outbound arena, rows */
    GAR_WIRE_FAILED, /* seq 0: the actor could not be made; detail: enum gar_wire_failure; texts of `bytes` in
                          * the first part of the outbound arena; extra: retry after so many ns, -1: not said */
    GAR_WIRE_GROW, /* please let the outbound arena have `bytes` */
};

enum gar_wire_failure {
    GAR_WIRE_RAISED,
    GAR_WIRE_BAD_RESULT, /* wrong length or type */
    GAR_WIRE_NO_ROOM,    /* a result did not find room */
};

struct gar_wire_message {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint64_t seq;
    int64_t offset;
    int64_t bytes;
    int64_t rows;
    int64_t extra;
    uint32_t slot;
    uint32_t detail;
    uint64_t unused; /* 0 */
};
_Static_assert(sizeof(struct gar_wire_message) == 64, "one size on both sides");

void gar_wire_message_init(struct gar_wire_message *message, enum gar_wire_kind kind);
/* Is it a message of this protocol, `bytes` long? Its fields are still to be checked. */
bool gar_wire_message_is_sound(const struct gar_wire_message *message, int64_t bytes);

/* ---- the arenas' fixed parts ---- */

#define GAR_WIRE_SLOTS 16384

/* At the start of the inbound arena. Each byte is written 1 by the side that is done with a slot and 0 by the side that
 * fills it; neither trusts more than that. */
struct gar_wire_control {
    uint32_t posted; /* atomic: messages sent to the worker; it spins on it for a moment */
    uint8_t gap[GAR_CACHE_LINE - sizeof(uint32_t)];
    uint8_t in_done[GAR_WIRE_SLOTS];  /* the worker holds no view of the call's batch any more */
    uint8_t out_done[GAR_WIRE_SLOTS]; /* the engine has dropped the result */
};
#define GAR_WIRE_CONTROL_BYTES INT64_C(36864)
_Static_assert(sizeof(struct gar_wire_control) <= GAR_WIRE_CONTROL_BYTES, "room for it");
/* At the start of the outbound arena: the texts of a failure, each ending in NUL: type, text, traceback. */
#define GAR_WIRE_TEXT_BYTES INT64_C(65536)

/* Descriptors of a worker, the same in every worker. */
enum { GAR_WIRE_FD_SOCKET = 3, GAR_WIRE_FD_IN = 4, GAR_WIRE_FD_OUT = 5, GAR_WIRE_FD_COUNT = 6 };
/* In its environment: "version:process number of the pool:window bytes of an arena". */
#define GAR_WIRE_ENVIRONMENT "GAR_WORKER"
/* Whole numbers with `mark` between them; how many there are, -1: not such a text, or more than max. */
int32_t gar_wire_numbers(const char *text, char mark, int64_t *out, int32_t max);

/* ---- batches ---- */

#define GAR_WIRE_ALIGN     64
#define GAR_WIRE_DEPTH_MAX 32
#define GAR_WIRE_NODES_MAX 65536

enum gar_wire_node_kind {
    GAR_WIRE_NODE_NULL,
    GAR_WIRE_NODE_FIXED, /* width bytes a value */
    GAR_WIRE_NODE_BITS,
    GAR_WIRE_NODE_TEXT,       /* 64-bit offsets, bytes */
    GAR_WIRE_NODE_TEXT32,     /* only as a source: becomes TEXT */
    GAR_WIRE_NODE_VIEWS,      /* only as a source: becomes TEXT */
    GAR_WIRE_NODE_STRUCT,     /* also the batch itself */
    GAR_WIRE_NODE_LIST,       /* 64-bit offsets */
    GAR_WIRE_NODE_LIST32,     /* 32-bit offsets; a source of either width fits both */
    GAR_WIRE_NODE_FIXED_LIST, /* width items a row */
};

struct gar_wire_node {
    enum gar_wire_node_kind kind;
    int32_t width;
    int32_t parent; /* number of its parent, -1: the batch */
    int32_t child;  /* which child of the parent it is */
    int32_t children;
    char format[32]; /* as the schema says, cut; for messages and comparisons */
};

struct gar_wire_layout {
    int32_t count;
    struct gar_wire_node nodes[]; /* preorder */
};

/* schema: a struct type. Errors: GAR_ERR_UNSUPPORTED naming the column whose type cannot pass; GAR_ERR_NOMEM.
 * Owns: caller frees with gar_free. */
GAR_MUST_USE enum gar_status gar_wire_layout_new(const struct ArrowSchema *schema,
                                                 struct gar_wire_layout **out,
                                                 struct gar_error *err);
/* May arrays of schema `from` be written in this layout? Equal formats, but for the layout of text and the width of list
 * offsets. Errors: GAR_ERR_TYPE saying how they differ. Owns: caller frees *out, the layout of the source. */
GAR_MUST_USE enum gar_status gar_wire_layout_match(const struct gar_wire_layout *layout,
                                                   const struct ArrowSchema *from,
                                                   struct gar_wire_layout **out,
                                                   struct gar_error *err);

/* What to write of one array. */
struct gar_wire_span {
    const struct ArrowArray *array;
    int64_t start; /* in its buffers */
    int64_t length;
    int64_t null_count;
    int64_t bytes[3]; /* of each buffer in the region */
};

/* Bytes of the region that `array` needs, and the spans (one a node) for gar_wire_write. `from` is the layout of the
 * array: `layout` itself or what gar_wire_layout_match gave. The array is trusted but for its tree's shape.
 * Errors: GAR_ERR_FORMAT (a child is missing, a null at the top); GAR_ERR_OVERFLOW. */
GAR_MUST_USE enum gar_status gar_wire_measure(const struct gar_wire_layout *layout,
                                              const struct gar_wire_layout *from,
                                              const struct ArrowArray *array,
                                              struct gar_wire_span *spans, int64_t *out_bytes,
                                              struct gar_error *err);
/* After a measure, with its spans. region: at a multiple of 64, of the measured size. */
void gar_wire_write(const struct gar_wire_layout *layout, const struct gar_wire_layout *from,
                    const struct gar_wire_span *spans, uint8_t *region);

/* The batch in a region as an Arrow array. Everything that decides where bytes are read is checked: against `bytes`, and
 * after it was copied to private memory (from `memory`), so that another process may write the region meanwhile. Values and
 * the bytes of texts stay in the region; on_release(context) is called when nobody needs them any more, on any thread.
 * Errors: GAR_ERR_FORMAT saying what is wrong; GAR_ERR_NOMEM; then on_release is not called. */
struct gar_wire_source {
    const uint8_t *region; /* at a multiple of 64 */
    int64_t bytes;
    int64_t rows;
    struct gar_memory *memory;
    void (*on_release)(void *context);
    void *context;
};
GAR_MUST_USE enum gar_status gar_wire_read(const struct gar_wire_layout *layout,
                                           const struct gar_wire_source *source,
                                           struct ArrowArray *out, struct gar_error *err);

#endif
