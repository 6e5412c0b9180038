// The payload pattern, as in pattern.py: octet `offset` is octet offset % 8 of (mix64(key) + offset / 8) * GOLDEN.
#pragma once
#include <cstdint>
#include <cstring>

namespace bp {

constexpr uint64_t GOLDEN = 0x9E3779B97F4A7C15ull;

inline uint64_t mix64(uint64_t z) {
    z += GOLDEN;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Word k of a key's pattern is this and k * GOLDEN.
inline uint64_t pattern_base(uint32_t key) { return mix64(key) * GOLDEN; }

// The pattern in whole words between a first and a last part: both functions below walk it alike. Each word is the one
// before and GOLDEN: compilers make several at once.
template <class Word, class Part>
[[gnu::always_inline]] inline void pattern_walk(uint32_t key, uint64_t offset, uint64_t length, Word whole, Part part) {
    uint64_t word = pattern_base(key) + (offset >> 3) * GOLDEN, done = 0;
    const unsigned skip = offset & 7;
    if (skip) {
        done = length < 8 - skip ? length : 8 - skip;
        part(uint64_t(0), word >> (8 * skip), unsigned(done));
        word += GOLDEN;
    }
    const uint64_t words = (length - done) >> 3;
#pragma GCC unroll 8
    for (uint64_t k = 0; k < words; ++k, word += GOLDEN) whole(done + 8 * k, word);
    done += 8 * words;
    part(done, word, unsigned(length - done));
}

namespace generic {

[[gnu::always_inline]] inline void pattern_fill(uint8_t* to, uint32_t key, uint64_t offset, uint64_t length) {
    const auto part = [&](uint64_t at, uint64_t word, unsigned n) { std::memcpy(to + at, &word, n); };
    const auto whole = [&](uint64_t at, uint64_t word) { std::memcpy(to + at, &word, 8); };
    pattern_walk(key, offset, length, whole, part);
}

[[gnu::always_inline]] inline bool pattern_equal(const uint8_t* data, uint32_t key, uint64_t offset, uint64_t length) {
    uint64_t differ = 0;
    const auto part = [&](uint64_t at, uint64_t word, unsigned n) { differ |= std::memcmp(data + at, &word, n) != 0; };
    const auto whole = [&](uint64_t at, uint64_t word) {
        uint64_t there;
        std::memcpy(&there, data + at, 8);
        differ |= there ^ word;
    };
    pattern_walk(key, offset, length, whole, part);
    return differ == 0;
}

// The sum of 32-bit halves, each 16-bit word with its first octet lowest. An SDU has fewer than 2^16 octets, so it does not wrap.
[[gnu::always_inline]] inline uint64_t halves_of(const uint8_t* data, size_t length) {
    uint64_t low = 0, high = 0;
#pragma GCC unroll 4
    for (size_t k = 0; k < length / 8; ++k) {
        uint64_t word;
        std::memcpy(&word, data + 8 * k, 8);
        low += word & 0xFFFFFFFFu;
        high += word >> 32;
    }
    return low + high;
}

}  // namespace generic

// Functions that read or write a whole SDU, compiled a second time for processors that have vectors of 32 octets.
#if defined(__x86_64__) && defined(__GNUC__)
namespace avx2 {

[[gnu::target("avx2"), gnu::noinline]] inline void pattern_fill(uint8_t* to, uint32_t key, uint64_t offset, uint64_t length) {
    generic::pattern_fill(to, key, offset, length);
}
[[gnu::target("avx2"), gnu::noinline]] inline bool pattern_equal(const uint8_t* data, uint32_t key, uint64_t offset, uint64_t length) {
    return generic::pattern_equal(data, key, offset, length);
}
[[gnu::target("avx2"), gnu::noinline]] inline uint64_t halves_of(const uint8_t* data, size_t length) {
    return generic::halves_of(data, length);
}

}  // namespace avx2
inline const bool HAS_AVX2 = __builtin_cpu_supports("avx2");
#else
constexpr bool HAS_AVX2 = false;
namespace avx2 = generic;
#endif

inline void pattern_fill(uint8_t* to, uint32_t key, uint64_t offset, uint64_t length) {
    if (HAS_AVX2) avx2::pattern_fill(to, key, offset, length);
    else generic::pattern_fill(to, key, offset, length);
}
inline bool pattern_equal(const uint8_t* data, uint32_t key, uint64_t offset, uint64_t length) {
    return HAS_AVX2 ? avx2::pattern_equal(data, key, offset, length) : generic::pattern_equal(data, key, offset, length);
}
inline uint64_t halves_of(const uint8_t* data, size_t length) {
    return HAS_AVX2 ? avx2::halves_of(data, length) : generic::halves_of(data, length);
}

// Cells of the pattern, 48 octets from an offset on; `base` is the key's. Seven whole words have them, wherever they begin: up
// to 7 octets before a cell, and up to 8 behind it, are written, or read, too.
constexpr unsigned AROUND = 8;

inline void pattern_fill_cell(uint8_t* to, uint64_t base, uint64_t offset) {
    uint64_t word = base + (offset >> 3) * GOLDEN;
    to -= offset & 7;
#pragma GCC unroll 7
    for (unsigned k = 0; k < 7; ++k, word += GOLDEN) std::memcpy(to + 8 * k, &word, 8);
}

inline bool pattern_equal_cell(const uint8_t* data, uint64_t base, uint64_t offset) {
    uint64_t word = base + (offset >> 3) * GOLDEN, differ = 0;
    const uint64_t first_mask = ~uint64_t(0) << 8 * (offset & 7);  // of the first word; the last one has the others
    data -= offset & 7;
#pragma GCC unroll 7
    for (unsigned k = 0; k < 7; ++k, word += GOLDEN) {
        uint64_t there;
        std::memcpy(&there, data + 8 * k, 8);
        differ |= (there ^ word) & (k == 0 ? first_mask : k == 6 ? ~first_mask : ~uint64_t(0));
    }
    return differ == 0;
}

// Ones'-complement sums of RFC 1071, of 16-bit words that have their first octet lowest, and folded to 16 bits. Octets that
// begin at an odd place count swapped.
inline uint32_t folded(uint64_t sum) {
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    return uint32_t(sum);
}
inline uint32_t swapped(uint32_t sum) { return (sum & 0xFF) << 8 | sum >> 8; }

inline uint32_t sum_of(const uint8_t* data, size_t length) {
    uint64_t sum = halves_of(data, length);
    size_t i = length / 8 * 8;
    for (; i + 2 <= length; i += 2) {
        uint16_t word;
        std::memcpy(&word, data + i, 2);
        sum += word;
    }
    if (i < length) sum += data[i];
    return folded(sum);
}

inline uint32_t pattern_sum(uint32_t key, uint64_t offset, uint64_t length) {
    uint64_t first = 0, rest = 0, begins = 0;  // of the first part, and of what begins behind it
    const auto both = [](uint64_t word) { return (word & 0xFFFFFFFFu) + (word >> 32); };
    const auto part = [&](uint64_t at, uint64_t word, unsigned n) {
        const uint64_t there = both(n < 8 ? word & ((uint64_t(1) << 8 * n) - 1) : word);
        (at ? rest : first) += there;
        if (!at) begins = n;
    };
    const auto whole = [&](uint64_t, uint64_t word) { rest += both(word); };
    pattern_walk(key, offset, length, whole, part);
    return folded(uint64_t(folded(first)) + (begins & 1 ? swapped(folded(rest)) : folded(rest)));
}

// The sum of octets in network order, not complemented.
inline uint32_t internet_sum(const uint8_t* data, size_t length) { return swapped(sum_of(data, length)); }

}  // namespace bp
