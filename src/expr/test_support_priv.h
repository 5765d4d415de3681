/* SPDX-License-Identifier: Apache-2.0 */
/* Short forms for tests: values, columns and expressions from text, and results as text. */
#ifndef GAR_EXPR_TEST_SUPPORT_PRIV_H
#define GAR_EXPR_TEST_SUPPORT_PRIV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/batch.h"
#include "arrow/builder.h"
#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/memory.h"
#include "expr/program.h"

#define OK(call)                                     \
    do {                                             \
        struct gar_error err_ = GAR_ERROR_INIT;      \
        struct gar_error *err = &err_;               \
        (void)err;                                   \
        const enum gar_status ok_status_ = (call);   \
        if (ok_status_ < 0) {                        \
            fail_msg("%s: %s", #call, err_.message); \
        }                                            \
    } while (0)

GAR_UNUSED static struct gar_type type_of_text(const char *text)
{
    struct gar_type type;
    OK(gar_type_parse(text, (int64_t)strlen(text), &type, err));
    return type;
}

/* "null" or the value's text in its type, through the engine's own cast. */
GAR_UNUSED static struct gar_value value_of_text(const char *text, struct gar_type type)
{
    struct gar_value value = {.type = type};
    if (strcmp(text, "null") == 0) {
        return value;
    }
    struct gar_value source = {0};
    OK(gar_value_from_text(gar_type_of(GAR_STRING), text, (int64_t)strlen(text), &source, err));
    if (type.id == GAR_STRING) {
        return source;
    }
    struct gar_expr *literal = NULL;
    struct gar_expr *cast = NULL;
    OK(gar_expr_new_literal(&source, &literal, err));
    if (type.id == GAR_DURATION) { /* text is no duration: by way of its ticks */
        struct gar_expr *ticks = NULL;
        OK(gar_expr_new_cast(literal, gar_type_of(GAR_INT64), false, &ticks, err));
        gar_expr_unref(literal);
        literal = ticks;
    }
    OK(gar_expr_new_cast(literal, type, false, &cast, err));
    OK(gar_expr_fold(cast, &value, err));
    gar_expr_unref(literal);
    gar_expr_unref(cast);
    gar_value_destroy(&source);
    return value;
}

/* "int64: 1, null, 3" -> a FLAT column. Values are separated by ", ". */
GAR_UNUSED static struct gar_column *column_of(const char *text)
{
    const char *colon = strstr(text, ": ");
    assert_non_null(colon);
    char type_text[64];
    snprintf(type_text, sizeof type_text, "%.*s", (int)(colon - text), text);
    const struct gar_type type = type_of_text(type_text);
    struct gar_builder builder;
    gar_builder_init(&builder, gar_memory_system(), type);
    const char *at = colon + 2;
    while (*at != '\0') {
        const char *end = strstr(at, ", ");
        const size_t size = end != NULL ? (size_t)(end - at) : strlen(at);
        char item[256];
        snprintf(item, sizeof item, "%.*s", (int)size, at);
        if (strcmp(item, "''") == 0) {
            item[0] = '\0';
        }
        struct gar_value value = value_of_text(item, type);
        OK(gar_builder_append_value(&builder, &value, err));
        gar_value_destroy(&value);
        at = end != NULL ? end + 2 : at + size;
    }
    struct gar_column *column = NULL;
    OK(gar_builder_finish(&builder, &column, err));
    gar_builder_destroy(&builder);
    return column;
}

/* The column's values as they would be written for column_of, without the type. */
GAR_UNUSED static void column_text(const struct gar_column *column, struct gar_strbuf *out)
{
    for (int64_t i = 0; i < column->length; i++) {
        struct gar_value value = {0};
        OK(gar_value_from_column(column, i, &value, err));
        gar_strbuf_append(out, i == 0 ? "" : ", ");
        if (!value.is_valid) {
            gar_strbuf_append(out, "null");
        } else {
            gar_value_print_plain(&value, 0, out);
        }
        gar_value_destroy(&value);
    }
}

GAR_UNUSED static struct gar_expr *col(const char *name)
{
    struct gar_expr *expr = NULL;
    OK(gar_expr_new_column(name, &expr, err));
    return expr;
}

GAR_UNUSED static struct gar_expr *lit(const char *type, const char *text)
{
    struct gar_value value = value_of_text(text, type_of_text(type));
    struct gar_expr *expr = NULL;
    OK(gar_expr_new_literal(&value, &expr, err));
    gar_value_destroy(&value);
    return expr;
}

GAR_UNUSED static struct gar_expr *int_lit(int64_t v)
{
    struct gar_value value = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = v};
    struct gar_expr *expr = NULL;
    OK(gar_expr_new_literal(&value, &expr, err));
    return expr;
}

GAR_UNUSED static struct gar_expr *text_lit(const char *text)
{
    return lit("string", text);
}

/* Takes over the arguments; the list ends with NULL. */
GAR_UNUSED static struct gar_expr *call(const char *name, ...)
{
    struct gar_expr *args[16];
    int64_t count = 0;
    va_list list;
    va_start(list, name);
    for (struct gar_expr *arg = va_arg(list, struct gar_expr *); arg != NULL;
         arg = va_arg(list, struct gar_expr *)) {
        args[count++] = arg;
    }
    va_end(list);
    struct gar_expr *expr = NULL;
    OK(gar_expr_new_call_by_name(name, args, count, &expr, err));
    for (int64_t i = 0; i < count; i++) {
        gar_expr_unref(args[i]);
    }
    return expr;
}

GAR_UNUSED static struct gar_expr *cast_to(struct gar_expr *arg, const char *type, bool is_try)
{
    struct gar_expr *expr = NULL;
    OK(gar_expr_new_cast(arg, type_of_text(type), is_try, &expr, err));
    gar_expr_unref(arg);
    return expr;
}

/* Columns a, b, c, ...; takes over the columns. */
GAR_UNUSED static struct gar_batch *batch_of(struct gar_column **columns, int64_t count)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct gar_field fields[6];
    memset(fields, 0, sizeof fields);
    for (int64_t i = 0; i < count; i++) {
        char name[2];
        memcpy(name, names[i], 2);
        fields[i].name = gar_strdup(name);
        fields[i].type = columns[i]->type;
        fields[i].nullable = true;
    }
    struct gar_schema *schema = NULL;
    OK(gar_schema_new(fields, count, false, &schema, err));
    for (int64_t i = 0; i < count; i++) {
        gar_free(fields[i].name);
    }
    struct gar_batch *batch = NULL;
    OK(gar_batch_new(schema, columns, count > 0 ? columns[0]->length : 0, &batch, err));
    gar_batch_set_origin(batch, 0);
    gar_schema_unref(schema);
    return batch;
}

/* Evaluates expr over the batch. Returns the status; on success *out is the result. */
GAR_UNUSED static enum gar_status evaluate(struct gar_expr *expr, const struct gar_batch *batch,
                                           struct gar_column **out, struct gar_error *err)
{
    struct gar_program *program = NULL;
    GAR_TRY(gar_program_new(batch->schema, &expr, 1, &program, err));
    struct gar_eval *eval = NULL;
    enum gar_status status = gar_eval_new(program, gar_memory_system(), &eval, err);
    if (status >= 0) {
        status = gar_eval_run(eval, batch, out, err);
    }
    gar_eval_free(eval);
    gar_program_unref(program);
    return status;
}

/* The same rows as DICTIONARY (each distinct row position its own entry, plus one entry that no row uses). */
GAR_UNUSED static struct gar_column *as_dictionary(const struct gar_column *flat)
{
    struct gar_builder entries;
    gar_builder_init(&entries, gar_memory_system(), flat->type);
    struct gar_buffer *codes = NULL;
    struct gar_buffer *validity = NULL;
    OK(gar_buffer_new_zeroed(gar_memory_system(), flat->length * 4, &codes, err));
    OK(gar_buffer_new_zeroed(gar_memory_system(), gar_bits_bytes(flat->length), &validity, err));
    int64_t nulls = 0;
    uint32_t next = 0;
    for (int64_t i = 0; i < flat->length; i++) {
        struct gar_value value = {0};
        OK(gar_value_from_column(flat, i, &value, err));
        if (value.is_valid) {
            OK(gar_builder_append_value(&entries, &value, err));
            ((uint32_t *)(void *)codes->data)[i] = next++;
            gar_bit_set(validity->data, i);
        } else {
            nulls++;
        }
        gar_value_destroy(&value);
    }
    struct gar_column *dictionary = NULL;
    OK(gar_builder_finish(&entries, &dictionary, err));
    gar_builder_destroy(&entries);
    struct gar_column *column = NULL;
    if (dictionary->length == 0) {
        gar_column_unref(dictionary);
        gar_buffer_unref(codes);
        gar_buffer_unref(validity);
        return gar_column_ref(flat);
    }
    OK(gar_column_new_dictionary(codes, flat->length, validity, nulls, dictionary,
                                 gar_dictionary_next_id(), &column, err));
    return column;
}

/* The column with junk rows before and after, cut out again: odd offsets into shared buffers. */
GAR_UNUSED static struct gar_column *as_slice(const struct gar_column *column)
{
    struct gar_column *parts[3] = {gar_column_ref(column), gar_column_ref(column),
                                   gar_column_ref(column)};
    struct gar_column *joined = NULL;
    OK(gar_column_concat(parts, 3, column->type, gar_memory_system(), &joined, err));
    for (int32_t i = 0; i < 3; i++) {
        gar_column_unref(parts[i]);
    }
    struct gar_column *slice = NULL;
    OK(gar_column_slice(joined, column->length, column->length, &slice, err));
    gar_column_unref(joined);
    return slice;
}

#endif
