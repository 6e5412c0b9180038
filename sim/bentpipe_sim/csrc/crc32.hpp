// CRC-32 of AAL5 over 48 octets, from a register on: what bentpipe_hdl.aal5.crc32.CrcTables.cell is in gates. By
// multiplication without carries where the processor has it, by tables elsewhere.
#pragma once
#include "wide.hpp"
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace crc32 {

constexpr uint32_t POLYNOMIAL = 0x04C11DB7;

struct Tables {
    uint32_t table[16][256];  // table[k]: what an octet adds when k others follow it
    constexpr Tables() : table{} {
        for (uint32_t octet = 0; octet < 256; ++octet) {
            uint32_t crc = octet << 24;
            for (int k = 0; k < 8; ++k) crc = crc << 1 ^ (crc >> 31 ? POLYNOMIAL : 0);
            table[0][octet] = crc;
        }
        for (int k = 1; k < 16; ++k)
            for (uint32_t octet = 0; octet < 256; ++octet) {
                const uint32_t crc = table[k - 1][octet];
                table[k][octet] = crc << 8 ^ table[0][crc >> 24];
            }
    }
};

[[gnu::always_inline]] inline uint32_t by_tables(const W<6>& octets, uint32_t start) {
    static constexpr Tables TABLES;
    uint32_t crc = start;
    for (int step = 0; step < 6; step += 2) {
        const uint64_t first = octets.w[step] ^ __builtin_bswap32(crc), second = octets.w[step + 1];
        crc = 0;
        for (int k = 0; k < 8; ++k)
            crc ^= TABLES.table[15 - k][first >> 8 * k & 255] ^ TABLES.table[7 - k][second >> 8 * k & 255];
    }
    return crc;
}

#if defined(__x86_64__)
constexpr uint64_t power(int n) {  // x^n modulo the polynomial
    uint32_t rest = 1;
    for (int k = 0; k < n; ++k) rest = rest << 1 ^ (rest >> 31 ? POLYNOMIAL : 0);
    return rest;
}

constexpr uint64_t quotient() {  // x^64 divided by the polynomial, 33 bits
    uint64_t found = 0, rest = 0;
    for (int k = 0; k <= 64; ++k) {
        rest = rest << 1 | (k == 0);
        found <<= 1;
        if (rest >> 32 & 1) {
            rest ^= 0x100000000ull | POLYNOMIAL;
            found |= 1;
        }
    }
    return found;
}

// Instructions that not every processor has, said so that the compiler needn't know them: a function for such processors
// alone would be called, and what is in registers be saved. Those of AVX keep what they multiply; factors stay in memory.
struct alignas(16) Factors {
    uint64_t low, high;
};
template <int Halves>
inline __m128i multiplied(__m128i a, const Factors& by) {
    __m128i product;
    asm("vpclmulqdq %3, %2, %1, %0" : "=x"(product) : "x"(a), "m"(by), "i"(Halves));
    return product;
}
inline __m128i shuffled(__m128i octets, __m128i order) {
    asm("pshufb %1, %0" : "+x"(octets) : "xm"(order));
    return octets;
}

// Each 64 octets' bits times what x to the number of bits behind them leaves, all added: 96 bits. The upper 32 are folded
// into the lower 64, whose rest is found with the quotient (Barrett).
inline uint32_t by_multiplication(const W<6>& octets, uint32_t start) {
    static constexpr Factors A{power(288), power(352)}, B{power(160), power(224)}, C{power(32), power(96)},
        FOLD{power(64), quotient()}, WHOLE{0x100000000ull | POLYNOMIAL, 0};
    const __m128i reverse = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i* at = reinterpret_cast<const __m128i*>(octets.w);
    const __m128i begin = _mm_cvtsi32_si128(int(__builtin_bswap32(start)));
    const __m128i a = shuffled(_mm_xor_si128(begin, _mm_loadu_si128(at)), reverse);
    const __m128i b = shuffled(_mm_loadu_si128(at + 1), reverse);
    const __m128i c = shuffled(_mm_loadu_si128(at + 2), reverse);
    __m128i sum = _mm_xor_si128(multiplied<0x11>(a, A), multiplied<0x00>(a, A));
    sum = _mm_xor_si128(sum, _mm_xor_si128(multiplied<0x11>(b, B), multiplied<0x00>(b, B)));
    sum = _mm_xor_si128(sum, _mm_xor_si128(multiplied<0x11>(c, C), multiplied<0x00>(c, C)));
    sum = _mm_xor_si128(sum, multiplied<0x01>(sum, FOLD));
    const __m128i times = multiplied<0x10>(sum, FOLD);  // its upper half: the lower 32 bits of what is divided don't get there
    const __m128i product = multiplied<0x01>(times, WHOLE);
    return uint32_t(_mm_cvtsi128_si32(_mm_xor_si128(sum, product)));
}

static const bool MULTIPLIES = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx");
#endif

}  // namespace crc32

inline uint32_t crc32_cell(const W<6>& octets, uint32_t start) {
#if defined(__x86_64__)
    if (__builtin_expect(crc32::MULTIPLIES, 1)) return crc32::by_multiplication(octets, start);
#endif
    return crc32::by_tables(octets, start);
}
