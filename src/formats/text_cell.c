/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text. */
#include "formats/text_cell.h"

#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/calendar.h"
#include "base/number_text.h"

enum gar_status gar_text_columns_init(struct gar_text_columns *columns,
                                      const struct gar_batch *batch, struct gar_memory *memory,
                                      struct gar_error *err)
{
    *columns = (struct gar_text_columns){0};
    const int64_t count = batch->schema->count;
    GAR_TRY(gar_batch_gather(batch, memory, &columns->batch, err));
    columns->columns = gar_calloc(count, (int64_t)sizeof(struct gar_column *));
    enum gar_status status =
        columns->columns != NULL
            ? GAR_OK
            : gar_error_nomem(err, count * (int64_t)sizeof(struct gar_column *));
    for (int64_t i = 0; i < count && status >= 0; i++) {
        status = gar_column_flatten(columns->batch->columns[i], memory, &columns->columns[i], err);
    }
    if (status < 0) {
        gar_text_columns_destroy(columns);
    }
    return status;
}

void gar_text_columns_destroy(struct gar_text_columns *columns)
{
    for (int64_t i = 0; columns->columns != NULL && i < columns->batch->schema->count; i++) {
        gar_column_unref(columns->columns[i]);
    }
    gar_free(columns->columns);
    gar_batch_unref(columns->batch);
    *columns = (struct gar_text_columns){0};
}

static int32_t copy_word(const char *word, char *out)
{
    const size_t bytes = strlen(word);
    memcpy(out, word, bytes);
    return (int32_t)bytes;
}

static int32_t timestamp_text(struct gar_type type, int64_t value, char *out)
{
    int32_t bytes =
        gar_format_timestamp(value, gar_unit_digits((enum gar_time_unit)type.unit), out);
    char *blank = memchr(out, ' ', (size_t)bytes);
    if (blank != NULL) {
        *blank = 'T';
    }
    if (type.zone != NULL) {
        out[bytes++] = 'Z';
    }
    return bytes;
}

int32_t gar_text_cell(const struct gar_column *column, int64_t row, char *out)
{
    const struct gar_type type = column->type;
    const void *values = column->values;
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL:
        return copy_word(gar_bit_get(values, column->values_offset + row) ? "true" : "false", out);
    case GAR_INT8: return gar_format_i64(((const int8_t *)values)[row], out);
    case GAR_INT16: return gar_format_i64(((const int16_t *)values)[row], out);
    case GAR_INT32: return gar_format_i64(((const int32_t *)values)[row], out);
    case GAR_INT64:
    case GAR_DURATION: return gar_format_i64(((const int64_t *)values)[row], out);
    case GAR_UINT8: return gar_format_u64(((const uint8_t *)values)[row], out);
    case GAR_UINT16: return gar_format_u64(((const uint16_t *)values)[row], out);
    case GAR_UINT32: return gar_format_u64(((const uint32_t *)values)[row], out);
    case GAR_UINT64: return gar_format_u64(((const uint64_t *)values)[row], out);
    case GAR_FLOAT32: return gar_format_float(((const float *)values)[row], out);
    case GAR_FLOAT64: return gar_format_double(((const double *)values)[row], out);
    case GAR_DECIMAL128: {
        gar_i128 v;
        memcpy(&v, (const uint8_t *)values + row * (int64_t)sizeof v, sizeof v);
        return gar_decimal_format(v, type.scale, out);
    }
    case GAR_DATE: return gar_format_date(((const int32_t *)values)[row], out);
    case GAR_TIME:
        return gar_format_time(((const int64_t *)values)[row],
                               gar_unit_digits((enum gar_time_unit)type.unit), out);
    case GAR_TIMESTAMP: return timestamp_text(type, ((const int64_t *)values)[row], out);
    case GAR_NULL:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return 0;
}
