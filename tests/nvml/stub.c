/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libnvidia-ml.so.1: see README.md. Declares what it defines, as no header of the real one is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct stub_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

int nvmlInitWithFlags(unsigned flags);
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetUUID(void *device, char *text, unsigned bytes);
int nvmlDeviceGetName(void *device, char *text, unsigned bytes);
int nvmlDeviceGetMemoryInfo(void *device, struct stub_memory *memory);
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **slice);
const char *nvmlErrorString(int code);

enum { OK = 0, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, LOST = 15, UNKNOWN = 999 };
enum { SLICES = 10 }; /* slice s of a GPU has number GPU + SLICES * (s + 1) */

static unsigned numbers[64];
static int listings;

static int is_mode(const char *name)
{
    const char *mode = getenv("GAR_STUB_NVML");
    return mode != NULL && strcmp(mode, name) == 0;
}

static unsigned number_of(const void *device)
{
    return *(const unsigned *)device;
}

static int give(unsigned number, void **device)
{
    numbers[number] = number;
    *device = &numbers[number];
    return OK;
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    listings++;
    return is_mode("init") ? UNKNOWN : is_mode("driver") ? DRIVER_NOT_LOADED : OK;
}

int nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

int nvmlShutdown(void)
{
    return OK;
}

#if !defined(STUB_BROKEN)
int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (is_mode("hang")) {
        const struct timespec pause = {.tv_sec = 0, .tv_nsec = 300000000};
        (void)nanosleep(&pause, NULL);
    }
    *count = is_mode("none")    ? 0
             : is_mode("one")   ? 1
             : is_mode("mig")   ? 2
             : is_mode("count") ? 100000
             : is_mode("later") ? (listings > 1 ? 3 : 4)
                                : 4;
    return OK;
}
#endif

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    return is_mode("lost") && index == 3 ? LOST : give(index, device);
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned bytes)
{
    const unsigned number = number_of(device);
    (void)snprintf(text, bytes, "%s-%08x-0000-0000-0000-%012x", number >= SLICES ? "MIG" : "GPU",
                   number >= SLICES ? 0xabc00000u + number : 0x10000000u * (number + 1), number);
    return OK;
}

int nvmlDeviceGetName(void *device, char *text, unsigned bytes)
{
    const unsigned number = number_of(device);
    const int is_small = is_mode("mixed") && number >= 2;
    (void)snprintf(text, bytes, "%s",
                   number >= SLICES ? "Stub MIG 1g.10gb"
                   : is_small       ? "Stub S"
                                    : "Stub L");
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *device, struct stub_memory *memory)
{
    const unsigned number = number_of(device);
    const int is_small = is_mode("mixed") && number >= 2;
    const unsigned long long gib = 1ull << 30;
    memory->total = (number >= SLICES ? 10 : is_small ? 16 : 80) * gib;
    memory->free = memory->total;
    memory->used = 0;
    return OK;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = is_mode("mig") && number_of(device) == 1;
    *pending = *current;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
    (void)device;
    *count = 4;
    return OK;
}

/* Places 0 and 2 are in use. */
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **slice)
{
    return index == 0 || index == 2 ? give(number_of(device) + SLICES * (index + 1), slice)
                                    : NOT_FOUND;
}

const char *nvmlErrorString(int code)
{
    return code == LOST ? "GPU is lost" : code == UNKNOWN ? "Unknown Error" : "Other Error";
}
