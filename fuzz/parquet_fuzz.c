/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet: footer, statistics, page headers, levels, encodings, codecs. The whole input is one file. */
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int fd = fuzz_file(data, size, path);
    const char *name = path;
    struct gar_frame *frame = NULL;
    struct gar_error err;
    if (gar_frame_read_parquet(fuzz_session(), &name, 1, NULL, &frame, &err) == GAR_OK) {
        fuzz_drain(frame);
        /* Once more with a filter on the first column, so that statistics and selections are used. */
        const char *column = gar_frame_column_name(frame, 0);
        struct gar_expr *arg = NULL;
        struct gar_expr *test = NULL;
        struct gar_frame *kept = NULL;
        if (column != NULL && gar_expr_column(column, &arg, &err) == GAR_OK &&
            gar_expr_call("not_null", &arg, 1, &test, &err) == GAR_OK &&
            gar_frame_where(frame, test, &kept, &err) == GAR_OK) {
            fuzz_drain(kept);
        }
        gar_frame_release(kept);
        gar_expr_release(test);
        gar_expr_release(arg);
        gar_frame_release(frame);
    }
    (void)close(fd);
    return 0;
}
