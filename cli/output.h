/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to standard output. */
#ifndef GAR_CLI_OUTPUT_H
#define GAR_CLI_OUTPUT_H

#include "arguments.h"

/* As gar_frame_write_text's callback: 0, or non-zero with output_is_closed telling whether the reader went away. */
int output_write(const char *data, int64_t bytes, void *context);
/* The reader of our output has gone (EPIPE): not an error. */
bool output_is_closed(void);
/* errno of the last failed write, 0: none. */
int output_errno(void);
/* Run the frame and print it in a format; max_rows bounds a table. */
enum gar_status output_frame(const struct gar_frame *frame, enum output_format format,
                             int64_t max_rows, struct gar_error *err);
/* The describe command. */
enum gar_status output_describe(struct gar_session *session, const struct gar_frame *frame,
                                enum output_format format, struct gar_error *err);

#endif
