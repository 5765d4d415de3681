/* SPDX-License-Identifier: Apache-2.0 */
/* A native actor: a shared object that Gar runs in the worker processes of a pool, or that any host may load.
 *
 * It finds for each value of its first column (float64) the nearest of some centres, which it parses once, when it is made,
 * from the text that it is given: "0.5,2,10". Its result has one int32 column: the centre's number, null for null.
 *
 * Build: cc -shared -fPIC nearest_actor.c -o nearest_actor.so $(pkg-config --cflags gar)
 * Nothing of libgar is called: the engine hands over what is needed. */
#include <gar/actor.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The only symbol that is looked up. */
GAR_API const struct gar_actor_class *gar_actor_entry(void);

enum { CENTRES_MAX = 64 };

struct nearest {
    double centres[CENTRES_MAX];
    int32_t count;
};

/* ---- create and destroy --------------------------------------------------------------------------------------------- */

static bool parse_centres(const char *text, struct nearest *out)
{
    const char *at = text;
    while (out->count < CENTRES_MAX) {
        char *end = NULL;
        out->centres[out->count] = strtod(at, &end);
        if (end == at || !isfinite(out->centres[out->count])) {
            return false;
        }
        out->count++;
        if (*end == '\0') {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        at = end + 1;
    }
    return false;
}

static int create(const struct gar_actor_setup *setup, void **out_actor,
                  struct gar_actor_report *report)
{
    const struct ArrowSchema *input = setup->input;
    if (input->n_children != 1 || strcmp(input->children[0]->format, "g") != 0) {
        report->fail(report, "TypeError", "nearest takes one float64 column", NULL);
        return 1;
    }
    struct nearest *self = calloc(1, sizeof *self);
    char *text = calloc(1, (size_t)setup->code_bytes + 1); /* the bytes need not end with a NUL */
    if (self == NULL || text == NULL) {
        free(self);
        free(text);
        report->fail(report, "MemoryError", "out of memory", NULL);
        return 1;
    }
    if (setup->code_bytes > 0) {
        memcpy(text, setup->code, (size_t)setup->code_bytes);
    }
    const bool is_good = parse_centres(text, self);
    free(text);
    if (!is_good) {
        free(self);
        report->fail(report, "ValueError", "centres are 1 to 64 finite numbers, as in 0.5,2,10",
                     NULL);
        return 1;
    }
    *out_actor = self;
    return 0;
}

static void destroy(void *actor)
{
    free(actor);
}

/* ---- the result: the column owns its buffers, the struct around it owns only itself ---------------------------------- */

/* A consumer may move the column out and keep it longer than the struct. */
struct column {
    const void *buffers[2]; /* validity, values */
    uint8_t *validity;
    int32_t *values;
};

struct rows {
    struct ArrowArray column;
    struct ArrowArray *children[1];
    const void *buffers[1]; /* the struct's own validity: none */
};

static void free_column(struct column *column)
{
    if (column != NULL) {
        free(column->validity);
        free(column->values);
        free(column);
    }
}

static void release_column(struct ArrowArray *array)
{
    free_column(array->private_data);
    array->release = NULL;
}

static void release_rows(struct ArrowArray *array)
{
    if (array->children[0]->release != NULL) { /* else it was moved out */
        array->children[0]->release(array->children[0]);
    }
    free(array->private_data);
    array->release = NULL;
}

static struct column *new_column(int64_t rows)
{
    struct column *column = calloc(1, sizeof *column);
    if (column != NULL) {
        column->validity = calloc((size_t)rows / 8 + 1, 1);
        column->values = calloc((size_t)rows + 1, sizeof *column->values);
    }
    if (column == NULL || column->validity == NULL || column->values == NULL) {
        free_column(column);
        return NULL;
    }
    column->buffers[0] = column->validity;
    column->buffers[1] = column->values;
    return column;
}

/* Takes the column, also when it fails. */
static bool export_rows(struct column *column, int64_t rows, int64_t nulls, struct ArrowArray *out)
{
    struct rows *made = calloc(1, sizeof *made);
    if (made == NULL) {
        free_column(column);
        return false;
    }
    made->children[0] = &made->column;
    made->column = (struct ArrowArray){
        .length = rows,
        .null_count = nulls,
        .n_buffers = 2,
        .buffers = column->buffers,
        .release = release_column,
        .private_data = column,
    };
    *out = (struct ArrowArray){
        .length = rows,
        .n_buffers = 1,
        .n_children = 1,
        .buffers = made->buffers,
        .children = made->children,
        .release = release_rows,
        .private_data = made,
    };
    return true;
}

/* Schemas that live for ever need no memory: releasing only marks them. */
static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

struct schema_pair {
    struct ArrowSchema child;
    struct ArrowSchema *children[1];
};

static void release_schema_pair(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

static bool export_schema(struct ArrowSchema *out)
{
    struct schema_pair *pair = calloc(1, sizeof *pair);
    if (pair == NULL) {
        return false;
    }
    pair->children[0] = &pair->child;
    pair->child = (struct ArrowSchema){
        .format = "i",
        .name = "nearest",
        .flags = ARROW_FLAG_NULLABLE,
        .release = release_schema,
    };
    *out = (struct ArrowSchema){
        .format = "+s",
        .name = "",
        .n_children = 1,
        .children = pair->children,
        .release = release_schema_pair,
        .private_data = pair,
    };
    return true;
}

/* ---- call ------------------------------------------------------------------------------------------------------------ */

static int32_t find_nearest(const struct nearest *self, double value)
{
    int32_t best = 0;
    for (int32_t c = 1; c < self->count; c++) {
        if (fabs(value - self->centres[c]) < fabs(value - self->centres[best])) {
            best = c;
        }
    }
    return best;
}

/* The validity bit of row i; a missing bitmap means no nulls. Offsets of array and child both count. */
static bool is_valid(const struct ArrowArray *array, int64_t i)
{
    const uint8_t *bits = array->buffers[0];
    const int64_t bit = i + array->offset;
    return bits == NULL || ((bits[bit / 8] >> (bit % 8)) & 1) != 0;
}

static int call(void *actor, struct ArrowArray *input, struct ArrowSchema *output_schema,
                struct ArrowArray *output, struct gar_actor_report *report)
{
    const struct nearest *self = actor;
    const struct ArrowArray *column = input->children[0];
    const double *values = column->buffers[1];
    struct column *result = new_column(input->length);
    if (result == NULL) {
        report->fail(report, "MemoryError", "out of memory", NULL);
        return 1;
    }
    int64_t nulls = 0;
    for (int64_t row = 0; row < input->length; row++) {
        const int64_t i = row + input->offset;
        if (!is_valid(column, i)) {
            nulls++;
            continue;
        }
        const double value = values[i + column->offset];
        if (isnan(value)) {
            char text[96];
            (void)snprintf(text, sizeof text, "row %lld is not a number: nothing is near it",
                           (long long)row);
            report->fail(report, "ValueError", text, NULL);
            free_column(result);
            return 1;
        }
        result->validity[row / 8] = (uint8_t)(result->validity[row / 8] | (1u << (row % 8)));
        result->values[row] = find_nearest(self, value);
    }
    if (!export_rows(result, input->length, nulls, output)) {
        report->fail(report, "MemoryError", "out of memory", NULL);
        return 1;
    }
    if (!export_schema(output_schema)) {
        output->release(output);
        report->fail(report, "MemoryError", "out of memory", NULL);
        return 1;
    }
    return 0;
}

const struct gar_actor_class *gar_actor_entry(void)
{
    static const struct gar_actor_class nearest_class = {
        .abi = GAR_ACTOR_ABI,
        .name = "nearest",
        .cpus = 1,
        .create = create,
        .call = call,
        .destroy = destroy,
    };
    return &nearest_class;
}
