/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gar, parsed. */
#ifndef GAR_CLI_ARGUMENTS_H
#define GAR_CLI_ARGUMENTS_H

#include <gar/gar.h>

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

struct arguments {
    const char *command;
    const char **files; /* owned array of argv pointers */
    int64_t file_count;
    const char *select; /* --select: SQL expressions, or NULL */
    const char *where;  /* --where: SQL predicate, or NULL */
    int64_t limit;      /* --limit; -1: not given */
    enum output_format format;
    bool is_format_given;
    const char *compression;  /* --compression, or NULL */
    char delimiter;           /* --delimiter; 0: not given */
    bool no_header;           /* --no-header */
    const char *input_format; /* --input-format: "csv", "parquet" or NULL */
    int32_t threads;          /* --threads; 0: not given */
    bool is_help;
    bool is_version;
};

/* False after a message on stderr: exit status 2. argv must outlive *out. */
bool arguments_parse(int argc, char **argv, struct arguments *out);
void arguments_destroy(struct arguments *arguments);
void arguments_print_help(void);

#endif
