/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of a raw snappy stream: the wall of most Parquet reads.
 *
 * A stream is a length and then elements, each with a tag byte: a literal (bytes that follow) or a copy of bytes
 * given before. The fast loop runs as long as the widest element cannot leave input or output. In it every element is
 * moved by a fixed number of wide loads and stores and only the positions advance by its length: bytes written too
 * much are overwritten by the next element or lie in the 64 bytes behind the output that the caller allows. Near the
 * ends a careful loop takes over.
 *
 * The body is compiled for the baseline and for AVX2. */
#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "formats/parquet/page_codec_priv.h"

/* What the fast loop may read behind its place in the input. */
#define INPUT_SLACK    80
#define COPY_BYTES_MAX 64

struct stream {
    const uint8_t *in;
    const uint8_t *in_end;
    uint8_t *out;
    uint8_t *out_start;
    uint8_t *out_end;
};

/* The uncompressed length in front. */
static bool read_length(struct stream *s, uint64_t *out)
{
    uint64_t value = 0;
    for (int32_t i = 0; i < 5; i++) {
        if (s->in == s->in_end) {
            return false;
        }
        const uint8_t byte = *s->in++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            *out = value;
            return value <= UINT32_MAX;
        }
    }
    return false;
}

/* A copy whose source overlaps its target: the pattern of `offset` bytes is repeated. May write 64 bytes too much. */
GAR_INLINE void copy_pattern(uint8_t *out, int64_t offset, int64_t length)
{
    const uint8_t *from = out - offset;
    uint8_t *const end = out + length;
    /* Double the distance until eight bytes can be moved at once. */
    while (offset < 8) {
        uint64_t word = 0;
        memcpy(&word, from, 8);
        memcpy(out, &word, 8);
        out += offset;
        offset *= 2;
        if (out >= end) {
            return;
        }
    }
    do {
        uint64_t word = 0;
        memcpy(&word, from, 8);
        memcpy(out, &word, 8);
        from += 8;
        out += 8;
    } while (out < end);
}

GAR_INLINE void move_16(uint8_t *to, const uint8_t *from)
{
    uint64_t words[2];
    memcpy(words, from, 16);
    memcpy(to, words, 16);
}

/* One element that the fast loop leaves aside: long literals, four-byte offsets, overlapping copies. s->in is at the tag.
 * There is room for 64 bytes on both sides. False when malformed. */
static bool run_special(struct stream *s)
{
    const uint8_t *p = s->in;
    uint8_t *const out = s->out;
    const uint32_t tag = *p++;
    int64_t length = (tag >> 2) + 1;
    if ((tag & 3) == 0) {
        if (length > 60) {
            const int64_t extra = length - 60;
            length = (int64_t)(gar_load_u32(p) & (UINT32_MAX >> (32 - 8 * extra))) + 1;
            p += extra;
        }
        if (length > s->in_end - p || length > s->out_end - out) {
            return false;
        }
        memcpy(out, p, (size_t)length);
        s->in = p + length;
        s->out += length;
        return true;
    }
    int64_t offset = gar_load_u32(p);
    if ((tag & 3) == 1) {
        length = 4 + ((tag >> 2) & 7);
        offset = (int64_t)((tag >> 5) << 8) | *p;
        p += 1;
    } else if ((tag & 3) == 2) {
        offset &= 0xffff;
        p += 2;
    } else {
        p += 4;
    }
    if (offset == 0 || offset > out - s->out_start) {
        return false;
    }
    if (offset >= 16) {
        for (int64_t i = 0; i < length; i += 16) {
            move_16(out + i, out + i - offset);
        }
    } else {
        copy_pattern(out, offset, length);
    }
    s->in = p;
    s->out += length;
    return true;
}

/* Runs while there is room on both sides. False when malformed. Whether an element is a literal or a copy is branched on, as
 * one of them mostly dominates; the two common kinds of copy come in no order that a processor could guess, so their differences
 * are computed. */
GAR_INLINE bool run_fast(struct stream *s)
{
    const uint8_t *in = s->in;
    uint8_t *out = s->out;
    const uint8_t *const out_start = s->out_start;
    const uint8_t *const in_stop = s->in_end - INPUT_SLACK;
    uint8_t *const out_stop = s->out_end - COPY_BYTES_MAX;
    while (in <= in_stop && out <= out_stop) {
        const uint32_t tag = *in;
        const uint32_t kind = tag & 3;
        if (kind == 0 && tag < 60 << 2) {
            const int64_t length = (tag >> 2) + 1;
            move_16(out, in + 1);
            if (length > 16) {
                move_16(out + 16, in + 17);
                if (length > 32) {
                    move_16(out + 32, in + 33);
                    move_16(out + 48, in + 49);
                }
            }
            in += length + 1;
            out += length;
            continue;
        }
        const uint32_t next = gar_load_u32(in + 1);
        const uint32_t is_short =
            0 - (kind & 1); /* all bits: an offset of one byte and three bits */
        const uint32_t length = ((tag >> 2) & (63 ^ (56 & is_short))) + 1 + (3 & is_short);
        const uint32_t offset =
            (next & 0xff) | (next & 0xff00 & ~is_short) | ((tag << 3) & 0x700 & is_short);
        if (GAR_UNLIKELY(offset < 16 || kind == 0 || kind == 3 || offset > out - out_start)) {
            s->in = in;
            s->out = out;
            if (!run_special(s)) {
                return false;
            }
            in = s->in;
            out = s->out;
            continue;
        }
        const uint8_t *const from = out - offset;
        move_16(out, from);
        if (GAR_UNLIKELY(length > 16)) {
            move_16(out + 16, from + 16);
            if (length > 32) {
                move_16(out + 32, from + 32);
                move_16(out + 48, from + 48);
            }
        }
        in += kind + 1;
        out += length;
    }
    s->in = in;
    s->out = out;
    return true;
}

/* One element at a time with every border checked. */
static bool run_careful(struct stream *s)
{
    while (s->in < s->in_end) {
        const uint32_t tag = *s->in++;
        const int64_t there = s->in_end - s->in;
        int64_t length = (tag >> 2) + 1;
        if ((tag & 3) == 0) {
            if (length > 60) {
                const int64_t extra = length - 60;
                uint32_t value = 0;
                if (extra > there) {
                    return false;
                }
                memcpy(&value, s->in, (size_t)extra);
                s->in += extra;
                length = (int64_t)value + 1;
            }
            if (length > s->in_end - s->in || length > s->out_end - s->out) {
                return false;
            }
            memcpy(s->out, s->in, (size_t)length);
            s->in += length;
            s->out += length;
            continue;
        }
        static const int32_t sizes[4] = {0, 1, 2, 4};
        const int32_t size = sizes[tag & 3];
        uint32_t offset = 0;
        if (size > there) {
            return false;
        }
        memcpy(&offset, s->in, (size_t)size);
        s->in += size;
        if ((tag & 3) == 1) {
            length = 4 + ((tag >> 2) & 7);
            offset |= (tag >> 5) << 8;
        }
        if (offset == 0 || offset > s->out - s->out_start || length > s->out_end - s->out) {
            return false;
        }
        for (int64_t i = 0; i < length; i++) {
            s->out[i] = s->out[i - (int64_t)offset];
        }
        s->out += length;
    }
    return s->out == s->out_end;
}

static bool run_portable(struct stream *s)
{
    return run_fast(s);
}

#if defined(__x86_64__)
GAR_TARGET("avx2,bmi2") static bool run_avx2(struct stream *s)
{
    return run_fast(s);
}
#endif

bool gar_snappy_decode(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes)
{
    struct stream s = {.in = in,
                       .in_end = in + in_bytes,
                       .out = out,
                       .out_start = out,
                       .out_end = out + out_bytes};
    uint64_t length = 0;
    if (!read_length(&s, &length) || (int64_t)length != out_bytes) {
        return false;
    }
    if (in_bytes >= INPUT_SLACK && out_bytes >= COPY_BYTES_MAX) {
        bool (*run)(struct stream *) = run_portable;
#if defined(__x86_64__)
        if (gar_cpu_isa() >= GAR_ISA_AVX2) {
            run = run_avx2;
        }
#endif
        if (!run(&s)) {
            return false;
        }
    }
    return run_careful(&s);
}
