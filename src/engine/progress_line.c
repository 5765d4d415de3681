/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line. It shows after half a second of waiting, ten times a second at most. Of several threads that wait at
 * once, one has standard error. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/progress_line_priv.h"
#include "exec/profile.h"
#include "os/clock.h"
#include "os/terminal.h"

#define SHOW_AFTER_NS (500 * GAR_NS_PER_MS)
#define SHOW_EVERY_NS (100 * GAR_NS_PER_MS)

enum { LINE_BYTES = 512 };

static int32_t is_taken; /* atomic: a line is on standard error */

void gar_progress_line_init(struct gar_progress_line *line, const struct gar_profile *profile,
                            enum gar_progress_mode mode,
                            void (*show)(void *context, const char *line), void *context)
{
    *line = (struct gar_progress_line){.profile = profile, .show = show, .context = context};
    line->is_wanted = show != NULL || mode == GAR_PROGRESS_ON ||
                      (mode == GAR_PROGRESS_AUTO && gar_terminal_is(STDERR_FILENO));
}

void gar_progress_line_begin(struct gar_progress_line *line)
{
    if (line->is_wanted) {
        line->begin_ns = gar_clock_ns();
        line->next_ns = line->begin_ns + SHOW_AFTER_NS;
    }
}

/* Names and paths come from outside: nothing in them may move the cursor. */
static void make_plain(char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) {
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f) {
            text[i] = '?';
        }
    }
}

static void draw(const char *line, int64_t bytes)
{
    char text[LINE_BYTES + 16];
    const int32_t room = gar_terminal_columns(STDERR_FILENO) - 1; /* the last column would wrap */
    const int length =
        snprintf(text, sizeof text, "\r%.*s\x1b[K", (int)gar_min_i64(bytes, room), line);
    gar_terminal_write(STDERR_FILENO, text, length);
}

void gar_progress_line_tick(struct gar_progress_line *line)
{
    if (!line->is_wanted) {
        return;
    }
    const int64_t now_ns = gar_clock_ns();
    if (now_ns < line->next_ns) {
        return;
    }
    line->next_ns = now_ns + SHOW_EVERY_NS;
    int32_t free = 0;
    if (line->show == NULL && !line->is_drawn &&
        !__atomic_compare_exchange_n(&is_taken, &free, 1, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        return;
    }
    char text[LINE_BYTES];
    const int64_t bytes = gar_profile_line(line->profile, text, (int64_t)sizeof text);
    make_plain(text, bytes);
    line->is_drawn = true;
    if (line->show != NULL) {
        line->show(line->context, text);
    } else {
        draw(text, bytes);
    }
}

void gar_progress_line_end(struct gar_progress_line *line)
{
    if (!line->is_drawn) {
        return;
    }
    line->is_drawn = false;
    if (line->show != NULL) {
        line->show(line->context, NULL);
    } else {
        gar_terminal_write(STDERR_FILENO, "\r\x1b[K", 4);
        __atomic_store_n(&is_taken, 0, __ATOMIC_RELAXED);
    }
}
