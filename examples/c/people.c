/* SPDX-License-Identifier: Apache-2.0 */
/* A complete program on Gar's C API: read a CSV, keep and compute some columns, print the rows as a
 * table, then walk the same rows as Arrow batches.
 *
 * Usage: people FILE.csv [WHERE]
 * Build: cc people.c $(pkg-config --cflags --libs gar)
 *
 * Every step that can fail returns a status and fills `err`; the steps below stop at the first failure
 * and release what they hold: NULL is fine for every release function. */
#include <gar/gar.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The rows that match, with the height in metres: select name, city, height_cm / 100 as height_m where ... */
static enum gar_status build_query(struct gar_session *session, const char *path, const char *where,
                                   struct gar_frame **out, struct gar_error *err)
{
    struct gar_frame *people = NULL;
    struct gar_frame *kept = NULL;
    struct gar_expr *predicate = NULL;
    struct gar_expr **columns = NULL;
    int64_t column_count = 0;
    static const char selected[] = "name, city, height_cm / 100 as height_m";

    enum gar_status status = gar_frame_read_csv(session, &path, 1, NULL, &people, err);
    if (status == GAR_OK) {
        status = gar_expr_parse(where, (int64_t)strlen(where), people, &predicate, err);
    }
    if (status == GAR_OK) {
        status = gar_frame_where(people, predicate, &kept, err);
    }
    if (status == GAR_OK) {
        status = gar_expr_parse_list(selected, (int64_t)strlen(selected), kept, &columns,
                                     &column_count, err);
    }
    if (status == GAR_OK) {
        status = gar_frame_select(kept, columns, column_count, out, err);
    }
    gar_expr_list_free(columns, column_count);
    gar_expr_release(predicate);
    gar_frame_release(kept);
    gar_frame_release(people);
    return status;
}

static enum gar_status print_table(const struct gar_frame *query, struct gar_error *err)
{
    struct gar_frame *rows = NULL;
    char *text = NULL;
    enum gar_status status = gar_frame_collect(query, NULL, &rows, err);
    if (status == GAR_OK) {
        struct gar_table_options options;
        gar_table_options_init(&options);
        options.max_rows = 20;
        options.total_rows = gar_frame_known_rows(rows);
        status = gar_frame_to_table(rows, GAR_FORMAT_TABLE, &options, &text, err);
    }
    if (status == GAR_OK) {
        (void)printf("%s\n", text);
    }
    gar_text_free(text);
    gar_frame_release(rows);
    return status;
}

/* Runs the query again and counts rows and missing heights batch by batch: any program that speaks the
 * Arrow C data interface reads results this way. */
static enum gar_status walk_batches(const struct gar_frame *query, struct gar_error *err)
{
    struct gar_result *result = NULL;
    enum gar_status status = gar_frame_run(query, NULL, &result, err);
    if (status != GAR_OK) {
        return status;
    }
    int64_t rows = 0;
    int64_t batches = 0;
    for (;;) {
        struct ArrowArray batch;
        status = gar_result_next(result, GAR_TEXT_AS_LARGE, &batch, err);
        if (status != GAR_OK) {
            break;
        }
        batches++;
        rows += batch.length;
        batch.release(&batch);
    }
    gar_result_release(result);
    if (status != GAR_EOF) {
        return status;
    }
    (void)printf("%" PRId64 " rows in %" PRId64 " batch(es)\n", rows, batches);
    return GAR_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        (void)fprintf(stderr, "usage: people FILE.csv [WHERE]\n");
        return 2;
    }
    const char *where = argc > 2 ? argv[2] : "height_cm > 165";
    struct gar_error err = {0};
    struct gar_session *session = NULL;
    struct gar_frame *query = NULL;
    enum gar_status status = gar_session_new(NULL, &session, &err);
    if (status == GAR_OK) {
        status = build_query(session, argv[1], where, &query, &err);
    }
    if (status == GAR_OK) {
        status = print_table(query, &err);
    }
    if (status == GAR_OK) {
        status = walk_batches(query, &err);
    }
    if (status != GAR_OK) {
        (void)fprintf(stderr, "people: %s\n", err.message);
    }
    gar_frame_release(query);
    gar_session_release(session);
    return status == GAR_OK ? 0 : 1;
}
