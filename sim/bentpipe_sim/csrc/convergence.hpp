// The work of a SONET line on each cell, which bentpipe_hdl has in gates: the HEC of a header and the syndrome of a received
// one (hec), and the scrambler x^43+1 of payloads (sonet.scrambler).
#pragma once
#include "wide.hpp"

namespace convergence {

struct Tables {
    uint8_t table[4][256];  // table[k]: the remainder of an octet with k others and the HEC behind it
    constexpr Tables() : table{} {
        for (uint32_t octet = 0; octet < 256; ++octet) {
            uint32_t rest = octet;
            for (int k = 0; k < 4; ++k) {
                for (int bit = 0; bit < 8; ++bit) rest = (rest << 1 & 0xFF) ^ (rest >> 7 ? 0x07 : 0);  // x^8 + x^2 + x + 1
                table[k][octet] = uint8_t(rest);
            }
        }
    }
};
constexpr Tables REMAINDERS;
constexpr uint32_t COSET = 0x55;

}  // namespace convergence

// HEC of a header as a number.
inline uint32_t header_hec(uint32_t header) {
    const auto& table = convergence::REMAINDERS.table;
    return table[3][header >> 24] ^ table[2][header >> 16 & 255] ^ table[1][header >> 8 & 255] ^ table[0][header & 255] ^
           convergence::COSET;
}

// Syndrome of a header with its HEC, the first octet lowest.
inline uint32_t header_syndrome(uint64_t header) {
    return header_hec(__builtin_bswap32(uint32_t(header))) ^ uint32_t(header >> 32 & 255);
}

// Of a payload behind these six octets: 64 bits at a time in the order of transmission. 43 of them hang on those before, the
// others on the first ones of their own.
inline W<6> scramble_cell(const W<6>& plain, uint64_t before) {
    W<6> sent;
    uint64_t last = __builtin_bswap64(before) >> 16;
    BENTPIPE_UNROLLED
    for (int k = 0; k < 6; ++k) {
        const uint64_t first = __builtin_bswap64(plain.w[k]) ^ last << 21;
        last = first ^ first >> 43;
        sent.w[k] = __builtin_bswap64(last);
    }
    return sent;
}

// The reverse.
inline W<6> descramble_cell(const W<6>& sent, uint64_t before) {
    W<6> plain;
    uint64_t last = __builtin_bswap64(before) >> 16;
    BENTPIPE_UNROLLED
    for (int k = 0; k < 6; ++k) {
        const uint64_t here = __builtin_bswap64(sent.w[k]);
        plain.w[k] = __builtin_bswap64(here ^ here >> 43 ^ last << 21);
        last = here;
    }
    return plain;
}
