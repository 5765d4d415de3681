/* SPDX-License-Identifier: Apache-2.0 */
/* The command gar. */
#include <gar/resources.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"
#include "output.h"

#define HEAD_ROWS 10

struct context {
    struct gar_session *session;
    const struct arguments *arguments;
    bool is_csv; /* the input */
};

/* The files refined by the options; limit as given there, else `limit`. */
static enum gar_status open_refined(const struct context *context, int64_t limit,
                                    struct gar_frame **out, struct gar_error *err)
{
    const struct arguments *a = context->arguments;
    struct gar_frame *frame = NULL;
    const enum gar_status status = input_open(context->session, a, context->is_csv, &frame, err);
    if (status != GAR_OK) {
        return status;
    }
    return input_refine(frame, a, a->limit >= 0 ? a->limit : limit, out, err);
}

static enum gar_status print_schema_text(const struct gar_frame *frame, struct gar_error *err)
{
    for (int64_t c = 0; c < gar_frame_column_count(frame); c++) {
        const char *name = gar_frame_column_name(frame, c);
        char *type = NULL;
        const enum gar_status status = gar_frame_column_type(frame, c, &type, err);
        if (status != GAR_OK) {
            return status;
        }
        char line[1024];
        (void)snprintf(line, sizeof line, "%.700s: %.300s\n", name, type);
        gar_text_free(type);
        if (output_write(line, (int64_t)strlen(line), NULL) != 0) {
            return GAR_ERR_IO;
        }
    }
    return GAR_OK;
}

static enum gar_status run_schema(const struct context *context, struct gar_error *err)
{
    struct gar_frame *frame = NULL;
    enum gar_status status = open_refined(context, -1, &frame, err);
    if (status == GAR_OK) {
        status = print_schema_text(frame, err);
        gar_frame_release(frame);
    }
    return status;
}

static enum gar_status run_head(const struct context *context, struct gar_error *err)
{
    struct gar_frame *frame = NULL;
    enum gar_status status = open_refined(context, HEAD_ROWS, &frame, err);
    if (status == GAR_OK) {
        const int64_t rows = context->arguments->limit >= 0 ? context->arguments->limit : HEAD_ROWS;
        status = output_frame(frame, context->arguments->format, rows, err);
        gar_frame_release(frame);
    }
    return status;
}

static enum gar_status run_count(const struct context *context, struct gar_error *err)
{
    struct gar_run_options run;
    input_run_options(&run);
    struct gar_frame *frame = NULL;
    int64_t rows = 0;
    enum gar_status status = open_refined(context, -1, &frame, err);
    if (status == GAR_OK) {
        status = gar_frame_count_rows(frame, &run, &rows, err);
        gar_frame_release(frame);
    }
    if (status == GAR_OK) {
        char line[32];
        (void)snprintf(line, sizeof line, "%lld\n", (long long)rows);
        status = output_write(line, (int64_t)strlen(line), NULL) == 0 ? GAR_OK : GAR_ERR_IO;
    }
    return status;
}

static enum gar_status run_describe(const struct context *context, struct gar_error *err)
{
    struct gar_frame *frame = NULL;
    enum gar_status status = open_refined(context, -1, &frame, err);
    if (status == GAR_OK) {
        status = output_describe(context->session, frame, context->arguments->format, err);
        gar_frame_release(frame);
    }
    return status;
}

/* A folder that is not there is more likely a slip than a wish. */
static enum gar_status check_folder(const char *target, struct gar_error *err)
{
    const char *slash = strrchr(target, '/');
    char folder[4096];
    struct stat info;
    if (slash == NULL || slash == target || slash - target >= (ptrdiff_t)sizeof folder) {
        return GAR_OK;
    }
    memcpy(folder, target, (size_t)(slash - target));
    folder[slash - target] = '\0';
    if (stat(folder, &info) == 0) {
        return GAR_OK;
    }
    err->status = GAR_ERR_IO;
    (void)snprintf(err->message, sizeof err->message,
                   "cannot write '%.400s': the folder '%.400s' is not there; make it first", target,
                   folder);
    return GAR_ERR_IO;
}

static enum gar_status run_convert(const struct context *context, struct gar_error *err)
{
    const struct arguments *a = context->arguments;
    struct gar_frame *frame = NULL;
    enum gar_status status = check_folder(a->target, err);
    if (status == GAR_OK) {
        status = open_refined(context, -1, &frame, err);
    }
    if (status != GAR_OK) {
        return status;
    }
    struct gar_write_options write;
    struct gar_run_options run;
    gar_write_options_init(&write);
    input_run_options(&run);
    write.single_file = true;
    write.overwrite = true;
    write.compression = a->compression;
    struct gar_frame *paths = NULL;
    status = a->is_target_csv
                 ? gar_frame_write_csv(frame, a->target, &write, &run, &paths, err)
                 : gar_frame_write_parquet(frame, a->target, &write, &run, &paths, err);
    gar_frame_release(frame);
    gar_frame_release(paths);
    return status;
}

static enum gar_status print_text(const char *title, const char *text)
{
    return output_write(title, (int64_t)strlen(title), NULL) == 0 &&
                   output_write(text, (int64_t)strlen(text), NULL) == 0
               ? GAR_OK
               : GAR_ERR_IO;
}

static enum gar_status explain_analyze(const struct gar_frame *frame, struct gar_error *err)
{
    struct gar_run_options run;
    char *text = NULL;
    input_run_options(&run);
    enum gar_status status = gar_frame_explain_analyze(frame, &run, &text, err);
    if (status == GAR_OK) {
        status = print_text("\n== physical plan, run ==\n", text);
    }
    gar_text_free(text);
    return status;
}

static enum gar_status run_explain(const struct context *context, struct gar_error *err)
{
    static const char *const titles[] = {"== logical plan ==\n", "\n== optimized plan ==\n",
                                         "\n== physical plan ==\n"};
    struct gar_frame *frame = NULL;
    enum gar_status status = open_refined(context, -1, &frame, err);
    const int stages = context->arguments->analyze ? 2 : 3;
    for (int stage = 0; stage < stages && status == GAR_OK; stage++) {
        char *text = NULL;
        status = gar_frame_explain(frame, (enum gar_plan_stage)stage, &text, err);
        if (status == GAR_OK) {
            status = print_text(titles[stage], text);
        }
        gar_text_free(text);
    }
    if (status == GAR_OK && context->arguments->analyze) {
        status = explain_analyze(frame, err);
    }
    gar_frame_release(frame);
    return status;
}

static enum gar_status run_resources(const struct context *context, struct gar_error *err)
{
    struct gar_resources *resources = NULL;
    char *text = NULL;
    enum gar_status status = gar_resources_read(&resources, err);
    if (status == GAR_OK) {
        status =
            gar_resources_to_text(resources, context->arguments->format == OUTPUT_JSON, &text, err);
        gar_resources_free(resources);
    }
    if (status == GAR_OK && output_write(text, (int64_t)strlen(text), NULL) != 0) {
        status = GAR_ERR_IO;
    }
    gar_text_free(text);
    return status;
}

/* In the order of enum command_id. */
static enum gar_status (*const commands[])(const struct context *context, struct gar_error *err) = {
    run_schema, run_head, run_count, run_describe, run_convert, run_explain, run_resources};

static int exit_status(enum gar_status status, const struct gar_error *err)
{
    if (status >= 0 || output_is_closed()) {
        return 0;
    }
    if (input_signal() != 0) {
        return 128 + input_signal();
    }
    if (output_errno() != 0) {
        (void)fprintf(stderr, "gar: cannot write to standard output: %s\n",
                      strerror(output_errno()));
        return 1;
    }
    (void)fprintf(stderr, "gar: %s\n", err->message);
    return 1;
}

static int run(const struct arguments *arguments)
{
    struct gar_error err;
    memset(&err, 0, sizeof err);
    struct gar_settings settings;
    gar_settings_init(&settings);
    struct context context = {.arguments = arguments};
    enum gar_status status = GAR_OK;
    if (arguments->command == COMMAND_RESOURCES) { /* no files, no session */
        return exit_status(run_resources(&context, &err), &err);
    }
    status = input_find_format(arguments, &context.is_csv, &err);
    if (status == GAR_OK && !arguments_fit_input(arguments, context.is_csv)) {
        return 2;
    }
    if (status == GAR_OK) {
        status = gar_session_default(&context.session, &err);
    }
    if (status == GAR_OK) {
        gar_session_settings(context.session, &settings);
        settings.num_threads = arguments->threads > 0 ? arguments->threads : settings.num_threads;
        if (getenv("GAR_PROGRESS") == NULL) { /* NOLINT(concurrency-mt-unsafe): one thread so far */
            settings.progress = GAR_PROGRESS_AUTO;
        }
        status = gar_session_configure(context.session, &settings, &err);
    }
    if (status == GAR_OK) {
        status = commands[arguments->command](&context, &err);
    }
    return exit_status(status, &err);
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    int status = 2;
    switch (arguments_parse(argc, argv, &arguments)) {
    case ARGUMENTS_RUN:
        input_install_signals();
        status = run(&arguments);
        break;
    case ARGUMENTS_DONE: status = fflush(stdout) == 0 ? 0 : 1; break;
    case ARGUMENTS_WRONG: break;
    }
    arguments_destroy(&arguments);
    return status;
}
