/* SPDX-License-Identifier: Apache-2.0 */
/* Files, streams, compressed data; changes under the reader; every read failing in turn. */
#include "storage/source.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>
#include <zstd.h>

#include "storage/byte_reader.h"
#include "storage/storage_test_priv.h"

#define TEXT_BYTES 700000

/* Text that compresses, but not to nothing. */
static uint8_t *make_text(void)
{
    uint8_t *text = gar_malloc(TEXT_BYTES);
    uint64_t x = 1;
    for (int64_t i = 0; i < TEXT_BYTES; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        text[i] = (uint8_t)('a' + (x >> 60));
    }
    return text;
}

/* Everything a reader gives, in pieces of `piece`; NULL with err set on failure. */
static uint8_t *read_all(const char *path, int64_t piece, int64_t *out_bytes, struct gar_error *err)
{
    struct gar_source *source = NULL;
    struct gar_byte_reader *reader = NULL;
    uint8_t *all = gar_malloc(2 * TEXT_BYTES);
    int64_t bytes = 0;
    enum gar_status status = gar_source_open(path, NULL, &source, err);
    if (status >= 0) {
        status = gar_byte_reader_new(source, NULL, &reader, err);
    }
    int64_t got = piece;
    while (status >= 0 && got == piece && bytes + piece <= 2 * TEXT_BYTES) {
        status = gar_byte_reader_read(reader, all + bytes, piece, &got, err);
        bytes += got;
    }
    gar_byte_reader_free(reader);
    gar_source_unref(source);
    if (status < 0) {
        gar_free(all);
        return NULL;
    }
    *out_bytes = bytes;
    return all;
}

static void check_reads(const char *name, const uint8_t *right, int64_t right_bytes)
{
    static const int64_t pieces[] = {1000, 65536, TEXT_BYTES};
    for (int64_t i = 0; i < GAR_COUNT_OF(pieces); i++) {
        struct gar_error err = GAR_ERROR_INIT;
        int64_t bytes = 0;
        uint8_t *all = read_all(in_folder(name), pieces[i], &bytes, &err);
        assert_string_equal(err.message, "");
        assert_int_equal(bytes, right_bytes);
        assert_memory_equal(all, right, (size_t)bytes);
        gar_free(all);
    }
}

static void check_fails(const char *name, const char *part)
{
    struct gar_error err = GAR_ERROR_INIT;
    int64_t bytes = 0;
    uint8_t *all = read_all(in_folder(name), 65536, &bytes, &err);
    assert_null(all);
    if (strstr(err.message, part) == NULL) {
        fail_msg("%s: %s", name, err.message);
    }
}

static int64_t gzip(uint8_t *text, int64_t bytes, uint8_t *out, int64_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = text;
    z.avail_in = (unsigned)bytes;
    z.next_out = out;
    z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const int64_t made = room - z.avail_out;
    (void)deflateEnd(&z);
    return made;
}

static void test_gzip(void **state)
{
    (void)state;
    uint8_t *text = make_text();
    uint8_t *packed = gar_malloc(2 * TEXT_BYTES);
    int64_t size = gzip(text, 300000, packed, 2 * TEXT_BYTES);
    size += gzip(text, 0, packed + size, 2 * TEXT_BYTES - size);
    size += gzip(text + 300000, TEXT_BYTES - 300000, packed + size, 2 * TEXT_BYTES - size);
    put_file("a.gz", packed, size);
    check_reads("a.gz", text, TEXT_BYTES);
    memset(packed + size, 0, 512);
    put_file("padded.gz", packed, size + 512);
    check_reads("padded.gz", text, TEXT_BYTES);
    put_file("cut.gz", packed, size - 5);
    check_fails("cut.gz", "gzip data ends early");
    memcpy(packed + size, "garbage", 7);
    put_file("garbage.gz", packed, size + 7);
    check_fails("garbage.gz", "is damaged");
    packed[1000] ^= 0x55;
    put_file("flipped.gz", packed, size);
    check_fails("flipped.gz", "is damaged");
    gar_free(packed);
    gar_free(text);
}

static void test_zstd(void **state)
{
    (void)state;
    uint8_t *text = make_text();
    uint8_t *packed = gar_malloc(2 * TEXT_BYTES);
    int64_t size = (int64_t)ZSTD_compress(packed, 2 * TEXT_BYTES, text, 300000, 3);
    memcpy(packed + size, "\x50\x2a\x4d\x18\x04\x00\x00\x00skip", 12);
    size += 12;
    size += (int64_t)ZSTD_compress(packed + size, (size_t)(2 * TEXT_BYTES - size), text + 300000,
                                   TEXT_BYTES - 300000, 3);
    put_file("a.zst", packed, size);
    check_reads("a.zst", text, TEXT_BYTES);
    put_file("cut.zst", packed, size - 5);
    check_fails("cut.zst", "zstd data ends early");
    ZSTD_CCtx *context = ZSTD_createCCtx();
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size = (int64_t)ZSTD_compress2(context, packed, 2 * TEXT_BYTES, text, TEXT_BYTES);
    (void)ZSTD_freeCCtx(context);
    packed[1000] ^= 0x55;
    put_file("flipped.zst", packed, size);
    check_fails("flipped.zst", "is damaged");
    /* A frame header that asks for a window of 2 GiB. */
    static const uint8_t wide[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
    put_file("wide.zst", wide, (int64_t)sizeof wide);
    check_fails("wide.zst", "window over 128 MiB");
    gar_free(packed);
    gar_free(text);
}

static void test_plain(void **state)
{
    (void)state;
    uint8_t *text = make_text();
    put_file("a", text, TEXT_BYTES);
    check_reads("a", text, TEXT_BYTES);
    put_text("empty", "");
    check_reads("empty", text, 0);
    put_text("x.xz", "\xfd"
                     "7zXZ\0data");
    check_fails("x.xz", "compressed with xz");
    check_fails("none", "No such file");
    check_fails("", "Is a directory");
    gar_free(text);
}

static void test_changes(void **state)
{
    (void)state;
    put_text("a", "0123456789");
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_source *source = NULL;
    assert_int_equal(gar_source_open(in_folder("a"), NULL, &source, &err), GAR_OK);
    const struct gar_source_id id = gar_source_id_of(source);
    char out[16];
    int64_t got;
    assert_int_equal(gar_source_read_at(source, out, 16, 4, NULL, &got, &err), GAR_OK);
    assert_int_equal(got, 6);
    assert_int_equal(gar_source_check(source, &err), GAR_OK);
    put_text("a", "01234");
    assert_int_equal(gar_source_read_at(source, out, 16, 4, NULL, &got, &err), GAR_ERR_IO);
    assert_non_null(strstr(err.message, "became shorter"));
    assert_int_equal(gar_source_check(source, &err), GAR_ERR_IO);
    assert_non_null(strstr(err.message, "10 bytes, now 5"));
    gar_source_unref(source);
    assert_int_equal(gar_source_open(in_folder("a"), &id, &source, &err), GAR_ERR_IO);
    assert_non_null(strstr(err.message, "changed since"));
}

/* A FIFO written by a child. */
static pid_t start_writer(const char *path, const uint8_t *text, int64_t bytes)
{
    assert_int_equal(mkfifo(path, 0600), 0);
    const pid_t child = fork();
    if (child == 0) {
        int fd;
        if (gar_file_open(path, GAR_FILE_CREATE, &fd, NULL) < 0 ||
            gar_file_write(fd, path, text, bytes, NULL) < 0) {
            _exit(1);
        }
        _exit(0);
    }
    return child;
}

static void test_stream(void **state)
{
    (void)state;
    uint8_t *text = make_text();
    const pid_t child = start_writer(in_folder("fifo"), text, TEXT_BYTES);
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_source *source = NULL;
    struct gar_source *file = NULL;
    assert_int_equal(gar_source_open(in_folder("fifo"), NULL, &source, &err), GAR_OK);
    assert_true(gar_source_is_stream(source));
    assert_int_equal(gar_source_bytes(source), -1);
    uint8_t *all = gar_malloc(TEXT_BYTES);
    int64_t got = 0;
    assert_int_equal(gar_source_read_at(source, all, 1000, 0, NULL, &got, &err), GAR_OK);
    assert_int_equal(got, 1000);
    assert_int_equal(gar_source_seekable(source, NULL, &file, &err), GAR_OK);
    assert_false(gar_source_is_stream(file));
    assert_int_equal(gar_source_bytes(file), TEXT_BYTES);
    assert_int_equal(gar_source_read_at(file, all, TEXT_BYTES, 0, NULL, &got, &err), GAR_OK);
    assert_memory_equal(all, text, TEXT_BYTES);
    /* All of it fits in what is kept, so it can be read again. */
    assert_int_equal(gar_source_read_at(source, all, TEXT_BYTES, 0, NULL, &got, &err), GAR_OK);
    assert_int_equal(got, TEXT_BYTES);
    assert_memory_equal(all, text, TEXT_BYTES);
    gar_source_unref(source);
    gar_source_unref(file);
    assert_int_equal(waitpid(child, NULL, 0), child);
    gar_free(all);
    gar_free(text);
}

/* Files of /proc say that they have no bytes, and are read like pipes; a file without bytes is one. */
static void test_pseudo_file(void **state)
{
    (void)state;
    struct gar_source *source = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    int64_t bytes = 0;
    assert_int_equal(gar_source_open("/proc/self/status", NULL, &source, &err), GAR_OK);
    assert_true(gar_source_is_stream(source));
    gar_source_unref(source);
    uint8_t *all = read_all("/proc/self/status", 65536, &bytes, &err);
    assert_non_null(all);
    assert_true(bytes > 100);
    assert_memory_equal(all, "Name:", 5);
    gar_free(all);
    put_file("empty", "", 0);
    assert_int_equal(gar_source_open(in_folder("empty"), NULL, &source, &err), GAR_OK);
    assert_false(gar_source_is_stream(source));
    assert_int_equal(gar_source_bytes(source), 0);
    gar_source_unref(source);
}

/* The n-th read fails, for every n; short reads change nothing. */
static void test_faults(void **state)
{
    (void)state;
    uint8_t *text = make_text();
    put_file("a", text, TEXT_BYTES);
    for (int64_t n = 1;; n++) {
        const struct gar_os_fault fault = {.call = GAR_OS_READ, .nth = n, .os_errno = EIO};
        gar_os_fault_set(&fault);
        struct gar_error err = GAR_ERROR_INIT;
        int64_t bytes = 0;
        uint8_t *all = read_all(in_folder("a"), 65536, &bytes, &err);
        if (all != NULL) {
            assert_true(gar_os_fault_calls() < n);
            gar_free(all);
            break;
        }
        assert_int_equal(err.os_errno, EIO);
        assert_non_null(strstr(err.message, test_folder));
    }
    const struct gar_os_fault cut = {
        .call = GAR_OS_READ, .nth = 1, .and_on = true, .short_bytes = 7777};
    gar_os_fault_set(&cut);
    check_reads("a", text, TEXT_BYTES);
    gar_os_fault_set(NULL);
    gar_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_gzip, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_zstd, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_changes, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_stream, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_pseudo_file, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_faults, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
