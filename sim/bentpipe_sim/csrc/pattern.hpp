// The payload pattern, as in pattern.py: octet `offset` is octet offset % 8 of mix64(key * GOLDEN + offset / 8).
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

// Calls f(position, octets, n) for runs of up to 8 octets of the pattern that cover [offset, offset + length).
template <class F> inline bool pattern_runs(uint32_t key, uint64_t offset, uint64_t length, F f) {
    const uint64_t base = uint64_t(key) * GOLDEN;
    uint64_t done = 0;
    while (done < length) {
        const uint64_t at = offset + done;
        const unsigned skip = at & 7;
        uint64_t n = 8 - skip;
        if (n > length - done) n = length - done;
        const uint64_t word = mix64(base + (at >> 3)) >> (8 * skip);
        if (!f(done, word, unsigned(n))) return false;
        done += n;
    }
    return true;
}

inline void pattern_fill(uint8_t* to, uint32_t key, uint64_t offset, uint64_t length) {
    pattern_runs(key, offset, length, [&](uint64_t at, uint64_t word, unsigned n) {
        if (n == 8) std::memcpy(to + at, &word, 8);
        else std::memcpy(to + at, &word, n);
        return true;
    });
}

inline bool pattern_equal(const uint8_t* data, uint32_t key, uint64_t offset, uint64_t length) {
    return pattern_runs(key, offset, length, [&](uint64_t at, uint64_t word, unsigned n) {
        return std::memcmp(data + at, &word, n) == 0;
    });
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
