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

// The pattern in whole words between a first and a last part: both functions below walk it alike. Each word is the one
// before and GOLDEN: compilers make several at once.
template <class Word, class Part>
inline void pattern_walk(uint32_t key, uint64_t offset, uint64_t length, Word whole, Part part) {
    uint64_t word = (mix64(key) + (offset >> 3)) * GOLDEN, done = 0;
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

inline void pattern_fill(uint8_t* to, uint32_t key, uint64_t offset, uint64_t length) {
    const auto part = [&](uint64_t at, uint64_t word, unsigned n) { std::memcpy(to + at, &word, n); };
    const auto whole = [&](uint64_t at, uint64_t word) { std::memcpy(to + at, &word, 8); };
    pattern_walk(key, offset, length, whole, part);
}

inline bool pattern_equal(const uint8_t* data, uint32_t key, uint64_t offset, uint64_t length) {
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

// Ones'-complement sum of RFC 1071 over octets in network order, folded to 16 bits, not complemented.
inline uint32_t internet_sum(const uint8_t* data, size_t length, uint32_t start = 0) {
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word;
        std::memcpy(&word, data + i, 8);
        sum += (word & 0xFFFFFFFFu) + (word >> 32);
    }
    for (; i + 2 <= length; i += 2) {
        uint16_t word;
        std::memcpy(&word, data + i, 2);
        sum += word;
    }
    if (i < length) sum += data[i];
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    const uint32_t swapped = uint32_t(((sum & 0xFF) << 8) | (sum >> 8)) + start;
    return (swapped & 0xFFFF) + (swapped >> 16);
}

}  // namespace bp
