/* SPDX-License-Identifier: Apache-2.0 */
/* Options may stand before or after the command and files; "--name value" and "--name=value" are the same; "--" ends them. */
#include "arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands and options ---- */

/* Bits of what a command takes. */
enum {
    TAKES_SELECT = 1 << 0,
    TAKES_WHERE = 1 << 1,
    TAKES_LIMIT = 1 << 2,
    TAKES_FORMAT = 1 << 3,
    TAKES_INPUT_FORMAT = 1 << 4,
    TAKES_DELIMITER = 1 << 5,
    TAKES_NO_HEADER = 1 << 6,
    TAKES_COMPRESSION = 1 << 7,
    TAKES_THREADS = 1 << 8,
    TAKES_ANALYZE = 1 << 9,
    TAKES_INPUT = TAKES_SELECT | TAKES_WHERE | TAKES_INPUT_FORMAT | TAKES_DELIMITER |
                  TAKES_NO_HEADER | TAKES_THREADS,
};

struct command_info {
    const char *name;
    const char *operands; /* NULL: none, no file is read */
    const char *summary;
    const char *details;
    int takes;
};

/* In the order of enum command_id. */
static const struct command_info commands[] = {
    {"schema", "FILE...", "column names and types",
     "Prints a line \"name: type\" for each column, of the files or of what --select makes of\n"
     "them. No rows are read but the sample from which types of CSV columns are inferred.\n",
     TAKES_INPUT},
    {"head", "FILE...", "the first rows (10 unless --limit says otherwise)",
     "Prints the first rows, after --where and --select. Reading stops as soon as they are\n"
     "there.\n",
     TAKES_INPUT | TAKES_LIMIT | TAKES_FORMAT},
    {"count", "FILE...", "number of rows",
     "Prints the number of rows, after --where and --limit. Of Parquet files without --where only\n"
     "the footers are read.\n",
     TAKES_INPUT | TAKES_LIMIT},
    {"describe", "FILE...", "count, nulls, min, max, mean and stddev of each column",
     "Prints a row for each column: its type, how many values and nulls it has, least and\n"
     "greatest value, mean and standard deviation (n - 1) where they have a meaning.\n",
     TAKES_INPUT | TAKES_LIMIT | TAKES_FORMAT},
    {"convert", "FILE... TARGET", "write the rows to TARGET; its suffix says the format",
     "Writes the rows to TARGET, whose suffix says the format: .parquet, .csv, .csv.gz or\n"
     ".csv.zst. TARGET appears, replacing what was there, when all of it is written; after an\n"
     "error or Ctrl-C all is as before.\n",
     TAKES_INPUT | TAKES_LIMIT | TAKES_COMPRESSION},
    {"explain", "FILE...", "the logical, optimized and physical plan",
     "Prints what a query with these options would do, without running it. With --analyze it "
     "runs,\n"
     "its rows are thrown away, and the physical plan tells the rows, bytes, time and memory of\n"
     "each operator.\n",
     TAKES_INPUT | TAKES_LIMIT | TAKES_ANALYZE},
    {"resources", NULL, "CPUs, memory and GPUs that a query may use here",
     "Prints what this process may use of the machine: CPUs (affinity, quota), memory (container\n"
     "limits), and GPUs with their memory, as CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and the\n"
     "driver say. CUDA is not started.\n",
     TAKES_FORMAT},
};

struct option_info {
    const char *name;
    const char *value; /* NULL: a flag */
    const char *help;
    int bit;
};

static const struct option_info options[] = {
    {"--select", "EXPRS", "columns or SQL expressions: --select \"a, b * 2 as c\"", TAKES_SELECT},
    {"--where", "PREDICATE", "a SQL condition: --where \"a > 1 and s like 'x%'\"", TAKES_WHERE},
    {"--limit", "N", "at most N rows", TAKES_LIMIT},
    {"--format", "FORMAT", "table, csv or json (default: table)", TAKES_FORMAT},
    {"--input-format", "FORMAT", "parquet or csv, when the suffix does not tell",
     TAKES_INPUT_FORMAT},
    {"--delimiter", "C", "of CSV input: one character, \\t for a tab (default: ,)",
     TAKES_DELIMITER},
    {"--no-header", NULL, "CSV input has no header line", TAKES_NO_HEADER},
    {"--compression", "CODEC",
     "of TARGET: snappy, zstd, gzip, brotli, lz4_raw, none for Parquet\n"
     "                         (default: snappy), gzip, zstd, none for CSV (default: by suffix)",
     TAKES_COMPRESSION},
    {"--analyze", NULL, "run the query and tell what each operator did", TAKES_ANALYZE},
    {"--threads", "N", "compute threads, from 1 on (default: the CPUs this process may use)",
     TAKES_THREADS},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };
enum { OPTIONS = sizeof options / sizeof options[0] };

static const char files_text[] =
    "FILE is a Parquet or CSV file, a glob, a directory, or - for standard input (CSV is read as\n"
    "it comes, Parquet is kept in a temporary file first).\n";

/* ---- help ---- */

static void print_options(int takes)
{
    (void)printf("\noptions:\n");
    for (int i = 0; i < OPTIONS; i++) {
        char left[48];
        (void)snprintf(left, sizeof left, "%s%s%s", options[i].name,
                       options[i].value != NULL ? " " : "",
                       options[i].value != NULL ? options[i].value : "");
        if ((options[i].bit & takes) != 0) {
            (void)printf("  %-22s %s\n", left, options[i].help);
        }
    }
    (void)printf("  %-22s %s\n", "--help", "this text");
}

static void print_help(void)
{
    (void)printf("usage: gar COMMAND [OPTIONS] FILE...\n\ncommands:\n");
    int takes = 0;
    for (int i = 0; i < COMMANDS; i++) {
        (void)printf("  %-9s %s\n", commands[i].name, commands[i].summary);
        takes |= commands[i].takes;
    }
    (void)printf("\n%s", files_text);
    print_options(takes);
    (void)printf("  %-22s %s\n\ngar COMMAND --help says more about one command.\n", "--version",
                 "the version");
}

static void print_command_help(const struct command_info *command)
{
    const bool has_files = command->operands != NULL;
    (void)printf("usage: gar %s [OPTIONS] %s\n\n%s\n%s", command->name,
                 has_files ? command->operands : "", command->details, has_files ? files_text : "");
    print_options(command->takes);
}

/* ---- parsing ---- */

/* What parsing knows besides the arguments. */
struct parse {
    struct arguments *out;
    const char *command;
    int given; /* bits of the options that were given */
    bool is_help;
    bool is_version;
};

static bool usage_error(const char *what, const char *value)
{
    (void)fprintf(stderr, "gar: %s%s%s; see gar --help\n", what, value[0] == '\0' ? "" : ": ",
                  value);
    return false;
}

static bool parse_number(const char *name, const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max) {
        (void)fprintf(stderr,
                      "gar: %s takes a whole number from %lld to %lld, got '%s'; see gar --help\n",
                      name, (long long)min, (long long)max, text);
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
    if (strlen(text) != 1 || (unsigned char)text[0] >= 0x80) {
        (void)fprintf(stderr,
                      "gar: --delimiter is one ASCII character, or \\t for a tab, got '%s'; see "
                      "gar --help\n",
                      text);
        return false;
    }
    out->delimiter = text[0];
    return true;
}

static bool check_expression(const char *name, const char *text)
{
    if (text[strspn(text, " \t\n")] != '\0') {
        return true;
    }
    (void)fprintf(stderr, "gar: %s is empty; it takes SQL expressions, see gar --help\n", name);
    return false;
}

/* value is NULL for a flag. False: message written. */
static bool set_option(struct arguments *out, const struct option_info *option, const char *value)
{
    int64_t number = 0;
    switch (option->bit) {
    case TAKES_SELECT: out->select = value; return check_expression(option->name, value);
    case TAKES_WHERE: out->where = value; return check_expression(option->name, value);
    case TAKES_LIMIT: return parse_number(option->name, value, 0, INT64_MAX, &out->limit);
    case TAKES_FORMAT: return set_format(out, value);
    case TAKES_INPUT_FORMAT: return set_input_format(out, value);
    case TAKES_DELIMITER: return set_delimiter(out, value);
    case TAKES_NO_HEADER: out->no_header = true; return true;
    case TAKES_ANALYZE: out->analyze = true; return true;
    case TAKES_COMPRESSION: out->compression = value; return true;
    default: break;
    }
    const bool is_good = parse_number(option->name, value, 1, 1024, &number);
    out->threads = (int32_t)number;
    return is_good;
}

static const struct option_info *find_option(const char *name, size_t bytes)
{
    for (int i = 0; i < OPTIONS; i++) {
        if (strlen(options[i].name) == bytes && memcmp(options[i].name, name, bytes) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

/* One option at argv[*at]; steps *at over its value. */
static bool parse_option(struct parse *parse, int argc, char **argv, int *at)
{
    const char *text = argv[*at];
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
        parse->is_help = true;
        return true;
    }
    if (strcmp(text, "--version") == 0) {
        parse->is_version = true;
        return true;
    }
    const char *equals = strchr(text, '=');
    const struct option_info *option =
        find_option(text, equals != NULL ? (size_t)(equals - text) : strlen(text));
    if (option == NULL) {
        return usage_error("unknown option", text);
    }
    parse->given |= option->bit;
    if (option->value == NULL) {
        return equals == NULL ? set_option(parse->out, option, NULL)
                              : usage_error("this option takes no value", text);
    }
    if (equals != NULL) {
        return set_option(parse->out, option, equals + 1);
    }
    if (*at + 1 >= argc) {
        return usage_error("a value is missing after", text);
    }
    (*at)++;
    return set_option(parse->out, option, argv[*at]);
}

static bool parse_all(struct parse *parse, int argc, char **argv)
{
    bool is_options_over = false;
    for (int i = 1; i < argc; i++) {
        if (!is_options_over && strcmp(argv[i], "--") == 0) {
            is_options_over = true;
        } else if (!is_options_over && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!parse_option(parse, argc, argv, &i)) {
                return false;
            }
        } else if (parse->command == NULL) {
            parse->command = argv[i];
        } else {
            parse->out->files[parse->out->file_count++] = argv[i];
        }
    }
    return true;
}

/* ---- checks ---- */

static const struct command_info *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    (void)fprintf(stderr, "gar: unknown command '%s'; commands are", name);
    for (int i = 0; i < COMMANDS; i++) {
        (void)fprintf(stderr, "%s %s", i > 0 ? "," : "", commands[i].name);
    }
    (void)fprintf(stderr, "\n");
    return NULL;
}

static bool has_suffix(const char *text, const char *suffix)
{
    const size_t n = strlen(text);
    const size_t m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static bool check_compression(const struct arguments *arguments)
{
    static const char *const parquet[] = {"snappy",  "zstd", "gzip", "brotli",
                                          "lz4_raw", "none", NULL};
    static const char *const csv[] = {"gzip", "zstd", "none", NULL};
    const char *const *names = arguments->is_target_csv ? csv : parquet;
    if (arguments->compression == NULL) {
        return true;
    }
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], arguments->compression) == 0) {
            return true;
        }
    }
    (void)fprintf(stderr, "gar: '%s' cannot be written with --compression %s; it takes",
                  arguments->target, arguments->compression);
    for (int i = 0; names[i] != NULL; i++) {
        (void)fprintf(stderr, "%s %s", i > 0 ? "," : "", names[i]);
    }
    (void)fprintf(stderr, "\n");
    return false;
}

/* The last file of convert is its target. */
static bool take_target(struct arguments *out)
{
    out->target = out->files[--out->file_count];
    out->is_target_csv = has_suffix(out->target, ".csv") || has_suffix(out->target, ".csv.gz") ||
                         has_suffix(out->target, ".csv.zst");
    if (!out->is_target_csv && !has_suffix(out->target, ".parquet")) {
        (void)fprintf(stderr,
                      "gar: cannot tell the format of '%s'; its name must end in .parquet, .csv, "
                      ".csv.gz or .csv.zst\n",
                      out->target);
        return false;
    }
    return check_compression(out);
}

static bool check_command(const struct parse *parse, const struct command_info *command)
{
    struct arguments *out = parse->out;
    const bool is_convert = out->command == COMMAND_CONVERT;
    for (int i = 0; i < OPTIONS; i++) {
        if ((options[i].bit & parse->given & ~command->takes) != 0) {
            (void)fprintf(stderr, "gar: %s does not take %s; see gar %s --help\n", command->name,
                          options[i].name, command->name);
            return false;
        }
    }
    if (command->operands == NULL) {
        if (out->file_count > 0) {
            (void)fprintf(stderr, "gar: %s takes no file, got '%s'; see gar %s --help\n",
                          command->name, out->files[0], command->name);
            return false;
        }
        return out->format != OUTPUT_CSV ||
               usage_error("resources are printed with --format table or json, not", "csv");
    }
    int stdin_count = 0;
    for (int i = 0; i < out->file_count; i++) {
        stdin_count += strcmp(out->files[i], "-") == 0;
    }
    if (stdin_count > 1) {
        (void)fprintf(stderr, "gar: standard input (-) can be named only once; see gar %s --help\n",
                      command->name);
        return false;
    }
    if (out->file_count < (is_convert ? 2 : 1)) {
        (void)fprintf(stderr, "gar: %s needs %s; see gar %s --help\n", command->name,
                      is_convert ? "an input and an output file" : "a file", command->name);
        return false;
    }
    return !is_convert || take_target(out);
}

enum arguments_result arguments_parse(int argc, char **argv, struct arguments *out)
{
    *out = (struct arguments){.limit = -1};
    struct parse parse = {.out = out};
    out->files = calloc((size_t)argc + 1, sizeof *out->files);
    if (out->files == NULL) {
        (void)usage_error("out of memory", "");
        return ARGUMENTS_WRONG;
    }
    if (!parse_all(&parse, argc, argv)) {
        return ARGUMENTS_WRONG;
    }
    if (parse.is_version) {
        (void)printf("gar %s\n", gar_version());
        return ARGUMENTS_DONE;
    }
    if (parse.command == NULL) {
        if (parse.is_help) {
            print_help();
            return ARGUMENTS_DONE;
        }
        (void)usage_error("no command given", "");
        return ARGUMENTS_WRONG;
    }
    const struct command_info *command = find_command(parse.command);
    if (command == NULL) {
        return ARGUMENTS_WRONG;
    }
    out->command = (enum command_id)(command - commands);
    if (parse.is_help) {
        print_command_help(command);
        return ARGUMENTS_DONE;
    }
    return check_command(&parse, command) ? ARGUMENTS_RUN : ARGUMENTS_WRONG;
}

void arguments_destroy(struct arguments *arguments)
{
    free((void *)arguments->files);
    arguments->files = NULL;
}

bool arguments_fit_input(const struct arguments *arguments, bool is_csv)
{
    const char *useless = arguments->delimiter != 0 ? "--delimiter" : NULL;
    useless = arguments->no_header ? "--no-header" : useless;
    if (is_csv || useless == NULL) {
        return true;
    }
    (void)fprintf(stderr,
                  "gar: %s is for CSV input, and '%s' is read as Parquet; --input-format csv says "
                  "otherwise\n",
                  useless, arguments->files[0]);
    return false;
}
