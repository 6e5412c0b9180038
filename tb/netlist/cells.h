// Models of the cells of an ECP5 that yosys maps to. A bit is a byte, 0 or 1.
//
// DP16KD and MULT18X18D have no behaviour in yosys' cells_sim.v; theirs is as in Lattice's guides of memory (TN1264) and of
// multipliers (TN1267), as far as nodes use it. The rest is refused where the netlist is read.
#pragma once
#include <array>
#include <cstdint>

using Bit = uint8_t;

inline Bit lut4(unsigned init, Bit a, Bit b, Bit c, Bit d) { return init >> (a | b << 1 | c << 2 | d << 3) & 1; }
inline Bit lut2(unsigned init, Bit a, Bit b) { return init >> (a | b << 1) & 1; }
inline Bit pfumx(Bit alut, Bit blut, Bit c0) { return c0 ? alut : blut; }
inline Bit l6mux21(Bit d0, Bit d1, Bit sd) { return sd ? d1 : d0; }

// Half of a carry cell: its sum, and the carry out of it.
inline Bit ccu2c_sum(unsigned init, bool injects, Bit cin, Bit a, Bit b, Bit c, Bit d) {
    return lut4(init, a, b, c, d) ^ (injects ? 0 : cin);
}
inline Bit ccu2c_carry(unsigned init, bool injects, Bit cin, Bit a, Bit b, Bit c, Bit d) {
    return lut4(init, a, b, c, d) ? cin : injects ? 0 : lut2(init, a, b);
}

// The next state of a flip-flop: set or reset goes before the clock enable.
inline Bit trellis_ff(bool sets, Bit q, Bit lsr, Bit ce, Bit di) { return lsr ? sets : ce ? di : q; }

// 16 rows of 4 bits; what is read follows its address at once.
struct Dpr16x4 {
    uint8_t rows[16];
    void write(unsigned address, unsigned data, Bit enable) {
        if (enable) rows[address] = data;
    }
    unsigned read(unsigned address) const { return rows[address]; }
};

// A product of 18 x 18 bits, without registers.
inline uint64_t mult18x18d(unsigned a, unsigned b, Bit signed_a, Bit signed_b) {
    int64_t x = a, y = b;
    if (signed_a && a >> 17) x -= 1 << 18;
    if (signed_b && b >> 17) y -= 1 << 18;
    return static_cast<uint64_t>(x * y) & 0xFFFFFFFFF;
}

// 18 kbit with two ports, as 2,048 octets of 9 bits.
struct Dp16kd {
    enum Mode { NORMAL, WRITETHROUGH, READBEFOREWRITE };
    struct Pins {
        unsigned address, data;  // 14 and 18 bits
        Bit clock_enable, write_enable, is_chosen, reset;
    };
    struct Write {  // the bits that a port writes, of up to four octets
        unsigned first, count;
        uint16_t bits[4];
    };

    uint16_t octets[2048];
    unsigned width_a, width_b;
    Mode mode_a, mode_b;
    uint64_t out_a, out_b;

    static unsigned octets_of(unsigned width) { return width == 36 ? 4 : width == 18 ? 2 : 1; }
    static unsigned first_of(unsigned address, unsigned width) { return (address >> 3) & ~(octets_of(width) - 1); }

    // What a port reads. An octet that the other port writes in the same clock has no defined value: here the complement.
    uint64_t get(unsigned address, unsigned width, const Write &other) const {
        const unsigned first = first_of(address, width), count = octets_of(width);
        uint64_t word = 0;
        for (unsigned k = 0; k < count; ++k) {
            const unsigned in_other = first + k - other.first;
            word |= uint64_t(octets[first + k] ^ (in_other < other.count ? other.bits[in_other] : 0)) << 9 * k;
        }
        if (width >= 9) return word;
        return word >> (address & 7 & ~(width - 1)) & ((1u << width) - 1);
    }

    // Words of 18 and 36 bits are written by octets, which the lowest bits of the address enable.
    static Write write_of(const Pins &pins, unsigned width) {
        Write found{first_of(pins.address, width), octets_of(width), {}};
        if (!pins.clock_enable || !pins.is_chosen || !pins.write_enable) return found;
        const unsigned low = pins.address & 7 & ~(width - 1);
        for (unsigned k = 0; k < found.count; ++k)
            found.bits[k] = width < 9 ? ((1u << width) - 1) << low : width == 9 || pins.address >> k & 1 ? 0x1FF : 0;
        return found;
    }

    void put(const Write &write, const Pins &pins, unsigned width, uint64_t data) {
        if (width < 9) data <<= pins.address & 7 & ~(width - 1);
        for (unsigned k = 0; k < write.count; ++k) {
            uint16_t &octet = octets[write.first + k];
            octet = (octet & ~write.bits[k]) | (data >> 9 * k & write.bits[k]);
        }
    }

    void clock(const Pins &a, const Pins &b) {
        const bool is_pair = width_a == 36 || width_b == 36;  // A writes, B reads
        const bool is_on_a = a.clock_enable && a.is_chosen && !is_pair, is_on_b = b.clock_enable && b.is_chosen;
        const Write write_a = write_of(a, width_a), write_b = is_pair ? Write{} : write_of(b, width_b);
        const uint64_t old_a = get(a.address, width_a, write_b), old_b = get(b.address, width_b, write_a);
        put(write_a, a, width_a, width_a == 36 ? a.data | uint64_t(b.data) << 18 : a.data);
        if (!is_pair) put(write_b, b, width_b, b.data);
        if (is_on_a) out_a = output(out_a, old_a, a, width_a, mode_a);
        if (is_on_b && is_pair) {
            if (width_b == 36) out_a = old_b & 0x3FFFF;
            out_b = width_b == 36 ? old_b >> 18 : old_b;
        } else if (is_on_b) {
            out_b = output(out_b, old_b, b, width_b, mode_b);
        }
        // The reset of an output, with or without its clock enable
        if (width_b == 36 ? b.reset : a.reset) out_a = 0;
        if (b.reset) out_b = 0;
    }

    uint64_t output(uint64_t before, uint64_t old, const Pins &pins, unsigned width, Mode mode) const {
        if (!pins.write_enable || mode == READBEFOREWRITE) return old;
        return mode == WRITETHROUGH ? get(pins.address, width, Write{}) : before;
    }
};
