/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what the command line names as a frame. */
#ifndef GAR_CLI_INPUT_H
#define GAR_CLI_INPUT_H

#include "arguments.h"

/* Set by the SIGINT handler; asked by running queries. */
int input_interrupted(void *context);
void input_install_signals(void);
void input_run_options(struct gar_run_options *options);

/* The files as one frame; "-" is standard input, spooled to an unlinked temporary file that lives as long as the process. */
enum gar_status input_open(struct gar_session *session, const struct arguments *arguments,
                           int64_t file_count, struct gar_frame **out, struct gar_error *err);
/* --where, then --select, then limit (-1: none) on top of frame (moved, also on failure). */
enum gar_status input_refine(struct gar_frame *frame, const struct arguments *arguments,
                             int64_t limit, struct gar_frame **out, struct gar_error *err);

#endif
