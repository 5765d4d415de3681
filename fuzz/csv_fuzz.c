/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: sampling, type inference, cutting into blocks, parsing. The first byte chooses the dialect, the rest is the file. */
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    static const char delimiters[] = {',', '|', '\t', ';'};
    const unsigned choice = data[0];
    struct gar_csv_options options;
    gar_csv_options_init(&options);
    options.has_header = (choice & 1U) == 0;
    options.infer_schema = (choice & 2U) == 0;
    options.allow_variable_columns = (choice & 4U) != 0;
    options.escape = (choice & 8U) != 0 ? '\\' : 0;
    options.comment = (choice & 16U) != 0 ? '#' : 0;
    options.delimiter = delimiters[(choice >> 5U) & 3U];
    options.quote = (choice & 128U) != 0 ? 0 : '"';

    char path[64];
    const int fd = fuzz_file(data + 1, size - 1, path);
    const char *name = path;
    struct gar_frame *frame = NULL;
    struct gar_error err;
    if (gar_frame_read_csv(fuzz_session(), &name, 1, &options, &frame, &err) == GAR_OK) {
        fuzz_drain(frame);
        gar_frame_release(frame);
    }
    (void)close(fd);
    return 0;
}
