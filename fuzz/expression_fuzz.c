/* SPDX-License-Identifier: Apache-2.0 */
/* SQL expressions: lexer, parser, binder, typing, printing and, when all of that succeeds, evaluation over a few rows. */
#include <string.h>

#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Rows of every kind that expressions work on, nulls included, made once. */
static struct gar_frame *make_rows(void)
{
    static const char csv[] =
        "i,f,s,d,t,b\n"
        "1,1.5,abc,2020-02-29,2020-01-01 12:00:00,true\n"
        ",,,,,\n"
        "-9223372036854775808,nan,\"x%_\\y\",1969-12-31,1969-12-31 23:59:59,false\n";
    char path[64];
    const int fd = fuzz_file((const uint8_t *)csv, sizeof csv - 1, path);
    const char *name = path;
    struct gar_frame *read = NULL;
    struct gar_frame *rows = NULL;
    struct gar_error err;
    if (gar_frame_read_csv(fuzz_session(), &name, 1, NULL, &read, &err) != GAR_OK ||
        gar_frame_collect(read, NULL, &rows, &err) != GAR_OK) {
        (void)fprintf(stderr, "no rows: %s\n", err.message);
        abort();
    }
    gar_frame_release(read);
    (void)close(fd);
    return rows;
}

/* Evaluates the expression as a column of its own. */
static void evaluate(const struct gar_frame *rows, struct gar_expr *expr)
{
    struct gar_frame *selected = NULL;
    struct gar_error err;
    if (gar_frame_select(rows, &expr, 1, &selected, &err) == GAR_OK) {
        fuzz_drain(selected);
    }
    gar_frame_release(selected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gar_frame *rows;
    if (rows == NULL) {
        rows = make_rows();
    }
    struct gar_error err;
    struct gar_expr **list = NULL;
    int64_t count = 0;
    if (gar_expr_parse_list((const char *)data, (int64_t)size, rows, &list, &count, &err) !=
        GAR_OK) {
        return 0;
    }
    for (int64_t i = 0; i < count; i++) {
        char *text = NULL;
        char *type = NULL;
        struct gar_expr *again = NULL;
        if (gar_expr_to_text(list[i], &text, &err) == GAR_OK &&
            gar_expr_parse(text, (int64_t)strlen(text), rows, &again, &err) == GAR_OK) {
            gar_expr_release(again);
        }
        if (gar_expr_type_text(list[i], rows, &type, &err) == GAR_OK) {
            evaluate(rows, list[i]);
        }
        gar_text_free(type);
        gar_text_free(text);
    }
    gar_expr_list_free(list, count);
    return 0;
}
