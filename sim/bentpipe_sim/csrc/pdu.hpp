// PDUs of a NIC, cell by cell. Octets of few VCs are memory that stays in the cache. Of many, those of the pattern are made when a
// cell is sent, and compared when it has come.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "archive.hpp"
#include "pattern.hpp"

namespace bp {

using Octets = std::vector<uint8_t>;

constexpr uint32_t CELL_OCTETS = 48;

inline size_t padded(uint32_t length) { return (size_t(length) + CELL_OCTETS - 1) / CELL_OCTETS * CELL_OCTETS; }
inline uint64_t cells_of(uint32_t length) { return (uint64_t(length) + 8 + CELL_OCTETS - 1) / CELL_OCTETS; }

// A PDU that is to be sent: octets, those of a pattern behind them, and zeros up to a whole cell.
struct Pdu {
    Octets head;
    uint32_t length;  // without zeros
    uint32_t key;
    uint64_t offset;  // of the first octet that is not in the head
    uint8_t uu;
    bool notify;

    uint32_t own() const { return std::min(length, uint32_t(head.size())); }
    // All of it, with zeros; `octets` are those that the head has.
    void make(Octets& to, const uint8_t* octets, uint32_t count) const {
        to.resize(padded(length));
        if (count) std::memcpy(to.data(), octets, count);
        pattern_fill(to.data() + count, key, offset, length - count);
        std::memset(to.data() + length, 0, to.size() - length);
    }
    void archive(Archive& a) { a(head, length, key, offset, uu, notify); }
};

// State for each cell of a VC that sends: its first PDU, and the octets of it that have been fetched.
struct alignas(64) Sending {
    const uint8_t* octets = nullptr;
    // Octet k, not one of the head's, is octet k + shift of the pattern with this base, which begins HEAD octets early: no sum is
    // negative.
    static constexpr uint64_t HEAD = 1 << 16;
    uint64_t base = 0, shift = 0;
    uint32_t head = 0, length = 0, fetched = 0;

    void look_at(const Pdu& pdu) {
        octets = pdu.head.data();
        base = pattern_base(pdu.key) - HEAD / 8 * GOLDEN;
        head = uint32_t(pdu.head.size());
        shift = pdu.offset + HEAD - head;
        length = pdu.length;
    }
    void look_at_none() { head = length = 0; }
    // The next 48 octets; if none is the PDU's, they stay as they are: the hardware pads. AROUND octets before and behind them
    // are free.
    [[gnu::always_inline]] void fetch(uint8_t* to) {
        const uint32_t at = fetched, end = at + CELL_OCTETS;
        fetched = end;
        if (end <= head) std::memcpy(to, octets + at, CELL_OCTETS);
        else if (at >= head && end <= length) pattern_fill_cell(to, base, at + shift);
        else if (at < length) fetch_parts(to, at);
    }

  private:
    [[gnu::noinline]] void fetch_parts(uint8_t* to, uint32_t at) const {
        pattern_fill_cell(to, base, at + shift);
        if (at < head) std::memcpy(to, octets + at, std::min(CELL_OCTETS, head - at));
        const uint32_t own = std::min(CELL_OCTETS, length - at);
        std::memset(to + own, 0, CELL_OCTETS - own);
    }
};

// A VC whose PDUs are checked here, when they have come or, of many VCs, as they come. A PDU's last two cells have octets that are
// none of the pattern; how many, the last one says: so cells that differ are kept until then.
struct alignas(64) Sink {
    uint64_t base = 0, offset = 0;  // the pattern, and where the PDU under way begins in it
    uint32_t key = 0;
    uint32_t cells = 0, alike = 0;  // of that PDU; those before the first that differs
    uint32_t reply_vc = 0, reply_length = 0, every = 0;
    uint64_t good = 0, bad = 0;
    uint8_t last[2][CELL_OCTETS]{};

    [[gnu::always_inline]] void take(uint32_t index, const uint8_t* octets) {  // with AROUND octets around them
        if (index == 0) cells = alike = 0;
        cells = index + 1;
        const bool equal = pattern_equal_cell(octets, base, offset + uint64_t(index) * CELL_OCTETS);
        if (__builtin_expect(equal && alike == index, 1)) alike = cells;
        else std::memcpy(last[index % 2], octets, CELL_OCTETS);
    }
    void end(uint32_t status, uint32_t length) {
        bool equal = status == 0 && alike + 2 >= cells;
        for (uint32_t k = alike; equal && k < cells && k * CELL_OCTETS < length; ++k) {
            uint8_t made[AROUND + CELL_OCTETS + AROUND];
            pattern_fill_cell(made + AROUND, base, offset + uint64_t(k) * CELL_OCTETS);
            const uint32_t own = std::min(CELL_OCTETS, length - k * CELL_OCTETS);
            equal = std::memcmp(made + AROUND, last[k % 2], own) == 0;
        }
        count(equal, length);
    }
    void end(uint32_t status, uint32_t length, const Octets& octets) {
        count(status == 0 && pattern_equal(octets.data(), key, offset, length), length);
    }
    void count(bool equal, uint32_t length) {
        ++(equal ? good : bad);
        offset += length;
    }
};

}  // namespace bp
