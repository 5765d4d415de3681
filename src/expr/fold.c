/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding during typing. */
#include "expr/fold_priv.h"

#include "base/calendar.h"
#include "base/memory.h"
#include "arrow/builder.h"

static enum gar_status bad_text(const struct gar_value *text, struct gar_type type, struct gar_error *err)
{
    char quoted[120];
    char type_text[64];
    gar_error_quote(text->text.data, text->text.size, quoted, (int64_t)sizeof quoted);
    return gar_error_set(err, GAR_ERR_CAST, "cannot read '%s' as %s; write it as 2024-12-31 or 2024-12-31 23:59:59",
                         quoted, gar_type_text(type, type_text, (int64_t)sizeof type_text));
}

/* A text literal beside a date, time or timestamp. */
static enum gar_status parse_literal(const struct gar_value *text, struct gar_type type, struct gar_value *out,
                                     struct gar_error *err)
{
    *out = (struct gar_value){.type = type, .is_valid = true};
    const char *data = text->text.data;
    const int64_t size = text->text.size;
    bool is_read = false;
    if (type.id == GAR_DATE) {
        int32_t days = 0;
        is_read = gar_parse_date(data, size, &days);
        out->i64 = days;
    } else if (type.id == GAR_TIME) {
        is_read = gar_parse_time(data, size, &out->i64);
        out->i64 = type.unit == GAR_MICRO ? out->i64 / 1000 : out->i64;
    } else {
        bool has_offset = false;
        is_read = gar_parse_timestamp(data, size, gar_unit_digits(type.unit), &out->i64, &has_offset);
    }
    return is_read ? GAR_OK : bad_text(text, type, err);
}

enum gar_status gar_bound_fold(struct gar_binder *binder, struct gar_bound **node, struct gar_error *err)
{
    const struct gar_bound *cast = *node;
    if (cast->op != GAR_OP_CAST || cast->args[0]->op != GAR_OP_CONST || cast->args[0]->type.id != GAR_STRING) {
        return GAR_OK;
    }
    struct gar_value value;
    GAR_TRY(parse_literal(cast->args[0]->value, cast->type, &value, err));
    return gar_bound_const(binder, &value, cast->args[0]->is_literal, node, err);
}

enum gar_status gar_fold_set(struct gar_column *set, struct gar_type *type, struct gar_column **out,
                             struct gar_error *err)
{
    if (type->id == GAR_NULL) {
        *type = set->type;
    }
    struct gar_type common;
    const bool is_text_beside_time = set->type.id == GAR_STRING && gar_type_is_temporal(*type);
    if (!is_text_beside_time && !gar_type_common(*type, set->type, true, &common)) {
        char a_text[64];
        char b_text[64];
        return gar_error_set(err, GAR_ERR_TYPE, "in cannot look for %s among %s; cast one of them",
                             gar_type_text(*type, a_text, (int64_t)sizeof a_text),
                             gar_type_text(set->type, b_text, (int64_t)sizeof b_text));
    }
    *out = gar_column_ref(set);
    return GAR_OK;
}
