/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what the command line names as a frame. */
#ifndef GAR_CLI_INPUT_H
#define GAR_CLI_INPUT_H

#include "arguments.h"

/* SIGINT, SIGTERM and SIGHUP ask the work to stop; the second one ends the process at once. Those that were ignored when the
 * process began stay ignored. */
void input_install_signals(void);
/* Has one of them come? Asked by running queries. */
int input_interrupted(void *context);
/* Which one: 0 none. */
int input_signal(void);
void input_run_options(struct gar_run_options *options);

/* CSV or Parquet: as --input-format says, by the first file's suffix, or by the first bytes of standard input. */
enum gar_status input_find_format(const struct arguments *arguments, bool *out_is_csv,
                                  struct gar_error *err);
/* The files as one frame; "-" is standard input. */
enum gar_status input_open(struct gar_session *session, const struct arguments *arguments,
                           bool is_csv, struct gar_frame **out, struct gar_error *err);
/* --where, then --select, then limit (-1: none) on top of frame (moved, also on failure). */
enum gar_status input_refine(struct gar_frame *frame, const struct arguments *arguments,
                             int64_t limit, struct gar_frame **out, struct gar_error *err);

#endif
