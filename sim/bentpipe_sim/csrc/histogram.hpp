// Distribution of times: counts in bins that are 1/32 of their value wide, exact least, greatest and sum.
#pragma once
#include <algorithm>
#include <cstdint>

#include "attach.h"

namespace bp {

class Histogram {
  public:
    void add(int64_t ns) {
        const uint64_t value = uint64_t(std::max<int64_t>(ns, 0));
        ++bins_.bins[std::min(bin(value), size_t(BP_BINS) - 1)];
        bins_.least = bins_.count ? std::min(bins_.least, ns) : ns;
        bins_.most = bins_.count ? std::max(bins_.most, ns) : ns;
        ++bins_.count;
        bins_.sum += ns;
    }
    const bp_histogram& all() const { return bins_; }

  private:
    // 0 to 31 have a bin each; above, each octave has 32.
    static size_t bin(uint64_t value) {
        if (value < 32) return size_t(value);
        const int octave = 63 - __builtin_clzll(value);
        return size_t(octave - 4) * 32 + (value >> (octave - 5) & 31);
    }

    bp_histogram bins_{};
};

}  // namespace bp
