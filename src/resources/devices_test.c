/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery: the rules of the visibility variables, NVML through a stand-in, AMD through a made-up sysfs, environments,
 * and what errors say about devices. */
#include "resources/devices.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "resources/device_error.h"
#include "resources/devices_priv.h"
#include "resources/ledger.h"

#define GIB (INT64_C(1) << 30)

static const char *text_of(const struct gar_device_list *list)
{
    static char text[1024];
    text[0] = '\0';
    size_t size = 0;
    for (int64_t i = 0; i < list->count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i > 0 ? "|" : "",
                                 list->devices[i].name);
    }
    return text;
}

/* Four cards; GPU 3 is split into two slices when with_slices. UUIDs begin with GPU-aaaa, -aabb, -cccc, -dddd. */
static struct gar_device_list known_devices(bool with_slices, bool are_alike)
{
    static const char *const uuids[] = {"GPU-aaaa0000", "GPU-aabb1111", "GPU-cccc2222",
                                        "GPU-dddd3333"};
    static const char *const slices[] = {"MIG-1111", "MIG-1222"};
    struct gar_device_list list = {.gpu_count = 4};
    for (int32_t i = 0; i < 4; i++) {
        struct gar_device device = {.index = i, .vendor = GAR_VENDOR_NVIDIA};
        device.memory_bytes = are_alike || i < 2 ? 80 * GIB : 16 * GIB;
        (void)snprintf(device.name, sizeof device.name, "%d", (int)i);
        (void)snprintf(device.uuid, sizeof device.uuid, "%s", uuids[i]);
        (void)snprintf(device.model, sizeof device.model, "Card");
        device.is_split = with_slices && i == 3;
        assert_int_equal(gar_device_list_append(&list, &device, NULL), GAR_OK);
        for (int32_t s = 0; device.is_split && s < 2; s++) {
            struct gar_device slice = {.index = i, .memory_bytes = 10 * GIB, .is_slice = true};
            (void)snprintf(slice.name, sizeof slice.name, "%s", slices[s]);
            (void)snprintf(slice.uuid, sizeof slice.uuid, "%s", slices[s]);
            assert_int_equal(gar_device_list_append(&list, &slice, NULL), GAR_OK);
        }
    }
    return list;
}

struct visible_case {
    const char *text;
    const char *devices;
};

static void check_visible(const struct visible_case *cases, int64_t count,
                          const struct gar_device_list *known)
{
    for (int64_t i = 0; i < count; i++) {
        struct gar_device_list list;
        assert_int_equal(gar_visible_parse(cases[i].text, true, known, &list, NULL), GAR_OK);
        if (strcmp(text_of(&list), cases[i].devices) != 0) {
            fail_msg("'%s' gives '%s', not '%s'", cases[i].text == NULL ? "unset" : cases[i].text,
                     text_of(&list), cases[i].devices);
        }
        gar_device_list_destroy(&list);
    }
}

static void test_visible_of_four(void **state)
{
    (void)state;
    static const struct visible_case cases[] = {
        {NULL, "0|1|2|3"},
        {"", ""},
        {" ", ""},
        {"0,2,-1,1", "0|2"},
        {"2,1", "2|1"},
        {" 0 , 1 ", "0|1"},
        {"-1", ""},
        {"NoDevFiles", ""},
        {"none", ""},
        {"1gpu2,2ampere", "1gpu2|2ampere"},
        {"+3,-0", "+3|-0"},
        {"0,0", ""},
        {"0,1,1,2", ""},
        {"1,01", ""},
        {"0,,1", "0"},
        {",0", ""},
        {"0,1,", "0|1"},
        {"0,4,1", "0"},
        {"7", ""},
        {"99999999999999999999", ""},
        {"0,GPU-aaaa", "0"},
        {"GPU-aaaa0000,GPU-cccc", "GPU-aaaa0000|GPU-cccc"},
        {"GPU-aa", ""},
        {"GPU-aaa,GPU-aab", "GPU-aaa|GPU-aab"},
        {"GPU-cccc,GPU-eeee,GPU-aaaa", "GPU-cccc"},
        {"GPU-cccc,GPU-aa,GPU-dddd", "GPU-cccc"},
        {"GPU-cccc,GPU-cc", ""},
        {"GPU-cccc,0", "GPU-cccc"},
        {" GPU-cccc , GPU-dddd ", "GPU-cccc|GPU-dddd"},
        {"MIG-1111", ""},
        {"gpu-cccc", ""},
    };
    struct gar_device_list known = known_devices(false, true);
    check_visible(cases, GAR_COUNT_OF(cases), &known);
    gar_device_list_destroy(&known);
}

static void test_visible_with_slices(void **state)
{
    (void)state;
    static const struct visible_case cases[] = {
        {NULL, "0|1|2|MIG-1111|MIG-1222"},
        {"MIG-1111", "MIG-1111"},
        {"MIG-1111,MIG-1222", "MIG-1111|MIG-1222"},
        {"MIG-1", ""},
        {"MIG-9", ""},
        {"MIG-1111,0", "MIG-1111"},
        {"MIG-GPU-dddd3333/1/0,MIG-GPU-dddd3333/2/0", "MIG-GPU-dddd3333/1/0|MIG-GPU-dddd3333/2/0"},
        {"MIG-GPU-aaaa0000/1/0", ""}, /* not split */
        {"MIG-GPU-dddd3333", ""},
        {"3,0", "3|0"},
        {"GPU-dddd", "GPU-dddd"},
    };
    struct gar_device_list known = known_devices(true, true);
    check_visible(cases, GAR_COUNT_OF(cases), &known);
    struct gar_device_list list;
    assert_int_equal(gar_visible_parse("MIG-1222", true, &known, &list, NULL), GAR_OK);
    assert_true(list.devices[0].is_slice);
    assert_int_equal(list.devices[0].memory_bytes, 10 * GIB);
    gar_device_list_destroy(&list);
    gar_device_list_destroy(&known);
}

/* Without NVML names are believed; rules that need no driver still hold. */
static void test_visible_believed(void **state)
{
    (void)state;
    char long_name[200];
    memset(long_name, 'x', sizeof long_name - 1);
    memcpy(long_name, "GPU-", 4);
    long_name[sizeof long_name - 1] = '\0';
    const struct visible_case cases[] = {
        {NULL, ""},
        {"", ""},
        {"3,4,5,6", "3|4|5|6"},
        {"GPU-aaaa,GPU-bbbb", "GPU-aaaa|GPU-bbbb"},
        {"MIG-cccc", "MIG-cccc"},
        {"0,2,-1,1", "0|2"},
        {"0,0", ""},
        {"GPU-a,GPU-a", ""},
        {"GPU-a,3", "GPU-a"},
        {long_name, ""},
    };
    const struct gar_device_list known = {.gpu_count = -1};
    check_visible(cases, GAR_COUNT_OF(cases), &known);
    struct gar_device_list list;
    assert_int_equal(gar_visible_parse("3", false, &known, &list, NULL), GAR_OK);
    assert_int_equal(list.devices[0].memory_bytes, -1);
    assert_int_equal(list.devices[0].vendor, GAR_VENDOR_UNKNOWN);
    assert_non_null(strstr(list.memory_reason, "NVML"));
    gar_device_list_destroy(&list);
}

/* A number says which card it is in PCI order only. */
static void test_which_card_a_number_is(void **state)
{
    (void)state;
    struct gar_device_list alike = known_devices(false, true);
    struct gar_device_list mixed = known_devices(false, false);
    struct gar_device_list list;
    assert_int_equal(gar_visible_parse("2", true, &mixed, &list, NULL), GAR_OK);
    assert_int_equal(list.devices[0].memory_bytes, 16 * GIB);
    assert_string_equal(list.devices[0].uuid, "GPU-cccc2222");
    gar_device_list_destroy(&list);
    assert_int_equal(gar_visible_parse("2", false, &mixed, &list, NULL), GAR_OK);
    assert_int_equal(list.devices[0].memory_bytes, -1);
    assert_string_equal(list.devices[0].uuid, "");
    assert_non_null(strstr(list.memory_reason, "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
    gar_device_list_destroy(&list);
    assert_int_equal(gar_visible_parse("2", false, &alike, &list, NULL), GAR_OK);
    assert_int_equal(list.devices[0].memory_bytes, 80 * GIB);
    assert_string_equal(list.devices[0].uuid, "");
    gar_device_list_destroy(&list);
    assert_int_equal(gar_visible_parse("GPU-cc", false, &mixed, &list, NULL), GAR_OK);
    assert_int_equal(list.devices[0].memory_bytes, 16 * GIB);
    gar_device_list_destroy(&list);
    gar_device_list_destroy(&alike);
    gar_device_list_destroy(&mixed);
}

/* Any text at all: names are elements of it in order, without blanks, each once. */
static void test_visible_of_any_text(void **state)
{
    (void)state;
    static const char *const pieces[] = {"0",
                                         "1",
                                         "3",
                                         "4",
                                         ",",
                                         ",",
                                         " ",
                                         "-",
                                         "+",
                                         "GPU-",
                                         "MIG-",
                                         "GPU-aaaa",
                                         "aa",
                                         "c",
                                         "/1",
                                         "x",
                                         "\t",
                                         "00",
                                         "MIG-GPU-dddd3333/",
                                         "\xff",
                                         "1111"};
    struct gar_device_list known[] = {
        {.gpu_count = -1}, known_devices(false, true), known_devices(true, false)};
    uint64_t random = 5;
    for (int64_t round = 0; round < 60000; round++) {
        char text[256] = "";
        size_t size = 0;
        for (int64_t piece = 0; piece < 10; piece++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            size += (size_t)snprintf(text + size, sizeof text - size, "%s",
                                     pieces[(random >> 33) % (uint64_t)GAR_COUNT_OF(pieces)]);
        }
        const struct gar_device_list *machine = &known[round % GAR_COUNT_OF(known)];
        struct gar_device_list list;
        assert_int_equal(gar_visible_parse(text, round % 2 == 0, machine, &list, NULL), GAR_OK);
        const char *at = text;
        struct gar_list_element element;
        for (int64_t i = 0; i < list.count; i++) {
            assert_true(gar_list_next(&at, &element));
            element = gar_list_trim(element);
            assert_int_equal(strlen(list.devices[i].name), element.bytes);
            assert_memory_equal(list.devices[i].name, element.text, (size_t)element.bytes);
            for (int64_t before = 0; before < i; before++) {
                assert_string_not_equal(list.devices[before].name, list.devices[i].name);
            }
        }
        assert_true(machine->gpu_count < 0 || list.count <= machine->count + 4);
        gar_device_list_destroy(&list);
    }
    gar_device_list_destroy(&known[1]);
    gar_device_list_destroy(&known[2]);
}

/* ---- NVML ---- */

static const char *stub_path(const char *variable)
{
    const char *path = getenv(variable);
    if (path == NULL || access(path, R_OK) != 0) {
        skip(); /* only meson's test runner knows where it is */
    }
    return path;
}

static void find(const char *path, const char *mode, const char *visible,
                 struct gar_device_list *out)
{
    assert_int_equal(setenv("GAR_STUB_NVML", mode, 1), 0);
    const struct gar_device_search search = {
        .cuda_visible = visible, .nvml_path = path, .root = "/nonexistent", .timeout_ms = 20000};
    assert_int_equal(gar_devices_find(&search, out, NULL), GAR_OK);
}

static void test_nvml(void **state)
{
    (void)state;
    const char *path = stub_path("GAR_TEST_NVML");
    struct gar_device_list list;
    find(path, "four", NULL, &list);
    assert_string_equal(text_of(&list), "0|1|2|3");
    assert_string_equal(list.warning, "");
    assert_string_equal(list.devices[1].uuid, "GPU-20000000-0000-0000-0000-000000000001");
    assert_string_equal(list.devices[1].model, "Stub L");
    assert_int_equal(list.devices[1].memory_bytes, 80 * GIB);
    assert_true(list.needs_pci_order);
    gar_device_list_destroy(&list);
    find(path, "four", "GPU-3,GPU-1", &list);
    assert_string_equal(text_of(&list), "GPU-3|GPU-1");
    assert_int_equal(list.devices[0].index, 2);
    assert_false(list.needs_pci_order);
    gar_device_list_destroy(&list);
    find(path, "four", "0,9", &list);
    assert_string_equal(text_of(&list), "0");
    assert_non_null(strstr(list.warning, "ends before '9'"));
    gar_device_list_destroy(&list);
    find(path, "one", "3,4,5,6", &list);
    assert_int_equal(list.count, 0);
    gar_device_list_destroy(&list);
    find(path, "none", NULL, &list);
    assert_int_equal(list.count, 0);
    assert_string_equal(list.warning, "");
    gar_device_list_destroy(&list);
    find(path, "mig", NULL, &list);
    assert_string_equal(text_of(&list), "0|MIG-abc0000b-0000-0000-0000-00000000000b|"
                                        "MIG-abc0001f-0000-0000-0000-00000000001f");
    assert_int_equal(list.devices[1].memory_bytes, 10 * GIB);
    assert_int_equal(list.devices[1].index, 1);
    assert_true(list.devices[1].is_slice);
    gar_device_list_destroy(&list);
    find(path, "mixed", "3", &list);
    assert_int_equal(list.devices[0].memory_bytes, -1);
    gar_device_list_destroy(&list);
}

static void test_nvml_in_trouble(void **state)
{
    (void)state;
    const char *path = stub_path("GAR_TEST_NVML");
    struct gar_device_list list;
    find(path, "lost", NULL, &list);
    assert_string_equal(text_of(&list), "0|1|2");
    assert_string_equal(list.warning, "GPU 3 is left out: GPU is lost");
    gar_device_list_destroy(&list);
    find(path, "init", NULL, &list);
    assert_int_equal(list.count, 0);
    assert_string_equal(list.warning, "NVML cannot be used: Unknown Error");
    gar_device_list_destroy(&list);
    find(path, "init", "3,4", &list); /* the names still stand */
    assert_string_equal(text_of(&list), "3|4");
    gar_device_list_destroy(&list);
    find(path, "driver", NULL, &list);
    assert_string_equal(list.warning, "");
    gar_device_list_destroy(&list);
    find(path, "count", NULL, &list);
    assert_int_equal(list.count, 0);
    assert_non_null(strstr(list.warning, "it counts 100000 GPUs"));
    gar_device_list_destroy(&list);
    find(stub_path("GAR_TEST_NVML_BROKEN"), "four", NULL, &list);
    assert_int_equal(list.count, 0);
    assert_string_equal(list.warning, "NVML is broken: it has no nvmlDeviceGetCount_v2");
    gar_device_list_destroy(&list);
    find("/nonexistent/libnvidia-ml.so.1", "four", NULL, &list);
    assert_string_equal(list.warning, "");
    gar_device_list_destroy(&list);
    find("/proc/self/status", "four", NULL, &list); /* there, but no library */
    assert_non_null(strstr(list.warning, "NVML cannot be loaded"));
    gar_device_list_destroy(&list);
}

/* Devices that vanish between two looks are set aside; the others go on. */
static void test_devices_vanish(void **state)
{
    (void)state;
    const char *path = stub_path("GAR_TEST_NVML");
    const struct gar_device_search search = {.nvml_path = path, .timeout_ms = 20000};
    struct gar_device_list list;
    find(path, "four", "GPU-4,GPU-1", &list);
    const struct gar_ledger_options options = {.devices = &list};
    struct gar_ledger *ledger = NULL;
    assert_int_equal(gar_ledger_new(&options, &ledger, NULL), GAR_OK);
    int64_t lost = -1;
    assert_int_equal(gar_ledger_look_again(ledger, &search, &lost, NULL), GAR_OK);
    assert_int_equal(lost, 0);
    assert_int_equal(setenv("GAR_STUB_NVML", "init", 1), 0); /* no answer is no proof */
    assert_int_equal(gar_ledger_look_again(ledger, &search, &lost, NULL), GAR_OK);
    assert_int_equal(lost, 0);
    assert_int_equal(setenv("GAR_STUB_NVML", "one", 1), 0);
    assert_int_equal(gar_ledger_look_again(ledger, &search, &lost, NULL), GAR_OK);
    assert_int_equal(lost, 1);
    assert_true(gar_ledger_is_set_aside(ledger, 0));
    assert_false(gar_ledger_is_set_aside(ledger, 1));
    assert_int_equal(gar_ledger_look_again(ledger, &search, &lost, NULL), GAR_OK);
    assert_int_equal(lost, 0);
    gar_ledger_unref(ledger);
}

/* A call that hangs costs a warning, not the caller. */
static void test_nvml_hangs(void **state)
{
    (void)state;
    const struct gar_device_search search = {
        .nvml_path = stub_path("GAR_TEST_NVML"), .root = "/nonexistent", .timeout_ms = 20};
    struct gar_device_list list;
    assert_int_equal(setenv("GAR_STUB_NVML", "hang", 1), 0);
    assert_int_equal(gar_devices_find(&search, &list, NULL), GAR_OK);
    assert_int_equal(list.count, 0);
    assert_non_null(strstr(list.warning, "did not answer within 20 ms"));
    gar_device_list_destroy(&list);
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 0}; /* until the thread is gone */
    (void)nanosleep(&pause, NULL);
}

static void test_search_allocations_fail(void **state)
{
    (void)state;
    const struct gar_device_search search = {.cuda_visible = "3,4,5",
                                             .nvml_path = "/nonexistent/libnvidia-ml.so.1",
                                             .root = "/nonexistent",
                                             .timeout_ms = 20000};
    bool is_through = false;
    for (int64_t n = 1; !is_through; n++) {
        struct gar_device_list list;
        struct gar_error err = GAR_ERROR_INIT;
        (void)gar_alloc_fail_at(n, false);
        const enum gar_status status = gar_devices_find(&search, &list, &err);
        is_through = gar_alloc_fail_at(0, false) < n;
        assert_true(status == GAR_OK || status == GAR_ERR_NOMEM);
        if (status == GAR_OK) {
            assert_int_equal(list.count, 3);
            gar_device_list_destroy(&list);
        }
    }
}

/* ---- AMD ---- */

static void write_file(const char *root, const char *path, const char *text)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void make_amd_machine(const char *root)
{
    static const char nodes[] = "sys/class/kfd/kfd/topology/nodes";
    char path[256];
    char text[256];
    (void)snprintf(path, sizeof path, "%s/0/gpu_id", nodes); /* a CPU */
    write_file(root, path, "0\n");
    for (int i = 1; i <= 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%d/gpu_id", nodes, i);
        write_file(root, path, "4711\n");
        (void)snprintf(path, sizeof path, "%s/%d/properties", nodes, i);
        (void)snprintf(text, sizeof text,
                       "simd_count 440\ndrm_render_minor %d\nunique_id %llu\nnum_xcc 1\n", 127 + i,
                       0xa0ull + (unsigned)i);
        write_file(root, path, text);
        (void)snprintf(path, sizeof path, "%s/%d/name", nodes, i);
        write_file(root, path, "gfx90a\n");
    }
    write_file(root, "sys/class/drm/renderD128/device/mem_info_vram_total", "68702699520\n");
    write_file(root, "sys/class/drm/renderD128/device/product_name", "Big Card\n");
    (void)snprintf(path, sizeof path, "%s/2/mem_banks/0/properties", nodes);
    write_file(root, path, "heap_type 1\nsize_in_bytes 1073741824\nflags 0\n");
}

static void test_amd(void **state)
{
    (void)state;
    char root[] = "/tmp/gar-devices-XXXXXX";
    assert_non_null(mkdtemp(root));
    make_amd_machine(root);
    static const struct {
        const char *rocr;
        const char *hip;
        const char *cuda;
        const char *devices;
    } cases[] = {
        {NULL, NULL, NULL, "0|1|2"}, {NULL, "1,0", NULL, "1|0"},
        {NULL, NULL, "2", "2"},      {NULL, "", "1", "1"},
        {NULL, "0", "1", "0"},       {"1,2", "1,0", NULL, "1|0"},
        {"2", NULL, NULL, "0"},      {"2", "2", NULL, ""},
        {"", NULL, NULL, ""},        {NULL, "-1", NULL, ""},
        {NULL, "0, 1", NULL, "0"},   {NULL, "0,0,1", NULL, "0|1"},
        {NULL, "00", NULL, ""},      {"GPU-00000000000000a3,0", NULL, NULL, "0|1"},
        {NULL, "9", NULL, ""},       {NULL, "GPU-00000000000000a2", NULL, "GPU-00000000000000a2"},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        const struct gar_device_search search = {.cuda_visible = cases[i].cuda,
                                                 .hip_visible = cases[i].hip,
                                                 .rocr_visible = cases[i].rocr,
                                                 .nvml_path = "/nonexistent/nvml.so",
                                                 .root = root,
                                                 .timeout_ms = 20000};
        struct gar_device_list list;
        assert_int_equal(gar_devices_find(&search, &list, NULL), GAR_OK);
        assert_true(list.is_amd);
        if (strcmp(text_of(&list), cases[i].devices) != 0) {
            fail_msg("case %d gives '%s', not '%s'", (int)i, text_of(&list), cases[i].devices);
        }
        if (i == 0) {
            assert_string_equal(list.devices[0].model, "Big Card");
            assert_string_equal(list.devices[1].model, "gfx90a");
            assert_string_equal(list.devices[0].uuid, "GPU-00000000000000a1");
            assert_int_equal(list.devices[0].memory_bytes, INT64_C(68702699520));
            assert_int_equal(list.devices[1].memory_bytes, GIB);
            assert_int_equal(list.devices[2].memory_bytes, -1);
        }
        if (i == 5) { /* ROCR=1,2 and HIP=1,0: the second of these, then the first */
            assert_int_equal(list.devices[0].index, 2);
            assert_int_equal(list.devices[1].index, 1);
        }
        gar_device_list_destroy(&list);
    }
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

/* ---- environments ---- */

static void expect_environment(const struct gar_device_list *list, const int32_t *devices,
                               int64_t count, const char *text)
{
    struct gar_device_environment environment;
    assert_int_equal(gar_device_environment(list, devices, count, &environment, NULL), GAR_OK);
    char got[256] = "";
    for (int64_t i = 0; i < environment.count; i++) {
        const size_t size = strlen(got);
        (void)snprintf(got + size, sizeof got - size, "%s%s", i > 0 ? " " : "",
                       environment.entries[i]);
    }
    assert_null(environment.entries[environment.count]);
    assert_string_equal(got, text);
    gar_device_environment_destroy(&environment);
}

static void test_environments(void **state)
{
    (void)state;
    struct gar_device_list list = known_devices(false, true);
    static const int32_t some[] = {2, 0};
    expect_environment(&list, some, 2, "CUDA_VISIBLE_DEVICES=2,0");
    expect_environment(&list, NULL, 0, "CUDA_VISIBLE_DEVICES=");
    list.needs_pci_order = true;
    expect_environment(&list, some, 1, "CUDA_VISIBLE_DEVICES=2 CUDA_DEVICE_ORDER=PCI_BUS_ID");
    expect_environment(&list, NULL, 0, "CUDA_VISIBLE_DEVICES=");
    list.is_amd = true;
    expect_environment(&list, some, 2, "HIP_VISIBLE_DEVICES=2,0 CUDA_VISIBLE_DEVICES");
    expect_environment(&list, NULL, 0, "HIP_VISIBLE_DEVICES=-1 CUDA_VISIBLE_DEVICES");
    bool is_through = false;
    for (int64_t n = 1; !is_through; n++) {
        struct gar_device_environment environment;
        (void)gar_alloc_fail_at(n, false);
        const enum gar_status status = gar_device_environment(&list, some, 2, &environment, NULL);
        is_through = gar_alloc_fail_at(0, false) < n;
        assert_int_equal(status, is_through ? GAR_OK : GAR_ERR_NOMEM);
        gar_device_environment_destroy(&environment);
    }
    gar_device_list_destroy(&list);
}

/* ---- errors ---- */

static void test_device_errors(void **state)
{
    (void)state;
    static const struct {
        int32_t exit_code;
        int32_t signal;
        const char *text;
        enum gar_device_error error;
    } cases[] = {
        {-1, 0, "ValueError: too many values to unpack", GAR_DEVICE_FINE},
        {-1, 0, NULL, GAR_DEVICE_FINE},
        {1, 0, NULL, GAR_DEVICE_FINE},
        {134, 0, NULL, GAR_DEVICE_SUSPECT},
        {-1, SIGABRT, NULL, GAR_DEVICE_SUSPECT},
        {-1, SIGSEGV, NULL, GAR_DEVICE_FINE},
        {137, 0, NULL, GAR_DEVICE_FINE},
        {-1, 0, "RuntimeError: CUDA error", GAR_DEVICE_LOST},
        {-1, 0, "CUDA error: uncorrectable ECC error encountered", GAR_DEVICE_LOST},
        {134, 0, "CUDA error: device-side assert triggered", GAR_DEVICE_POISON},
        {-1, 0, "CUDA error: an illegal memory access was encountered", GAR_DEVICE_POISON},
        {-1, 0, "CUDA out of memory. Tried to allocate 2.00 GiB", GAR_DEVICE_FULL},
        {-1, 0, "CUDA error: out of memory", GAR_DEVICE_FULL},
        {-1, 0, "CUDA error: invalid argument", GAR_DEVICE_FINE},
        {-1, 0, "RuntimeError: No CUDA GPUs are available", GAR_DEVICE_LOST},
        {-1, 0, "Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.",
         GAR_DEVICE_LOST},
        {134, 0, "Memory access fault by GPU node-1 on address 0x7f", GAR_DEVICE_POISON},
        {-1, 0, "HIP error: something new", GAR_DEVICE_LOST},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        const char *why = NULL;
        assert_int_equal(
            gar_device_error_classify(cases[i].exit_code, cases[i].signal, cases[i].text, &why),
            cases[i].error);
        assert_non_null(why);
        if (cases[i].error == GAR_DEVICE_LOST || cases[i].error == GAR_DEVICE_SUSPECT) {
            assert_true(why[0] != '\0');
        }
    }
    assert_int_equal(gar_device_error_classify(134, 0, "", NULL), GAR_DEVICE_SUSPECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible_of_four),
        cmocka_unit_test(test_visible_with_slices),
        cmocka_unit_test(test_visible_believed),
        cmocka_unit_test(test_which_card_a_number_is),
        cmocka_unit_test(test_visible_of_any_text),
        cmocka_unit_test(test_nvml),
        cmocka_unit_test(test_nvml_in_trouble),
        cmocka_unit_test(test_devices_vanish),
        cmocka_unit_test(test_nvml_hangs),
        cmocka_unit_test(test_search_allocations_fail),
        cmocka_unit_test(test_amd),
        cmocka_unit_test(test_environments),
        cmocka_unit_test(test_device_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
