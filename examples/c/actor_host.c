/* SPDX-License-Identifier: Apache-2.0 */
/* A small host for native actors: loads one in this process, makes it, calls it with one batch, prints the result. What a
 * pool does in a worker process, without the process: for trying an actor out, and under a debugger.
 *
 * Usage: actor_host ACTOR.so CODE VALUE...          a VALUE is a number or "null"; one float64 column "x"
 * Build: cc actor_host.c $(pkg-config --cflags gar) -ldl */
#include <dlfcn.h>
#include <gar/actor.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- load, with every check that a host must make before it calls ------------------------------------------------- */

static const struct gar_actor_class *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "cannot load it: %s\n", dlerror());
        return NULL;
    }
    void *symbol = dlsym(library, GAR_ACTOR_ENTRY);
    if (symbol == NULL) {
        (void)fprintf(stderr, "'%s' is no native actor: it has no %s\n", path, GAR_ACTOR_ENTRY);
        return NULL;
    }
    const struct gar_actor_class *(*entry)(void) = NULL;
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function pointers */
    const struct gar_actor_class *actor_class = entry();
    if (actor_class == NULL || actor_class->abi != GAR_ACTOR_ABI) {
        (void)fprintf(stderr, "'%s' speaks version %d of the interface, this host speaks %d\n",
                      path, actor_class == NULL ? 0 : (int)actor_class->abi, GAR_ACTOR_ABI);
        return NULL;
    }
    if (actor_class->create == NULL || actor_class->call == NULL || actor_class->destroy == NULL) {
        (void)fprintf(stderr, "'%s' lacks one of create, call, destroy\n", path);
        return NULL;
    }
    return actor_class;
}

/* ---- one batch of one nullable float64 column ---------------------------------------------------------------------- */

struct batch {
    struct ArrowSchema schema;
    struct ArrowSchema column_schema;
    struct ArrowSchema *schema_children[1];
    struct ArrowArray array;
    struct ArrowArray column;
    struct ArrowArray *children[1];
    const void *buffers[1];
    const void *column_buffers[2];
    uint8_t *validity;
    double *values;
};

/* All memory is the batch's own; an actor that keeps its input needs a host with leases, as a pool has. */
static void release_nothing(struct ArrowArray *array)
{
    array->release = NULL;
}

static bool make_batch(struct batch *batch, char **texts, int64_t rows)
{
    memset(batch, 0, sizeof *batch);
    batch->validity = calloc((size_t)rows / 8 + 1, 1);
    batch->values = calloc((size_t)rows + 1, sizeof *batch->values);
    if (batch->validity == NULL || batch->values == NULL) {
        return false;
    }
    int64_t nulls = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (strcmp(texts[row], "null") == 0) {
            nulls++;
        } else {
            batch->values[row] = strtod(texts[row], NULL);
            batch->validity[row / 8] = (uint8_t)(batch->validity[row / 8] | (1u << (row % 8)));
        }
    }
    batch->schema_children[0] = &batch->column_schema;
    batch->column_schema =
        (struct ArrowSchema){.format = "g", .name = "x", .flags = ARROW_FLAG_NULLABLE};
    batch->schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = batch->schema_children};
    batch->children[0] = &batch->column;
    batch->column_buffers[0] = batch->validity;
    batch->column_buffers[1] = batch->values;
    batch->column = (struct ArrowArray){.length = rows,
                                        .null_count = nulls,
                                        .n_buffers = 2,
                                        .buffers = batch->column_buffers,
                                        .release = release_nothing};
    batch->array = (struct ArrowArray){.length = rows,
                                       .n_buffers = 1,
                                       .n_children = 1,
                                       .buffers = batch->buffers,
                                       .children = batch->children,
                                       .release = release_nothing};
    return true;
}

static void destroy_batch(struct batch *batch)
{
    free(batch->validity);
    free(batch->values);
}

/* ---- what comes back is checked before it is believed -------------------------------------------------------------- */

static bool print_result(const struct ArrowSchema *schema, const struct ArrowArray *array,
                         int64_t rows)
{
    if (strcmp(schema->format, "+s") != 0 || schema->n_children != 1 || array->n_children != 1 ||
        strcmp(schema->children[0]->format, "i") != 0) {
        (void)fprintf(stderr, "the result is not one int32 column\n");
        return false;
    }
    const struct ArrowArray *column = array->children[0];
    if (array->length != rows || column->length != rows || column->n_buffers != 2) {
        (void)fprintf(stderr, "the actor returned %lld rows, expected %lld\n",
                      (long long)array->length, (long long)rows);
        return false;
    }
    const uint8_t *validity = column->buffers[0];
    const int32_t *values = column->buffers[1];
    for (int64_t row = 0; row < rows; row++) {
        const int64_t i = row + column->offset;
        if (validity != NULL && ((validity[i / 8] >> (i % 8)) & 1) == 0) {
            (void)printf("null\n");
        } else {
            (void)printf("%d\n", (int)values[i]);
        }
    }
    return true;
}

/* ---- the life of an actor -------------------------------------------------------------------------------------------- */

static void note_failure(struct gar_actor_report *report, const char *type, const char *text,
                         const char *traceback)
{
    (void)report;
    (void)fprintf(stderr, "%s: %s%s%s\n", type, text, traceback != NULL ? "\n" : "",
                  traceback != NULL ? traceback : "");
}

static void note_retry(struct gar_actor_report *report, int64_t ns)
{
    (void)report;
    (void)fprintf(stderr, "to be tried again after %lld ms\n", (long long)(ns / 1000000));
}

static int run(const struct gar_actor_class *actor_class, const char *code, struct batch *batch)
{
    struct ArrowSchema output_child = {
        .format = "i", .name = "nearest", .flags = ARROW_FLAG_NULLABLE};
    struct ArrowSchema *output_children[] = {&output_child};
    const struct ArrowSchema output_schema = {
        .format = "+s", .name = "", .n_children = 1, .children = output_children};
    const struct gar_actor_setup setup = {
        .abi = GAR_ACTOR_ABI,
        .index = 0,
        .count = 1,
        .name = actor_class->name,
        .code = code,
        .code_bytes = (int64_t)strlen(code),
        .input = &batch->schema,
        .output = &output_schema,
    };
    struct gar_actor_report report = {
        .abi = GAR_ACTOR_ABI, .fail = note_failure, .retry_after = note_retry};
    void *actor = NULL;
    if (actor_class->create(&setup, &actor, &report) != 0) {
        return 1;
    }
    const int64_t rows = batch->array.length;
    struct ArrowSchema schema = {.release = NULL};
    struct ArrowArray result = {.release = NULL};
    int status = actor_class->call(actor, &batch->array, &schema, &result, &report);
    if (status == 0) {
        status = print_result(&schema, &result, rows) ? 0 : 1;
    }
    if (result.release != NULL) {
        result.release(&result);
    }
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    if (batch->array.release != NULL) { /* NULL: the actor moved it out */
        batch->array.release(&batch->array);
    }
    actor_class->destroy(actor);
    return status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: actor_host ACTOR.so CODE VALUE...\n");
        return 2;
    }
    const struct gar_actor_class *actor_class = load(argv[1]);
    if (actor_class == NULL) {
        return 1;
    }
    (void)printf("%s: %g CPUs, %g GPUs, %lld bytes of memory\n", actor_class->name,
                 actor_class->cpus, actor_class->gpus, (long long)actor_class->memory_bytes);
    struct batch batch;
    int status = 1;
    if (make_batch(&batch, argv + 3, argc - 3)) {
        status = run(actor_class, argv[2], &batch);
    }
    destroy_batch(&batch);
    return status;
}
