/* SPDX-License-Identifier: Apache-2.0 */
/* extern "C" around std::from_chars and std::to_chars. No exception leaves this file. */
#include <charconv>

#include "base/charconv_shim_priv.h"

namespace
{

template <typename T> gar_charconv_result parse(const char *text, int64_t bytes, T *out) noexcept
{
    try {
        T value{};
        const char *const end = text + bytes;
        const std::from_chars_result r = std::from_chars(text, end, value);
        if (r.ec == std::errc::invalid_argument || r.ptr != end) {
            return GAR_CHARCONV_INVALID;
        }
        if (r.ec != std::errc{}) {
            return GAR_CHARCONV_OUT_OF_RANGE;
        }
        *out = value;
        return GAR_CHARCONV_OK;
    } catch (...) {
        return GAR_CHARCONV_INVALID;
    }
}

template <typename T> int32_t format(T v, bool with_exponent, char *out, int32_t out_bytes) noexcept
{
    try {
        const std::chars_format how =
            with_exponent ? std::chars_format::scientific : std::chars_format::fixed;
        const std::to_chars_result r = std::to_chars(out, out + out_bytes, v, how);
        return r.ec == std::errc{} ? static_cast<int32_t>(r.ptr - out) : 0;
    } catch (...) {
        return 0;
    }
}

} // namespace

extern "C" gar_charconv_result gar_charconv_parse_double(const char *text, int64_t bytes,
                                                         double *out)
{
    return parse(text, bytes, out);
}

extern "C" gar_charconv_result gar_charconv_parse_float(const char *text, int64_t bytes, float *out)
{
    return parse(text, bytes, out);
}

extern "C" int32_t gar_charconv_format_double(double v, bool with_exponent, char *out,
                                              int32_t out_bytes)
{
    return format(v, with_exponent, out, out_bytes);
}

extern "C" int32_t gar_charconv_format_float(float v, bool with_exponent, char *out,
                                             int32_t out_bytes)
{
    return format(v, with_exponent, out, out_bytes);
}
