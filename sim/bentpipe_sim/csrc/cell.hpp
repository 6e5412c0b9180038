// A cell: the fields of its header, and the form in which it is on a wire.
#pragma once
#include <cstdint>

#include "wide.hpp"

namespace bp {

// Fields of a header's four octets without the HEC.
struct CellHead {
    static constexpr uint32_t OAM = 8;  // a header's bits: it is no user cell
    static bool user(uint32_t header) { return !(header & OAM); }
    static bool last(uint32_t header) { return user(header) && header & 2; }  // of a PDU of AAL5
    static bool tagged(uint32_t header) { return header & 1; }  // CLP = 1
    static bool rm(uint32_t header) { return (header >> 1 & 7) == 6; }  // resource management
    // Matches these VPI and VCI (header >> 4), in the bits that count; with NOT_RM among them, of no RM cell.
    static constexpr uint32_t NOT_RM = 1u << 31;
    static bool names(uint32_t header, uint32_t key, uint32_t mask) {
        return ((header >> 4 ^ key) & mask) == 0 && !(mask & NOT_RM && rm(header));
    }
};

using Payload = W<6>;  // 48 octets

// 64 octets, a cache line. Payload first, then the header, as in the wide datapath; all three as in a node's ports (model.h).
struct alignas(64) CellInFlight {
    Payload payload;
    uint32_t header, hec_error;
    uint64_t tick;  // at which it arrives

    static constexpr size_t OCTETS = 56;  // all but the tick

    bool good(uint32_t key, uint32_t mask) const { return !hec_error && CellHead::names(header, key, mask); }
};
static_assert(sizeof(CellInFlight) == 64, "a cell on its way is a cache line");

}  // namespace bp
