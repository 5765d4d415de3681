/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind gar_device_error_classify. Texts are those of the CUDA and HIP runtimes and of the libraries over
 * them, as they stand in exceptions of PyTorch, JAX, ONNX Runtime and TensorFlow. The first row that is found wins, so
 * that special ones stand before general ones. */
#include "resources/device_error.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

struct row {
    const char *text; /* found in any letter case */
    const char *why;
    enum gar_device_error error;
};

static const struct row by_text[] = {
    /* the device is gone or damaged */
    {"uncorrectable ecc error", "uncorrectable ECC error", GAR_DEVICE_LOST},
    {"eccuncorrectable", "uncorrectable ECC error", GAR_DEVICE_LOST},
    {"ecc_uncorrectable", "uncorrectable ECC error", GAR_DEVICE_LOST},
    {"eccnotcorrectable", "uncorrectable ECC error", GAR_DEVICE_LOST},
    {"uncorrectable nvlink error", "uncorrectable NVLink error", GAR_DEVICE_LOST},
    {"fallen off the bus", "GPU has fallen off the bus", GAR_DEVICE_LOST},
    {"gpu is lost", "GPU is lost", GAR_DEVICE_LOST},
    {"device is lost", "device is lost", GAR_DEVICE_LOST},
    {"device lost", "device is lost", GAR_DEVICE_LOST},
    {"hardware stack error", "hardware stack error", GAR_DEVICE_LOST},
    {"system not yet initialized", "the driver's fabric is not ready", GAR_DEVICE_LOST},
    {"cuda-capable device(s) is/are busy or unavailable", "device busy or unavailable",
     GAR_DEVICE_LOST},
    {"no cuda-capable device is detected", "device no longer found", GAR_DEVICE_LOST},
    {"no cuda gpus are available", "device no longer found", GAR_DEVICE_LOST},
    {"no rocm-capable device is detected", "device no longer found", GAR_DEVICE_LOST},
    {"no hip gpus are available", "device no longer found", GAR_DEVICE_LOST},
    {"unable to determine the device handle", "device no longer found", GAR_DEVICE_LOST},
    {"gpu requires reset", "GPU requires a reset", GAR_DEVICE_LOST},
    /* its memory is used up */
    {"cuda out of memory", "out of GPU memory", GAR_DEVICE_FULL},
    {"hip out of memory", "out of GPU memory", GAR_DEVICE_FULL},
    {"cuda error: out of memory", "out of GPU memory", GAR_DEVICE_FULL},
    {"hip error: out of memory", "out of GPU memory", GAR_DEVICE_FULL},
    {"cudaerrormemoryallocation", "out of GPU memory", GAR_DEVICE_FULL},
    {"cuda_error_out_of_memory", "out of GPU memory", GAR_DEVICE_FULL},
    {"cublas_status_alloc_failed", "out of GPU memory", GAR_DEVICE_FULL},
    {"cudnn_status_alloc_failed", "out of GPU memory", GAR_DEVICE_FULL},
    {"resource_exhausted: out of memory", "out of GPU memory", GAR_DEVICE_FULL},
    {"failed to allocate memory for requested buffer", "out of GPU memory", GAR_DEVICE_FULL},
    /* the context of this process is beyond use */
    {"device-side assert triggered", "device-side assert", GAR_DEVICE_POISON},
    {"an illegal memory access was encountered", "illegal memory access", GAR_DEVICE_POISON},
    {"illegal address", "illegal memory access", GAR_DEVICE_POISON},
    {"unspecified launch failure", "launch failure", GAR_DEVICE_POISON},
    {"an illegal instruction was encountered", "illegal instruction", GAR_DEVICE_POISON},
    {"misaligned address", "misaligned address", GAR_DEVICE_POISON},
    {"invalid program counter", "invalid program counter", GAR_DEVICE_POISON},
    {"operation not supported on global/shared address space", "invalid address space",
     GAR_DEVICE_POISON},
    {"the launch timed out and was terminated", "launch timed out", GAR_DEVICE_POISON},
    {"context is destroyed", "context destroyed", GAR_DEVICE_POISON},
    {"cublas_status_execution_failed", "cuBLAS failed to run", GAR_DEVICE_POISON},
    {"cudnn_status_execution_failed", "cuDNN failed to run", GAR_DEVICE_POISON},
    {"memory access fault by gpu", "illegal memory access", GAR_DEVICE_POISON},
    /* the user's own */
    {"cuda error: invalid argument", "", GAR_DEVICE_FINE},
    {"cuda error: invalid value", "", GAR_DEVICE_FINE},
    {"cuda error: invalid configuration argument", "", GAR_DEVICE_FINE},
    {"cuda error: invalid device ordinal", "", GAR_DEVICE_FINE},
    {"cuda error: invalid device function", "", GAR_DEVICE_FINE},
    {"cuda error: no kernel image is available", "", GAR_DEVICE_FINE},
    {"cuda error: operation not supported", "", GAR_DEVICE_FINE},
    {"cuda error: initialization error", "CUDA cannot be started here", GAR_DEVICE_SUSPECT},
    {"cuda driver version is insufficient", "", GAR_DEVICE_FINE},
    /* the runtime complains of what is not in the table */
    {"cuda error", "unknown CUDA error", GAR_DEVICE_LOST},
    {"cuda_error_unknown", "unknown CUDA error", GAR_DEVICE_LOST},
    {"hip error", "unknown HIP error", GAR_DEVICE_LOST},
    {"cuda failure", "unknown CUDA error", GAR_DEVICE_LOST},
};

/* How processes die: exit status as a shell gives it, or the signal itself. */
static const struct {
    int32_t signal;
    const char *why;
    enum gar_device_error error;
} by_signal[] = {
    {SIGABRT, "the process aborted", GAR_DEVICE_SUSPECT}, /* as the runtimes do: exit status 134 */
    {SIGBUS, "bus error", GAR_DEVICE_SUSPECT},            /* mapped device memory that went away */
    {SIGSEGV, "", GAR_DEVICE_FINE},
    {SIGKILL, "", GAR_DEVICE_FINE},
};

enum gar_device_error gar_device_error_classify(int32_t exit_code, int32_t signal, const char *text,
                                                const char **out_why)
{
    enum { SHELL_SIGNAL_BASE = 128 };
    const char *why = "";
    enum gar_device_error error = GAR_DEVICE_FINE;
    bool is_found = false;
    for (int64_t i = 0; text != NULL && i < GAR_COUNT_OF(by_text) && !is_found; i++) {
        is_found = strcasestr(text, by_text[i].text) != NULL;
        if (is_found) {
            why = by_text[i].why;
            error = by_text[i].error;
        }
    }
    const int32_t died_by = signal > 0 ? signal : exit_code - SHELL_SIGNAL_BASE;
    for (int64_t i = 0; i < GAR_COUNT_OF(by_signal) && !is_found; i++) {
        if (by_signal[i].signal == died_by) {
            why = by_signal[i].why;
            error = by_signal[i].error;
            is_found = true;
        }
    }
    if (out_why != NULL) {
        *out_why = why;
    }
    return error;
}
