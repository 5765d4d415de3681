/* SPDX-License-Identifier: Apache-2.0 */
/* Resource requests: checks, arithmetic and texts. Shares are integers, so sums of them do not drift. */
#include "resources/request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define AMOUNT_MAX 1e9 /* times GAR_SHARES is far from overflow */
/* 0.29 * 10000 is 2899.9999999999995: what a double cannot say exactly counts as written. */
#define DOUBLE_SLACK 1e-6

static enum gar_status check_amount(const char *field, double amount, struct gar_error *err);
static enum gar_status check_bytes(const char *field, int64_t bytes, struct gar_error *err);
static enum gar_status check_shares(const char *field, int64_t shares, struct gar_error *err);
static int64_t max_asked(int64_t a, int64_t b);
static enum gar_status add_asked(int64_t a, int64_t b, int64_t *out, struct gar_error *err);
static enum gar_status multiply_asked(int64_t a, int64_t factor, int64_t *out,
                                      struct gar_error *err);

void gar_resource_request_init(struct gar_resource_request *request)
{
    request->cpu_shares = GAR_NOT_ASKED;
    request->gpu_shares = GAR_NOT_ASKED;
    request->memory_bytes = GAR_NOT_ASKED;
    request->gpu_memory_bytes = GAR_NOT_ASKED;
}

int64_t gar_shares_from_double(double amount)
{
    return (int64_t)floor(amount * GAR_SHARES + DOUBLE_SLACK);
}

enum gar_status gar_resource_request_set_cpus(struct gar_resource_request *request, double cpus,
                                              struct gar_error *err)
{
    GAR_TRY(check_amount("num_cpus", cpus, err));
    request->cpu_shares = gar_shares_from_double(cpus);
    return GAR_OK;
}

enum gar_status gar_resource_request_set_gpus(struct gar_resource_request *request, double gpus,
                                              struct gar_error *err)
{
    GAR_TRY(check_amount("num_gpus", gpus, err));
    if (gpus > 1 && floor(gpus) < gpus) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "num_gpus greater than 1 must be an integer, got %.15g", gpus);
    }
    request->gpu_shares = gar_shares_from_double(gpus);
    return GAR_OK;
}

enum gar_status gar_resource_request_set_memory(struct gar_resource_request *request, int64_t bytes,
                                                struct gar_error *err)
{
    GAR_TRY(check_bytes("memory_bytes", bytes, err));
    request->memory_bytes = bytes;
    return GAR_OK;
}

enum gar_status gar_resource_request_set_gpu_memory(struct gar_resource_request *request,
                                                    int64_t bytes, struct gar_error *err)
{
    GAR_TRY(check_bytes("gpu_memory", bytes, err));
    request->gpu_memory_bytes = bytes;
    return GAR_OK;
}

enum gar_status gar_resource_request_check(const struct gar_resource_request *request,
                                           struct gar_error *err)
{
    GAR_TRY(check_shares("num_cpus", request->cpu_shares, err));
    GAR_TRY(check_shares("num_gpus", request->gpu_shares, err));
    if (request->gpu_shares > GAR_SHARES && request->gpu_shares % GAR_SHARES != 0) {
        char text[32];
        return gar_error_set(err, GAR_ERR_VALUE,
                             "num_gpus greater than 1 must be an integer, got %s",
                             gar_shares_text(request->gpu_shares, text, (int64_t)sizeof text));
    }
    if (request->memory_bytes != GAR_NOT_ASKED) {
        GAR_TRY(check_bytes("memory_bytes", request->memory_bytes, err));
    }
    if (request->gpu_memory_bytes != GAR_NOT_ASKED) {
        GAR_TRY(check_bytes("gpu_memory", request->gpu_memory_bytes, err));
    }
    return GAR_OK;
}

void gar_resource_request_max(const struct gar_resource_request *a,
                              const struct gar_resource_request *b,
                              struct gar_resource_request *out)
{
    out->cpu_shares = max_asked(a->cpu_shares, b->cpu_shares);
    out->gpu_shares = max_asked(a->gpu_shares, b->gpu_shares);
    out->memory_bytes = max_asked(a->memory_bytes, b->memory_bytes);
    out->gpu_memory_bytes = max_asked(a->gpu_memory_bytes, b->gpu_memory_bytes);
}

enum gar_status gar_resource_request_sum(const struct gar_resource_request *a,
                                         const struct gar_resource_request *b,
                                         struct gar_resource_request *out, struct gar_error *err)
{
    struct gar_resource_request sum;
    GAR_TRY(add_asked(a->cpu_shares, b->cpu_shares, &sum.cpu_shares, err));
    GAR_TRY(add_asked(a->gpu_shares, b->gpu_shares, &sum.gpu_shares, err));
    GAR_TRY(add_asked(a->memory_bytes, b->memory_bytes, &sum.memory_bytes, err));
    GAR_TRY(add_asked(a->gpu_memory_bytes, b->gpu_memory_bytes, &sum.gpu_memory_bytes, err));
    GAR_TRY(gar_resource_request_check(&sum, err));
    *out = sum;
    return GAR_OK;
}

enum gar_status gar_resource_request_multiply(const struct gar_resource_request *a, int64_t factor,
                                              struct gar_resource_request *out,
                                              struct gar_error *err)
{
    if (factor < 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "a resource request can be multiplied by 0 and more, got %lld",
                             (long long)factor);
    }
    struct gar_resource_request product;
    GAR_TRY(multiply_asked(a->cpu_shares, factor, &product.cpu_shares, err));
    GAR_TRY(multiply_asked(a->gpu_shares, factor, &product.gpu_shares, err));
    GAR_TRY(multiply_asked(a->memory_bytes, factor, &product.memory_bytes, err));
    GAR_TRY(multiply_asked(a->gpu_memory_bytes, factor, &product.gpu_memory_bytes, err));
    GAR_TRY(gar_resource_request_check(&product, err));
    *out = product;
    return GAR_OK;
}

void gar_resource_request_override(const struct gar_resource_request *base,
                                   const struct gar_resource_request *over,
                                   struct gar_resource_request *out)
{
    out->cpu_shares = over->cpu_shares >= 0 ? over->cpu_shares : base->cpu_shares;
    out->gpu_shares = over->gpu_shares >= 0 ? over->gpu_shares : base->gpu_shares;
    out->memory_bytes = over->memory_bytes >= 0 ? over->memory_bytes : base->memory_bytes;
    out->gpu_memory_bytes =
        over->gpu_memory_bytes >= 0 ? over->gpu_memory_bytes : base->gpu_memory_bytes;
}

bool gar_resource_request_equal(const struct gar_resource_request *a,
                                const struct gar_resource_request *b)
{
    return a->cpu_shares == b->cpu_shares && a->gpu_shares == b->gpu_shares &&
           a->memory_bytes == b->memory_bytes && a->gpu_memory_bytes == b->gpu_memory_bytes;
}

struct gar_resource_request gar_resource_request_booked(const struct gar_resource_request *request)
{
    return (struct gar_resource_request){
        .cpu_shares = gar_max_i64(request->cpu_shares, 0),
        .gpu_shares = gar_max_i64(request->gpu_shares, 0),
        .memory_bytes = gar_max_i64(request->memory_bytes, 0),
        .gpu_memory_bytes = gar_max_i64(request->gpu_memory_bytes, 0),
    };
}

const char *gar_resource_request_text(const struct gar_resource_request *request, char *out,
                                      int64_t out_bytes)
{
    char parts[4][80];
    int64_t count = 0;
    char amount[32];
    if (request->cpu_shares > 0) {
        (void)snprintf(parts[count++], sizeof parts[0], "%s %s",
                       gar_shares_text(request->cpu_shares, amount, (int64_t)sizeof amount),
                       request->cpu_shares == GAR_SHARES ? "CPU" : "CPUs");
    }
    if (request->memory_bytes > 0) {
        (void)snprintf(parts[count++], sizeof parts[0], "%s of memory",
                       gar_bytes_text(request->memory_bytes, amount, (int64_t)sizeof amount));
    }
    if (request->gpu_shares > 0) {
        (void)snprintf(parts[count++], sizeof parts[0], "%s %s",
                       gar_shares_text(request->gpu_shares, amount, (int64_t)sizeof amount),
                       request->gpu_shares == GAR_SHARES ? "GPU" : "GPUs");
    }
    if (request->gpu_memory_bytes > 0) {
        (void)snprintf(parts[count++], sizeof parts[0], "%s of GPU memory",
                       gar_bytes_text(request->gpu_memory_bytes, amount, (int64_t)sizeof amount));
    }
    (void)snprintf(out, (size_t)out_bytes, "%s%s%s%s%s%s%s", count > 0 ? parts[0] : "nothing",
                   count > 1 ? ", " : "", count > 1 ? parts[1] : "", count > 2 ? ", " : "",
                   count > 2 ? parts[2] : "", count > 3 ? ", " : "", count > 3 ? parts[3] : "");
    return out;
}

const char *gar_shares_text(int64_t shares, char *out, int64_t out_bytes)
{
    char digits[8];
    (void)snprintf(digits, sizeof digits, ".%04d",
                   (int)(shares < 0 ? -(shares % GAR_SHARES) : shares % GAR_SHARES));
    for (int64_t last = 4; last >= 0 && (digits[last] == '0' || digits[last] == '.'); last--) {
        digits[last] = '\0';
    }
    (void)snprintf(out, (size_t)out_bytes, "%s%lld%s",
                   shares < 0 && shares > -GAR_SHARES ? "-" : "", (long long)(shares / GAR_SHARES),
                   digits);
    return out;
}

const char *gar_bytes_text(int64_t bytes, char *out, int64_t out_bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        (void)snprintf(out, (size_t)out_bytes, "%lld bytes", (long long)bytes);
        return out;
    }
    double value = (double)bytes / 1024.0;
    int64_t unit = 0;
    while (value >= 1024.0 && unit + 1 < GAR_COUNT_OF(units)) {
        value /= 1024.0;
        unit++;
    }
    (void)snprintf(out, (size_t)out_bytes, "%.1f %s", value, units[unit]);
    return out;
}

static enum gar_status check_amount(const char *field, double amount, struct gar_error *err)
{
    if (!isfinite(amount)) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be a finite number, got %g", field,
                             amount);
    }
    if (amount < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be nonnegative, got %.15g", field,
                             amount);
    }
    if (amount > AMOUNT_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be at most 1000000000, got %g", field,
                             amount);
    }
    if (amount > 0 && gar_shares_from_double(amount) == 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be 0 or at least 0.0001, got %g", field,
                             amount);
    }
    return GAR_OK;
}

static enum gar_status check_bytes(const char *field, int64_t bytes, struct gar_error *err)
{
    if (bytes < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be nonnegative, got %lld", field,
                             (long long)bytes);
    }
    return GAR_OK;
}

static enum gar_status check_shares(const char *field, int64_t shares, struct gar_error *err)
{
    char text[32];
    if (shares < 0 && shares != GAR_NOT_ASKED) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be nonnegative, got %s", field,
                             gar_shares_text(shares, text, (int64_t)sizeof text));
    }
    if (shares > (int64_t)AMOUNT_MAX * GAR_SHARES) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must be at most 1000000000, got %s", field,
                             gar_shares_text(shares, text, (int64_t)sizeof text));
    }
    return GAR_OK;
}

/* GAR_NOT_ASKED is below every amount. */
static int64_t max_asked(int64_t a, int64_t b)
{
    return gar_max_i64(a, b);
}

static enum gar_status add_asked(int64_t a, int64_t b, int64_t *out, struct gar_error *err)
{
    if (a < 0 || b < 0) {
        *out = max_asked(a, b);
    } else if (__builtin_add_overflow(a, b, out)) {
        return gar_error_set(err, GAR_ERR_OVERFLOW,
                             "the sum of two resource requests is too large");
    }
    return GAR_OK;
}

static enum gar_status multiply_asked(int64_t a, int64_t factor, int64_t *out,
                                      struct gar_error *err)
{
    if (a < 0) {
        *out = a;
    } else if (__builtin_mul_overflow(a, factor, out)) {
        return gar_error_set(err, GAR_ERR_OVERFLOW, "%lld times a resource request is too large",
                             (long long)factor);
    }
    return GAR_OK;
}

/* ---- "6GiB" ---- */

/* The factor of a unit, 0 if it is none. */
static int64_t unit_factor(const char *unit)
{
    static const char letters[] = "kmgtp";
    if (unit[0] == '\0' || strcmp(unit, "b") == 0) {
        return 1;
    }
    const char *letter = strchr(letters, unit[0]);
    if (letter == NULL) {
        return 0;
    }
    const bool is_binary = unit[1] == '\0' || strcmp(unit + 1, "ib") == 0;
    if (!is_binary && strcmp(unit + 1, "b") != 0) {
        return 0;
    }
    int64_t factor = 1;
    for (const char *at = letters; at <= letter; at++) {
        factor *= is_binary ? 1024 : 1000;
    }
    return factor;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with an optional point, then a unit. False if that is not what the text is, or if it is too large. */
static bool parse_bytes(const char *text, int64_t *out)
{
    const char *at = text + strspn(text, " \t");
    int64_t whole = 0;
    double fraction = 0;
    double place = 1;
    const char *const start = at;
    for (; is_digit(*at); at++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (int64_t)(*at - '0'), &whole)) {
            return false;
        }
    }
    bool has_digits = at > start;
    if (*at == '.') {
        for (at++; is_digit(*at); at++) {
            place /= 10;
            fraction += place * (*at - '0');
            has_digits = true;
        }
    }
    at += strspn(at, " \t");
    char unit[4] = "";
    size_t unit_bytes = 0;
    while (((*at | 32) >= 'a' && (*at | 32) <= 'z') && unit_bytes < sizeof unit - 1) {
        unit[unit_bytes++] = (char)(*at++ | 32);
    }
    at += strspn(at, " \t");
    const int64_t factor = unit_factor(unit);
    int64_t bytes;
    if (!has_digits || *at != '\0' || factor == 0 ||
        __builtin_mul_overflow(whole, factor, &bytes) ||
        __builtin_add_overflow(bytes, (int64_t)(fraction * (double)factor + DOUBLE_SLACK),
                               &bytes)) {
        return false;
    }
    *out = bytes;
    return true;
}

enum gar_status gar_bytes_parse(const char *text, int64_t *out, struct gar_error *err)
{
    if (!parse_bytes(text, out)) {
        char quoted[64];
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "'%s' is no amount of memory; write bytes or a number with a unit, as in 6GiB or 500MB",
            gar_error_quote(text, (int64_t)strlen(text), quoted, (int64_t)sizeof quoted));
    }
    return GAR_OK;
}
