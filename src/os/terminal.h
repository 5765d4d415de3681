/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals: is there one, how wide is it. */
#ifndef GAR_OS_TERMINAL_H
#define GAR_OS_TERMINAL_H

#include "base/attrs.h"

/* A terminal that may be drawn on: not "dumb", and this process is not in its background. */
bool gar_terminal_is(int fd);
/* Its columns now, 80 when that is not known. */
int32_t gar_terminal_columns(int fd);
/* Write all or give up: for what may be lost. Threads: any; may block for as long as the terminal does. */
void gar_terminal_write(int fd, const char *data, int64_t bytes);

#endif
