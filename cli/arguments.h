/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gar, parsed: commands, the options each of them takes, and help for both. */
#ifndef GAR_CLI_ARGUMENTS_H
#define GAR_CLI_ARGUMENTS_H

#include <gar/gar.h>

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

enum command_id {
    COMMAND_SCHEMA,
    COMMAND_HEAD,
    COMMAND_COUNT,
    COMMAND_DESCRIBE,
    COMMAND_CONVERT,
    COMMAND_EXPLAIN,
    COMMAND_RESOURCES
};

struct arguments {
    enum command_id command;
    const char **files; /* owned array of argv pointers; of convert without the target */
    int64_t file_count;
    const char *target; /* convert: where to write */
    bool is_target_csv;
    const char *select; /* --select: SQL expressions, or NULL */
    const char *where;  /* --where: SQL predicate, or NULL */
    int64_t limit;      /* --limit; -1: not given */
    enum output_format format;
    const char *compression;  /* --compression, or NULL */
    char delimiter;           /* --delimiter; 0: not given */
    bool no_header;           /* --no-header */
    bool analyze;             /* --analyze */
    const char *input_format; /* --input-format: "csv", "parquet" or NULL */
    int32_t threads;          /* --threads; 0: not given */
};

enum arguments_result {
    ARGUMENTS_RUN,  /* run the command */
    ARGUMENTS_DONE, /* help or version was printed: exit status 0 */
    ARGUMENTS_WRONG /* a message was written to stderr: exit status 2 */
};

/* argv must outlive *out, which is to be destroyed whatever the result. */
enum arguments_result arguments_parse(int argc, char **argv, struct arguments *out);
void arguments_destroy(struct arguments *arguments);
/* After it is known what the files are: options of CSV input that would do nothing. False: message written. */
bool arguments_fit_input(const struct arguments *arguments, bool is_csv);

#endif
