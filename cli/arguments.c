/* SPDX-License-Identifier: Apache-2.0 */
/* Options may stand before or after the command and files; "--name value" and "--name=value" are the same; "--" ends them. */
#include "arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "usage: gar COMMAND [OPTIONS] FILE...\n"
    "\n"
    "commands:\n"
    "  schema    column names and types\n"
    "  head      the first rows (10 unless --limit says otherwise)\n"
    "  count     number of rows\n"
    "  describe  count, nulls, min, max, mean and stddev of each column\n"
    "  convert   write the rows to the last FILE; its suffix (.parquet, .csv) says the format\n"
    "  explain   the logical, optimized and physical plan\n"
    "\n"
    "FILE is a Parquet or CSV file, a glob, a directory, or - for standard input.\n"
    "\n"
    "options:\n"
    "  --select EXPRS         columns or SQL expressions: --select \"a, b * 2 as c\"\n"
    "  --where PREDICATE      a SQL condition: --where \"a > 1 and s like 'x%'\"\n"
    "  --limit N              at most N rows\n"
    "  --format FORMAT        table, csv or json (default: table)\n"
    "  --input-format FORMAT  parquet or csv, when the suffix does not tell\n"
    "  --delimiter C          of CSV input (default: ,)\n"
    "  --no-header            CSV input has no header line\n"
    "  --compression CODEC    of converted output: snappy, zstd, gzip, brotli, lz4_raw, none\n"
    "  --threads N            compute threads (default: the CPUs this process may use)\n"
    "  --help, --version\n";

void arguments_print_help(void)
{
    (void)fputs(help_text, stdout);
}

static bool usage_error(const char *what, const char *value)
{
    (void)fprintf(stderr, "gar: %s%s%s; see gar --help\n", what, value[0] == '\0' ? "" : ": ",
                  value);
    return false;
}

static bool parse_number(const char *name, const char *text, int64_t max, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > max) {
        (void)fprintf(stderr, "gar: %s takes a whole number from 0 to %lld, got '%s'\n", name,
                      (long long)max, text);
        return false;
    }
    *out = value;
    return true;
}

static bool set_format(struct arguments *out, const char *text)
{
    static const char *const names[] = {"table", "csv", "json"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            out->format = (enum output_format)i;
            out->is_format_given = true;
            return true;
        }
    }
    return usage_error("--format is table, csv or json, got", text);
}

static bool set_input_format(struct arguments *out, const char *text)
{
    if (strcmp(text, "csv") != 0 && strcmp(text, "parquet") != 0) {
        return usage_error("--input-format is csv or parquet, got", text);
    }
    out->input_format = text;
    return true;
}

static bool set_delimiter(struct arguments *out, const char *text)
{
    if (strcmp(text, "\\t") == 0) {
        out->delimiter = '\t';
        return true;
    }
    if (strlen(text) != 1) {
        return usage_error("--delimiter is one byte (or \\t), got", text);
    }
    out->delimiter = text[0];
    return true;
}

/* Options with a value. False: message written. */
static bool set_option(struct arguments *out, const char *name, const char *value)
{
    int64_t number = 0;
    if (strcmp(name, "--select") == 0) {
        out->select = value;
    } else if (strcmp(name, "--where") == 0) {
        out->where = value;
    } else if (strcmp(name, "--limit") == 0) {
        return parse_number(name, value, INT64_MAX, &out->limit);
    } else if (strcmp(name, "--format") == 0) {
        return set_format(out, value);
    } else if (strcmp(name, "--input-format") == 0) {
        return set_input_format(out, value);
    } else if (strcmp(name, "--delimiter") == 0) {
        return set_delimiter(out, value);
    } else if (strcmp(name, "--compression") == 0) {
        out->compression = value;
    } else if (strcmp(name, "--threads") == 0) {
        const bool is_good = parse_number(name, value, 1024, &number);
        out->threads = (int32_t)number;
        return is_good;
    } else {
        return usage_error("unknown option", name);
    }
    return true;
}

static bool set_flag(struct arguments *out, const char *name)
{
    if (strcmp(name, "--no-header") == 0) {
        out->no_header = true;
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        out->is_help = true;
    } else if (strcmp(name, "--version") == 0) {
        out->is_version = true;
    } else {
        return false;
    }
    return true;
}

/* One option at argv[*at]; steps *at over its value. */
static bool parse_option(struct arguments *out, int argc, char **argv, int *at)
{
    char *text = argv[*at];
    if (set_flag(out, text)) {
        return true;
    }
    char *equals = strchr(text, '=');
    if (equals != NULL) {
        *equals = '\0';
        return set_option(out, text, equals + 1);
    }
    if (*at + 1 >= argc) {
        return usage_error("a value is missing after (or this is not an option)", text);
    }
    (*at)++;
    return set_option(out, text, argv[*at]);
}

bool arguments_parse(int argc, char **argv, struct arguments *out)
{
    *out = (struct arguments){.limit = -1};
    out->files = calloc((size_t)argc + 1, sizeof *out->files);
    if (out->files == NULL) {
        return usage_error("out of memory", "");
    }
    bool is_options_over = false;
    for (int i = 1; i < argc; i++) {
        if (!is_options_over && strcmp(argv[i], "--") == 0) {
            is_options_over = true;
        } else if (!is_options_over && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!parse_option(out, argc, argv, &i)) {
                return false;
            }
        } else if (out->command == NULL) {
            out->command = argv[i];
        } else {
            out->files[out->file_count++] = argv[i];
        }
    }
    return true;
}

void arguments_destroy(struct arguments *arguments)
{
    free((void *)arguments->files);
    arguments->files = NULL;
}
