// Impairments of whole PDUs at a host's interface before it sends them, as those of netem for packets: it loses some, sends some twice, and
// lets the next one of the VC overtake some.
#pragma once
#include <cstdint>

#include "archive.hpp"

namespace bp {

struct FrameImpairments {
    enum Fate : uint8_t { PASS, LOSE, DUPLICATE, REORDER };

    // Shares of 2^31: up to `lose` a draw means that the PDU is lost, up to `duplicate` that it is sent twice, up to `reorder` that it
    // waits for the next one of its VC.
    uint32_t lose = 0, duplicate = 0, reorder = 0, ever = 0;
    uint64_t wait = 0;   // ticks after which one that waits is sent all the same
    uint64_t state = 1;  // Marsaglia's xorshift64 (13, 7, 17)

    bool on() const { return reorder != 0; }
    Fate draw() {
        const uint64_t drawn = state >> 33;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return drawn < lose ? LOSE : drawn < duplicate ? DUPLICATE : drawn < reorder ? REORDER : PASS;
    }
};

}  // namespace bp
