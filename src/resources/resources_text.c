/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of the ledger as a table or as JSON: what the command line and Python print. */
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "resources/request.h"

enum { COLUMNS_MAX = 5, CELL_BYTES = 192 };

/* A table in the making: cells are cut, columns padded. */
struct table {
    struct gar_strbuf *out;
    int64_t widths[COLUMNS_MAX];
    int64_t column_count;
    bool is_measuring; /* first pass: widths only */
};

static void add_row(struct table *table, const char *const *cells);
static void add_devices(struct table *table, const struct gar_resources *resources);
static void add_holders(struct table *table, const struct gar_resources *resources,
                        const struct gar_resource_holder *holders, int64_t count, bool is_waiting);
static void add_table(struct gar_strbuf *out, const struct gar_resources *resources);
static void add_json(struct gar_strbuf *out, const struct gar_resources *resources);

enum gar_status gar_resources_to_text(const struct gar_resources *resources, bool as_json,
                                      char **out, struct gar_error *err)
{
    struct gar_strbuf text = {0};
    if (as_json) {
        add_json(&text, resources);
    } else {
        add_table(&text, resources);
    }
    char *made = gar_strbuf_take(&text);
    if (made == NULL) {
        return gar_error_nomem(err, CELL_BYTES);
    }
    *out = made;
    return GAR_OK;
}

/* ---- table ----------------------------------------------------------------------------------- */

static void add_row(struct table *table, const char *const *cells)
{
    for (int64_t c = 0; c < table->column_count; c++) {
        const int64_t width = (int64_t)strlen(cells[c]);
        if (table->is_measuring) {
            table->widths[c] = gar_max_i64(table->widths[c], width);
            continue;
        }
        gar_strbuf_append(table->out, cells[c]);
        if (c + 1 < table->column_count) {
            gar_strbuf_append_fill(table->out, ' ', table->widths[c] - width + 2);
        }
    }
    if (!table->is_measuring) {
        gar_strbuf_append_char(table->out, '\n');
    }
}

/* "10.0 GiB of 80.0 GiB", "not known". */
static void free_of(int64_t free_bytes, int64_t bytes, char *out)
{
    char left[32];
    char right[32];
    struct gar_strbuf text = {0};
    if (bytes < 0) {
        gar_strbuf_append(&text, "not known");
    } else {
        gar_strbuf_printf(&text, "%s of %s", gar_bytes_text(free_bytes, left, (int64_t)sizeof left),
                          gar_bytes_text(bytes, right, (int64_t)sizeof right));
    }
    (void)gar_error_quote(gar_strbuf_text(&text), text.size, out, CELL_BYTES);
    gar_strbuf_destroy(&text);
}

static void add_devices(struct table *table, const struct gar_resources *resources)
{
    static const char *const titles[] = {"device", "model", "free share", "free memory", "state"};
    add_row(table, titles);
    for (int64_t d = 0; d < resources->device_count; d++) {
        const struct gar_resource_device *device = &resources->devices[d];
        char cells[COLUMNS_MAX][CELL_BYTES];
        const char *const name = device->device.name;
        const char *const model = device->device.model[0] == '\0' ? "-" : device->device.model;
        (void)gar_error_quote(name, (int64_t)strlen(name), cells[0], CELL_BYTES);
        (void)gar_error_quote(model, (int64_t)strlen(model), cells[1], CELL_BYTES);
        (void)gar_shares_text(device->free_shares, cells[2], CELL_BYTES);
        free_of(device->free_memory_bytes, device->device.memory_bytes, cells[3]);
        struct gar_strbuf state = {0};
        gar_strbuf_append(&state, device->is_set_aside ? "set aside: " : "usable");
        gar_strbuf_append(&state, device->is_set_aside ? device->reason : "");
        (void)gar_error_quote(gar_strbuf_text(&state), state.size, cells[4], CELL_BYTES);
        gar_strbuf_destroy(&state);
        const char *const row[] = {cells[0], cells[1], cells[2], cells[3], cells[4]};
        add_row(table, row);
    }
}

static void add_holders(struct table *table, const struct gar_resources *resources,
                        const struct gar_resource_holder *holders, int64_t count, bool is_waiting)
{
    const char *const titles[] = {is_waiting ? "waits" : "holds", is_waiting ? "actors" : "process",
                                  is_waiting ? "each asks" : "asked", "devices"};
    add_row(table, titles);
    for (int64_t i = 0; i < count; i++) {
        const struct gar_resource_holder *holder = &holders[i];
        char cells[3][CELL_BYTES];
        struct gar_strbuf number = {0};
        struct gar_strbuf devices = {0};
        (void)gar_error_quote(holder->name, (int64_t)strlen(holder->name), cells[0], CELL_BYTES);
        gar_strbuf_printf(&number, "%lld",
                          (long long)(is_waiting ? holder->count : holder->process_id));
        (void)gar_error_quote(gar_strbuf_text(&number), number.size, cells[1], CELL_BYTES);
        (void)gar_resource_request_text(&holder->request, cells[2], CELL_BYTES);
        for (int64_t d = 0; d < holder->device_count; d++) {
            gar_strbuf_printf(&devices, "%s%s", d > 0 ? "," : "",
                              resources->devices[holder->devices[d]].device.name);
        }
        const char *const row[] = {cells[0], cells[1], cells[2], gar_strbuf_text(&devices)};
        add_row(table, row);
        gar_strbuf_destroy(&number);
        gar_strbuf_destroy(&devices);
    }
}

static void add_table(struct gar_strbuf *out, const struct gar_resources *resources)
{
    char left[32];
    char right[CELL_BYTES];
    gar_strbuf_printf(out, "CPUs free    %s of ",
                      gar_shares_text(resources->free_cpu_shares, left, (int64_t)sizeof left));
    gar_strbuf_printf(out, "%s\n",
                      gar_shares_text(resources->cpu_shares, left, (int64_t)sizeof left));
    free_of(resources->free_memory_bytes, resources->memory_bytes, right);
    gar_strbuf_printf(out, "memory free  %s\n", right);
    gar_strbuf_printf(out, "GPUs         %lld\n", (long long)resources->device_count);
    if (resources->warning[0] != '\0') {
        gar_strbuf_printf(out, "warning      %s\n", resources->warning);
    }
    const struct {
        const struct gar_resource_holder *holders; /* NULL: devices */
        int64_t count;
        int64_t column_count;
        bool is_waiting;
    } tables[] = {
        {NULL, resources->device_count, 5, false},
        {resources->holders, resources->holder_count, 4, false},
        {resources->waiting, resources->waiting_count, 3, true},
    };
    for (int64_t t = 0; t < GAR_COUNT_OF(tables); t++) {
        struct table table = {.out = out, .column_count = tables[t].column_count};
        for (int64_t pass = 0; pass < 2 && tables[t].count > 0; pass++) {
            table.is_measuring = pass == 0;
            if (pass == 1) {
                gar_strbuf_append_char(out, '\n');
            }
            if (t == 0) {
                add_devices(&table, resources);
            } else {
                add_holders(&table, resources, tables[t].holders, tables[t].count,
                            tables[t].is_waiting);
            }
        }
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A quoted string; bytes that are no UTF-8 become the characters of the same number. */
static void add_string(struct gar_strbuf *out, const char *text)
{
    const bool is_utf8 = gar_utf8_valid(text, (int64_t)strlen(text));
    gar_strbuf_append_char(out, '"');
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            gar_strbuf_append_char(out, '\\');
            gar_strbuf_append_char(out, *at);
        } else if ((unsigned char)*at < 0x20 || (!is_utf8 && (unsigned char)*at >= 0x80)) {
            gar_strbuf_printf(out, "\\u%04x", (unsigned)(unsigned char)*at);
        } else {
            gar_strbuf_append_char(out, *at);
        }
    }
    gar_strbuf_append_char(out, '"');
}

static void add_shares(struct gar_strbuf *out, const char *key, int64_t shares)
{
    char text[32];
    gar_strbuf_printf(
        out, ", \"%s\": %s", key,
        shares == GAR_NOT_ASKED ? "null" : gar_shares_text(shares, text, (int64_t)sizeof text));
}

/* Negative: not known, or not asked. */
static void add_bytes(struct gar_strbuf *out, const char *key, int64_t bytes)
{
    if (bytes < 0) {
        gar_strbuf_printf(out, ", \"%s\": null", key);
    } else {
        gar_strbuf_printf(out, ", \"%s\": %lld", key, (long long)bytes);
    }
}

static void add_text(struct gar_strbuf *out, const char *key, const char *text)
{
    gar_strbuf_printf(out, ", \"%s\": ", key);
    add_string(out, text);
}

static void add_json_device(struct gar_strbuf *out, const struct gar_resource_device *device)
{
    static const char *const vendors[] = {"unknown", "nvidia", "amd"};
    gar_strbuf_append(out, "{\"name\": ");
    add_string(out, device->device.name);
    add_text(out, "uuid", device->device.uuid);
    add_text(out, "model", device->device.model);
    add_text(out, "vendor", vendors[device->device.vendor]);
    add_bytes(out, "memory_bytes", device->device.memory_bytes);
    add_shares(out, "free_share", device->free_shares);
    add_bytes(out, "free_memory_bytes", device->free_memory_bytes);
    gar_strbuf_printf(out, ", \"is_slice\": %s", device->device.is_slice ? "true" : "false");
    if (device->is_set_aside) {
        add_text(out, "set_aside", device->reason);
    } else {
        gar_strbuf_append(out, ", \"set_aside\": null");
    }
    gar_strbuf_append_char(out, '}');
}

static void add_json_holder(struct gar_strbuf *out, const struct gar_resources *resources,
                            const struct gar_resource_holder *holder)
{
    gar_strbuf_append(out, "{\"name\": ");
    add_string(out, holder->name);
    gar_strbuf_printf(out, ", \"process_id\": %lld, \"count\": %lld", (long long)holder->process_id,
                      (long long)holder->count);
    add_shares(out, "num_cpus", holder->request.cpu_shares);
    add_shares(out, "num_gpus", holder->request.gpu_shares);
    add_bytes(out, "memory_bytes", holder->request.memory_bytes);
    add_bytes(out, "gpu_memory_bytes", holder->request.gpu_memory_bytes);
    gar_strbuf_append(out, ", \"devices\": [");
    for (int64_t d = 0; d < holder->device_count; d++) {
        gar_strbuf_append(out, d > 0 ? ", " : "");
        add_string(out, resources->devices[holder->devices[d]].device.name);
    }
    gar_strbuf_append(out, "]}");
}

static void add_json(struct gar_strbuf *out, const struct gar_resources *resources)
{
    char text[32];
    gar_strbuf_printf(out, "{\"num_cpus\": %s",
                      gar_shares_text(resources->cpu_shares, text, (int64_t)sizeof text));
    add_shares(out, "free_cpus", resources->free_cpu_shares);
    add_bytes(out, "memory_bytes", resources->memory_bytes);
    add_bytes(out, "free_memory_bytes", resources->free_memory_bytes);
    gar_strbuf_append(out, ", \"devices\": [");
    for (int64_t d = 0; d < resources->device_count; d++) {
        gar_strbuf_append(out, d > 0 ? ", " : "");
        add_json_device(out, &resources->devices[d]);
    }
    gar_strbuf_append(out, "], \"holders\": [");
    for (int64_t i = 0; i < resources->holder_count; i++) {
        gar_strbuf_append(out, i > 0 ? ", " : "");
        add_json_holder(out, resources, &resources->holders[i]);
    }
    gar_strbuf_append(out, "], \"waiting\": [");
    for (int64_t i = 0; i < resources->waiting_count; i++) {
        gar_strbuf_append(out, i > 0 ? ", " : "");
        add_json_holder(out, resources, &resources->waiting[i]);
    }
    gar_strbuf_append(out, "]");
    add_text(out, "warning", resources->warning);
    gar_strbuf_append(out, "}\n");
}
