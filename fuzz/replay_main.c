/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over kept inputs: every argument is a file or a folder of files.
 *
 * A crash or a sanitizer report ends the process with the name of the input on stderr. A folder that
 * is missing or empty is an error, so that a lost corpus cannot pass as a green run. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t replay_count;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        (void)fprintf(stderr, "cannot open %s\n", path);
        return 1;
    }
    struct stat info;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)fprintf(stderr, "%s is no plain file\n", path);
        (void)fclose(file);
        return 1;
    }
    const size_t size = (size_t)info.st_size;
    /* Exactly the input's size, so that a read past its end meets a redzone. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (data == NULL || fread(data, 1, size, file) != size) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        free(data);
        (void)fclose(file);
        return 1;
    }
    (void)fclose(file);
    (void)fprintf(stderr, "input %s (%zu bytes)\n", path, size);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    replay_count++;
    return 0;
}

static int replay_folder(const char *path)
{
    struct dirent **names = NULL;
    const int count = scandir(path, &names, NULL, alphasort);
    if (count < 0) {
        (void)fprintf(stderr, "cannot list %s\n", path);
        return 1;
    }
    int failures = 0;
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') {
            char full[4096];
            const int used = snprintf(full, sizeof full, "%s/%s", path, names[i]->d_name);
            if (used < 0 || (size_t)used >= sizeof full) {
                (void)fprintf(stderr, "path too long under %s\n", path);
                failures++;
            } else {
                failures += replay_file(full);
            }
        }
        free(names[i]);
    }
    free(names);
    return failures;
}

int main(int argc, char **argv)
{
    int failures = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) != 0) {
            (void)fprintf(stderr, "no such input: %s\n", argv[i]);
            failures++;
        } else if (S_ISDIR(info.st_mode)) {
            failures += replay_folder(argv[i]);
        } else {
            failures += replay_file(argv[i]);
        }
    }
    (void)fprintf(stderr, "%lld inputs replayed\n", (long long)replay_count);
    return failures == 0 && replay_count > 0 ? 0 : 1;
}
