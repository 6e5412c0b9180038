// Shifts of wide values to the right, quick where they are by whole octets.
#pragma once

#include <cstring>

#include "verilated.h"

static inline WDataOutP bentpipe_shiftr(int obits, int lbits, int rbits, WDataOutP owp, WDataInP lwp, IData rd) {
    const IData octets = rd >> 3, size = IData(VL_WORDS_I(obits)) * 4;
    if ((rd & 7) != 0 || octets >= size || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
        return VL_SHIFTR_WWI(obits, lbits, rbits, owp, lwp, rd);
    }
    std::memmove(owp, reinterpret_cast<const char*>(&lwp[0]) + octets, size - octets);
    std::memset(reinterpret_cast<char*>(&owp[0]) + size - octets, 0, octets);
    return owp;
}
