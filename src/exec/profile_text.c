/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as text: the physical plan, with or without numbers, and the progress line. */
#include <stdio.h>
#include <string.h>

#include "exec/profile.h"

/* 1234567 -> "1,234,567". out has at least 32 bytes. */
static const char *count_text(int64_t n, char *out)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)gar_max_i64(n, 0));
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

/* Three figures and a letter: "12.3 M". out has at least 32 bytes. */
static const char *short_count(int64_t n, char *out)
{
    static const char *const units[] = {"", " K", " M", " G", " T"};
    double value = (double)gar_max_i64(n, 0);
    int unit = 0;
    for (; value >= 9999.5 && unit < 4; unit++) {
        value /= 1000.0;
    }
    (void)snprintf(out, 32, unit == 0 || value >= 999.5 ? "%.0f%s" : "%.3g%s", value, units[unit]);
    return out;
}

static const char *bytes_text(int64_t n, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)gar_max_i64(n, 0);
    int unit = 0;
    for (; value >= 1024.0 && unit < 4; unit++) {
        value /= 1024.0;
    }
    (void)snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

static const char *time_text(int64_t ns, char *out)
{
    const double seconds = (double)ns / 1e9;
    if (seconds >= 1.0) {
        (void)snprintf(out, 32, "%.2f s", seconds);
    } else {
        (void)snprintf(out, 32, seconds >= 0.001 ? "%.1f ms" : "%.3f ms", seconds * 1e3);
    }
    return out;
}

/* ---- the plan ---- */

static void print_scan(const struct gar_operator_profile *op, struct gar_strbuf *out)
{
    char a[32];
    char b[32];
    if (op->pieces_total >= 0) {
        gar_strbuf_printf(out, "; pieces read %s of %s", count_text(op->pieces_read, a),
                          count_text(op->pieces_total, b));
        if (op->pieces_skipped > 0) {
            gar_strbuf_printf(out, " (%s skipped)", count_text(op->pieces_skipped, a));
        }
    }
    if (op->files_total > 1) {
        gar_strbuf_printf(out, ", files %s of %s", count_text(op->files_read, a),
                          count_text(op->files_total, b));
    }
    if (op->bytes_read > 0) {
        gar_strbuf_printf(out, ", %s stored", bytes_text(op->bytes_read, a));
    }
}

static void print_numbers(const struct gar_operator_profile *op, struct gar_strbuf *out)
{
    char a[32];
    char b[32];
    gar_strbuf_append(out, "\n       ");
    if (op->role == GAR_OPERATOR_SINK) {
        gar_strbuf_printf(out, "rows in %s", count_text(op->rows_in, a));
    } else if (op->rows_in != op->rows_out) {
        gar_strbuf_printf(out, "rows %s of %s", count_text(op->rows_out, a),
                          count_text(op->rows_in, b));
    } else {
        gar_strbuf_printf(out, "rows %s", count_text(op->rows_out, a));
    }
    gar_strbuf_printf(out, ", batches %s, %s; busy ", count_text(op->batches, a),
                      bytes_text(op->bytes, b));
    gar_strbuf_append(out, time_text(op->busy_ns, a));
    if (op->io_ns > 0) {
        gar_strbuf_printf(out, ", IO %s", time_text(op->io_ns, a));
    }
    if (op->memory_peak_bytes > 0) {
        gar_strbuf_printf(out, ", memory %s at most", bytes_text(op->memory_peak_bytes, a));
    }
    if (op->role == GAR_OPERATOR_SOURCE) {
        print_scan(op, out);
    }
}

static void print_totals(const struct gar_query_profile *query, struct gar_strbuf *out)
{
    char a[32];
    char b[32];
    gar_strbuf_printf(out, "%s rows in %s", count_text(query->rows, a),
                      time_text(query->wall_ns, b));
    gar_strbuf_printf(out, ", CPU %s", time_text(query->cpu_ns, a));
    if (query->memory_peak_bytes > 0) {
        gar_strbuf_printf(out, ", memory %s at most", bytes_text(query->memory_peak_bytes, a));
    }
    gar_strbuf_append(out, query->is_finished ? "\n" : ", still running\n");
}

static void print_pools(const struct gar_profile *profile, struct gar_strbuf *out)
{
    char a[32];
    char b[32];
    char c[32];
    struct gar_pool_counts pool;
    for (int64_t i = 0; gar_profile_read_pool(profile, i, &pool); i++) {
        gar_strbuf_printf(out, "actors of %s: %s, ready %lld, busy %lld; rows %s, restarts %s\n",
                          pool.name, count_text(pool.actors, a), (long long)pool.ready,
                          (long long)pool.busy, count_text(pool.rows, b),
                          count_text(pool.restarts, c));
    }
}

void gar_profile_print(const struct gar_profile *profile, bool with_numbers, struct gar_strbuf *out)
{
    static const char *const leads[] = {"  ", "  -> ", "  => "};
    struct gar_query_profile query;
    struct gar_operator_profile op;
    gar_profile_read_query(profile, &query);
    if (query.is_inline) {
        gar_strbuf_append(out, "inline on the caller's thread\n");
    } else {
        gar_strbuf_printf(out, "on %d compute threads\n", (int)query.threads);
    }
    if (with_numbers) {
        print_totals(&query, out);
    }
    int32_t pipeline = 0;
    for (int64_t i = 0; gar_profile_read_operator(profile, i, &op); i++) {
        if (op.pipeline != pipeline) {
            pipeline = op.pipeline;
            gar_strbuf_printf(out, "pipeline %d\n", (int)pipeline);
        }
        gar_strbuf_append(out, leads[op.role]);
        gar_strbuf_append(out, op.detail);
        if (with_numbers) {
            print_numbers(&op, out);
        }
        gar_strbuf_append_char(out, '\n');
    }
    if (with_numbers) {
        print_pools(profile, out);
    }
}

/* ---- the progress line ---- */

/* What appends to a line of bounded length; the rest is left out. */
struct line {
    char *text;
    int64_t room;
    int64_t size;
};

static void line_add(struct line *line, const char *text)
{
    const int64_t bytes = gar_min_i64((int64_t)strlen(text), line->room - 1 - line->size);
    if (bytes > 0) {
        memcpy(line->text + line->size, text, (size_t)bytes);
        line->size += bytes;
    }
    line->text[line->size] = '\0';
}

/* Share of the scan's input that was read, 0..100, or -1. */
static int32_t percent_of(const struct gar_operator_profile *op)
{
    int64_t done = op->rows_in;
    int64_t total = op->rows_total;
    if (total < 0) {
        done = op->bytes_read;
        total = op->bytes_total;
    }
    return total > 0 ? (int32_t)gar_min_i64(100, (int64_t)(100.0 * (double)done / (double)total))
                     : -1;
}

static void line_add_operator(struct line *line, const struct gar_operator_profile *op)
{
    char a[32];
    char part[96];
    const int32_t percent = op->role == GAR_OPERATOR_SOURCE ? percent_of(op) : -1;
    const int64_t rows = op->role == GAR_OPERATOR_TRANSFORM ? op->rows_out : op->rows_in;
    if (percent >= 0) {
        (void)snprintf(part, sizeof part, " | %s %d %%, %s rows", op->name, (int)percent,
                       short_count(rows, a));
    } else {
        (void)snprintf(part, sizeof part, " | %s %s rows", op->name, short_count(rows, a));
    }
    line_add(line, part);
}

static void line_add_pool(struct line *line, const struct gar_pool_counts *pool)
{
    char a[32];
    char part[96];
    line_add(line, " | ");
    line_add(line, pool->name);
    (void)snprintf(part, sizeof part, " %s rows, %lld of %lld actors ready, %lld busy",
                   short_count(pool->rows, a), (long long)pool->ready, (long long)pool->actors,
                   (long long)pool->busy);
    line_add(line, part);
    if (pool->restarts > 0) {
        (void)snprintf(part, sizeof part, ", %lld restarted", (long long)pool->restarts);
        line_add(line, part);
    }
}

int64_t gar_profile_line(const struct gar_profile *profile, char *out, int64_t out_bytes)
{
    struct line line = {.text = out, .room = out_bytes};
    struct gar_query_profile query;
    struct gar_operator_profile op;
    char part[64];
    gar_profile_read_query(profile, &query);
    (void)snprintf(part, sizeof part, "%.1f s", (double)query.wall_ns / 1e9);
    line_add(&line, part);
    if (query.pipeline_count > 1 && query.pipeline > 0) {
        (void)snprintf(part, sizeof part, " | step %d of %d", (int)query.pipeline,
                       (int)query.pipeline_count);
        line_add(&line, part);
    }
    for (int64_t i = 0; gar_profile_read_operator(profile, i, &op); i++) {
        if (op.pipeline == query.pipeline && op.branch == 1) {
            line_add_operator(&line, &op);
        }
    }
    struct gar_pool_counts pool;
    for (int64_t i = 0; gar_profile_read_pool(profile, i, &pool); i++) {
        line_add_pool(&line, &pool);
    }
    if (query.waiting != NULL) {
        line_add(&line, " | ");
        line_add(&line, query.waiting);
    }
    return line.size;
}
