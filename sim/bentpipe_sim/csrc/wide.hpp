// Numbers of more than 64 bits, as generated nodes use them: the lowest word first, zeros above the number's own bits.
#pragma once
#include <cstdint>
#include <cstring>

// The compiler leaves loops of known length as they are at -O2 where that is shorter
#define BENTPIPE_UNROLLED _Pragma("GCC unroll 32")

template <int N>
struct W {
    uint64_t w[N];
};

struct ReversedOctets {
    uint8_t of[256]{};
    constexpr ReversedOctets() {
        for (int k = 0; k < 256; ++k)
            for (int bit = 0; bit < 8; ++bit) of[k] |= uint8_t((k >> bit & 1) << (7 - bit));
    }
    constexpr uint8_t operator[](size_t k) const { return of[k]; }
};
static constexpr ReversedOctets reversed_octet;

// To where nothing of what is moved lies: 16 octets in a register, all of them read first.
template <int N>
inline void move(W<N>& to, const W<N>& from) {
    typedef long long Pair __attribute__((vector_size(16), may_alias, aligned(8)));
    Pair pairs[N / 2];
    BENTPIPE_UNROLLED
    for (int k = 0; k < N / 2; ++k) pairs[k] = *(const Pair*)(from.w + 2 * k);
    BENTPIPE_UNROLLED
    for (int k = 0; k < N / 2; ++k) *(Pair*)(to.w + 2 * k) = pairs[k];
    if constexpr (N % 2) to.w[N - 1] = from.w[N - 1];
}
// A value at a known place behind a row's beginning, that row so many octets behind the first. The row's place is worked out
// once for all of its fields, as the compiler can't join it with where the array is.
template <class T>
inline const T& in_row(const void* first, size_t row, size_t place) {
    const char* at = static_cast<const char*>(first) + row;
    asm("" : "+r"(at));
    return *reinterpret_cast<const T*>(at + place);
}

template <int N>
inline W<N> operator&(const W<N>& a, const W<N>& b) {
    W<N> r;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) r.w[k] = a.w[k] & b.w[k];
    return r;
}
template <int N>
inline W<N> operator|(const W<N>& a, const W<N>& b) {
    W<N> r;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) r.w[k] = a.w[k] | b.w[k];
    return r;
}
template <int N>
inline W<N> operator^(const W<N>& a, const W<N>& b) {
    W<N> r;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) r.w[k] = a.w[k] ^ b.w[k];
    return r;
}
template <int N>
inline W<N> operator~(const W<N>& a) {
    W<N> r;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) r.w[k] = ~a.w[k];
    return r;
}
template <int N>
inline bool operator==(const W<N>& a, const W<N>& b) {
    uint64_t apart = 0;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) apart |= a.w[k] ^ b.w[k];
    return !apart;
}
template <int N>
inline bool less(const W<N>& a, const W<N>& b) {
    BENTPIPE_UNROLLED
    for (int k = N - 1; k > 0; --k)
        if (a.w[k] != b.w[k]) return a.w[k] < b.w[k];
    return a.w[0] < b.w[0];
}
inline bool parity(uint64_t a) { return __builtin_parityll(a); }
template <int N>
inline bool parity(const W<N>& a) {
    uint64_t sum = 0;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) sum ^= a.w[k];
    return parity(sum);
}

constexpr uint64_t ones(int bits) { return bits < 64 ? (1ull << (bits & 63)) - 1 : ~0ull; }
inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
template <int N>
inline uint64_t least(const W<N>& a, uint64_t b) {
    uint64_t above = 0;
    for (int k = 1; k < N; ++k) above |= a.w[k];
    return above ? b : least(a.w[0], b);
}
// A signed number of so many bits.
template <int Bits>
inline int64_t extend(uint64_t a) {
    return int64_t(a << (64 - Bits)) >> (64 - Bits);
}

// The lowest so many bits of a value.
template <int Bits, int N>
inline W<N> trim(W<N> a) {
    if (Bits % 64) a.w[N - 1] &= ones(Bits % 64);
    return a;
}
template <int Bits, int N>
inline W<(Bits + 63) / 64> resize(const W<N>& a) {
    W<(Bits + 63) / 64> r;
    BENTPIPE_UNROLLED
    for (int k = 0; k < (Bits + 63) / 64; ++k) r.w[k] = k < N ? a.w[k] : 0;
    return trim<Bits>(r);
}
// Up to 64 bits from a place on that is known, and from one that isn't.
template <int Low, int Bits, int N>
inline uint64_t bits(const W<N>& a) {
    constexpr int word = Low / 64, shift = Low % 64;
    uint64_t r = a.w[word] >> shift;
    if constexpr (shift + Bits > 64) r |= a.w[word + 1] << (64 - shift);
    return r & ones(Bits);
}
template <int Bits, int N>
inline uint64_t pick(const W<N>& a, uint64_t low) {
    const uint64_t word = low / 64, shift = low % 64;
    uint64_t r = word < N ? a.w[word] >> shift : 0;
    if (shift && word + 1 < N) r |= a.w[word + 1] << (64 - shift);
    return r & ones(Bits);
}
template <int N>
inline W<N> shr(const W<N>& a, uint64_t by) {
    W<N> r;
    const uint64_t words = by / 64, shift = by % 64;
    BENTPIPE_UNROLLED
    for (uint64_t k = 0; k < N; ++k) {
        uint64_t x = k + words < N ? a.w[k + words] >> shift : 0;
        if (shift && k + words + 1 < N) x |= a.w[k + words + 1] << (64 - shift);
        r.w[k] = x;
    }
    return r;
}
template <int N>
inline W<N> shl(const W<N>& a, uint64_t by) {
    W<N> r;
    const uint64_t words = by / 64, shift = by % 64;
    BENTPIPE_UNROLLED
    for (uint64_t k = 0; k < N; ++k) {
        uint64_t x = k >= words ? a.w[k - words] << shift : 0;
        if (shift && k >= words + 1) x |= a.w[k - words - 1] >> (64 - shift);
        r.w[k] = x;
    }
    return r;
}
// The value of a signed number of so many bits.
template <int Bits, int N>
inline W<N> sar(const W<N>& a, uint64_t by) {
    const bool negative = a.w[(Bits - 1) / 64] >> (Bits - 1) % 64 & 1;
    return negative ? trim<Bits>(~shr(trim<Bits>(~a), by)) : shr(a, by);
}
// More than 64 bits from a place on that is known.
template <int Low, int Bits, int N>
inline W<(Bits + 63) / 64> slice(const W<N>& a) {
    return resize<Bits>(shr(a, Low));
}
// The same of what stands in memory, from an octet on.
template <int Octet, int Bits, int N>
inline uint64_t octet_bits(const W<N>& a) {
    if constexpr (Octet + 8 > 8 * N) {
        return bits<8 * Octet, Bits>(a);
    } else {
        uint64_t r;
        std::memcpy(&r, reinterpret_cast<const char*>(a.w) + Octet, 8);
        return r & ones(Bits);
    }
}
// Each octet's bits the other way round, as a line sends them; of a number so turned, up to 64 bits from a known place on.
inline uint64_t turned(uint64_t a) {
    a = (a >> 1 & 0x5555555555555555u) | (a & 0x5555555555555555u) << 1;
    a = (a >> 2 & 0x3333333333333333u) | (a & 0x3333333333333333u) << 2;
    return (a >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (a & 0x0F0F0F0F0F0F0F0Fu) << 4;
}
template <int Low, int Bits>
inline uint64_t turned_bits(uint64_t a) {
    return turned(a) >> Low & ones(Bits);
}
template <int Low, int Bits, int N>
inline uint64_t turned_bits(const W<N>& a) {
    constexpr int word = Low / 64, shift = Low % 64;
    uint64_t r = turned(a.w[word]) >> shift;
    if constexpr (shift + Bits > 64) r |= turned(a.w[word + 1]) << (64 - shift);
    return r & ones(Bits);
}
// From an octet on that isn't known, the last that it may be being `Most`; what is behind the number's end is 0.
template <int Bits, int Most, int N>
inline W<(Bits + 63) / 64> octets(const W<N>& a, uint64_t octet) {
    constexpr int words = (Bits + 63) / 64, needed = (Most + 8 * words + 7) / 8;
    W<words> r;
    if (needed <= N || __builtin_expect(octet + 8 * words <= 8 * N, 1)) {
        std::memcpy(&r, reinterpret_cast<const char*>(a.w) + octet, sizeof r);
    } else if constexpr (needed > N) {
        W<needed> more{};
        std::memcpy(more.w, a.w, sizeof a.w);
        std::memcpy(&r, reinterpret_cast<const char*>(more.w) + octet, sizeof r);
    }
    return trim<Bits>(r);
}
template <int N>
inline W<N> add(const W<N>& a, const W<N>& b) {
    W<N> r;
    unsigned __int128 sum = 0;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) {
        sum += (unsigned __int128)a.w[k] + b.w[k];
        r.w[k] = uint64_t(sum);
        sum >>= 64;
    }
    return r;
}
template <int N>
inline W<N> sub(const W<N>& a, const W<N>& b) {
    W<N> r;
    uint64_t borrow = 0;
    BENTPIPE_UNROLLED
    for (int k = 0; k < N; ++k) {
        const unsigned __int128 rest = (unsigned __int128)a.w[k] - b.w[k] - borrow;
        r.w[k] = uint64_t(rest);
        borrow = uint64_t(rest >> 64) & 1;
    }
    return r;
}
template <int N>
inline W<N> mul(const W<N>& a, const W<N>& b) {
    W<N> r{};
    for (int i = 0; i < N; ++i) {
        unsigned __int128 sum = 0;
        for (int j = 0; i + j < N; ++j) {
            sum += (unsigned __int128)a.w[i] * b.w[j] + r.w[i + j];
            r.w[i + j] = uint64_t(sum);
            sum >>= 64;
        }
    }
    return r;
}

// Division that rounds down, as Amaranth's; by 0 it gives 0, and leaves 0.
template <int Bits, bool Signed>
inline uint64_t divided(uint64_t a, uint64_t b, bool remainder) {
    if (!b) return 0;
    if constexpr (!Signed) return remainder ? a % b : a / b;
    const __int128 x = extend<Bits>(a), y = extend<Bits>(b);
    __int128 quotient = x / y, rest = x % y;
    if (rest && (rest < 0) != (y < 0)) quotient -= 1, rest += y;
    return uint64_t(remainder ? rest : quotient) & ones(Bits);
}
template <int Bits, bool Signed, int N>
inline W<N> divided(W<N> a, W<N> b, bool remainder) {
    const auto negative = [](const W<N>& x) { return Signed && (x.w[(Bits - 1) / 64] >> (Bits - 1) % 64 & 1); };
    const W<N> zero{};
    if (b == zero) return zero;
    const bool below = negative(a), by_below = negative(b);
    if (below) a = trim<Bits>(sub(zero, a));
    const W<N> by = by_below ? trim<Bits>(sub(zero, b)) : b;
    W<N> quotient{}, rest{};
    for (int k = Bits - 1; k >= 0; --k) {
        const bool carry = rest.w[N - 1] >> 63;
        rest = shl(rest, 1);
        rest.w[0] |= a.w[k / 64] >> k % 64 & 1;
        if (carry || !less(rest, by)) {
            rest = sub(rest, by);
            quotient.w[k / 64] |= 1ull << k % 64;
        }
    }
    const bool exact = rest == zero;
    if (below != by_below) quotient = trim<Bits>(exact ? sub(zero, quotient) : ~quotient);  // -q, or -q - 1
    if (!remainder) return quotient;
    if (!exact && below != by_below) rest = sub(by, rest);
    return by_below ? trim<Bits>(sub(zero, rest)) : rest;
}
