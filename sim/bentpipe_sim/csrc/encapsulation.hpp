// Encapsulations of attached ends, as SDUs of AAL5 and as cells: RFC 2684 with LLC, bridged Ethernet without FCS (5.2) and routed
// PDUs (5.1); cells of 53 octets with their HEC (I.432.1), reassembled here (I.363.5).
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "capture.hpp"

namespace bp {

using Octets = std::vector<uint8_t>;

constexpr uint8_t BRIDGED[10] = {0xAA, 0xAA, 3, 0, 0x80, 0xC2, 0, 7, 0, 0};
constexpr uint8_t ROUTED[6] = {0xAA, 0xAA, 3, 0, 0, 0};  // and an EtherType
constexpr size_t ETHERNET = 14, ADDRESSES = 12, TAG = 4, CELL = 53, PAYLOAD = 48;
constexpr uint16_t VLAN = 0x8100;  // the type of a customer's tag (802.1Q 9.6)

// The tag behind a frame's addresses: its type, and PCP, DEI and VID.
inline void put_tag(uint8_t* at, uint16_t type, uint16_t control) {
    at[0] = uint8_t(type >> 8);
    at[1] = uint8_t(type);
    at[2] = uint8_t(control >> 8);
    at[3] = uint8_t(control);
}
inline void add_tag(Octets& frame, uint16_t type, uint16_t control) {
    frame.insert(frame.begin() + ADDRESSES, TAG, 0);
    put_tag(frame.data() + ADDRESSES, type, control);
}
inline bool has_tag(const uint8_t* frame, size_t length) {
    return length >= ETHERNET + TAG && (frame[12] << 8 | frame[13]) == VLAN;
}
inline bool cut_tag(const uint8_t* frame, size_t length) {
    return length < ETHERNET + TAG && (frame[12] << 8 | frame[13]) == VLAN;
}
// The VID of a frame; 0: it has no tag, or one with a priority alone.
inline int32_t vlan_of(const uint8_t* frame, size_t length) {
    return has_tag(frame, length) ? (frame[14] << 8 | frame[15]) & 0xFFF : 0;
}

// The SDU of a frame, without its tag if so wanted; none if it is no frame.
inline bool bridged(const uint8_t* frame, size_t length, Octets& sdu, bool untagged = false) {
    if (length < ETHERNET) return false;
    const size_t behind = ADDRESSES + (untagged ? TAG : 0);
    sdu.resize(sizeof BRIDGED + ADDRESSES + length - behind);
    std::memcpy(sdu.data(), BRIDGED, sizeof BRIDGED);
    std::memcpy(sdu.data() + sizeof BRIDGED, frame, ADDRESSES);
    std::memcpy(sdu.data() + sizeof BRIDGED + ADDRESSES, frame + behind, length - behind);
    return true;
}

// The SDU of an IP packet, version 4 or 6; none if it is neither or isn't as long as it says.
inline bool routed(const uint8_t* packet, size_t length, Octets& sdu) {
    const unsigned version = length ? packet[0] >> 4 : 0;
    if (version == 4 ? length < 20 || size_t(packet[2] << 8 | packet[3]) != length
                     : version != 6 || length < 40 || size_t(packet[4] << 8 | packet[5]) + 40 != length)
        return false;
    sdu.resize(8 + length);
    std::memcpy(sdu.data(), ROUTED, sizeof ROUTED);
    sdu[6] = version == 4 ? 0x08 : 0x86;
    sdu[7] = version == 4 ? 0x00 : 0xDD;
    std::memcpy(sdu.data() + 8, packet, length);
    return true;
}

// Octets of an SDU before its frame, or packet; 0 if it has none.
inline size_t before_frame(const uint8_t* sdu, size_t length) {
    return length >= sizeof BRIDGED + ETHERNET && !std::memcmp(sdu, BRIDGED, 8) ? sizeof BRIDGED : 0;
}
inline size_t before_packet(const uint8_t* sdu, size_t length) {
    if (length < 8 + 20 || std::memcmp(sdu, ROUTED, sizeof ROUTED)) return 0;
    const unsigned type = unsigned(sdu[6] << 8 | sdu[7]), version = sdu[8] >> 4;
    return (type == 0x0800 && version == 4) || (type == 0x86DD && version == 6) ? 8 : 0;
}

inline uint8_t hec(const uint8_t* header) {
    uint8_t crc = 0;
    for (int k = 0; k < 4; ++k) {
        crc ^= header[k];
        for (int bit = 0; bit < 8; ++bit) crc = uint8_t(crc << 1 ^ (crc & 0x80 ? 0x07 : 0));
    }
    return crc ^ 0x55;
}

// The CRC-32 at the end of a PDU: I.363.5's, or what dynamips writes there, the same polynomial with the bits of each
// octet and of the result the other way round, as Ethernet's FCS has them.
enum class PduCrc { AAL5, DYNAMIPS };

inline uint32_t pdu_crc(PduCrc which, const uint8_t* pdu, size_t length) {
    if (which == PduCrc::AAL5) return ~aal5_crc(pdu, length);
    static const std::array<uint32_t, 256> table = [] {
        std::array<uint32_t, 256> made{};
        for (uint32_t octet = 0; octet < 256; ++octet) {
            uint32_t rest = octet;
            for (int k = 0; k < 8; ++k) rest = rest >> 1 ^ (rest & 1 ? 0xEDB88320 : 0);
            made[octet] = rest;
        }
        return made;
    }();
    uint32_t crc = ~0u;
    for (size_t k = 0; k < length; ++k) crc = crc >> 8 ^ table[(crc ^ pdu[k]) & 255];
    return ~crc;
}

// The cells of an SDU on a VC at a UNI, one behind the other.
inline Octets cells_of(const uint8_t* sdu, size_t length, uint32_t vpi, uint32_t vci, PduCrc which) {
    const size_t count = (length + 8 + PAYLOAD - 1) / PAYLOAD;
    Octets pdu(count * PAYLOAD), cells(count * CELL);
    std::memcpy(pdu.data(), sdu, length);
    uint8_t* trailer = pdu.data() + pdu.size() - 8;
    trailer[2] = uint8_t(length >> 8);
    trailer[3] = uint8_t(length);
    const uint32_t crc = pdu_crc(which, pdu.data(), pdu.size() - 4);
    for (int k = 0; k < 4; ++k) trailer[4 + k] = uint8_t(crc >> (24 - 8 * k));
    for (size_t k = 0; k < count; ++k) {
        uint8_t* cell = cells.data() + k * CELL;
        const uint32_t header = vpi << 20 | vci << 4 | (k + 1 == count ? 2 : 0);
        for (int octet = 0; octet < 4; ++octet) cell[octet] = uint8_t(header >> (24 - 8 * octet));
        cell[4] = hec(cell);
        std::memcpy(cell + 5, pdu.data() + k * PAYLOAD, PAYLOAD);
    }
    return cells;
}

// Cells of a VC on their way to a PDU.
class Reassembly {
  public:
    enum Verdict { MORE, WHOLE, WRONG };

    Verdict take(const uint8_t* payload, bool last, size_t most, PduCrc which, Octets& sdu) {
        if (pdu_.size() < most + 8 + PAYLOAD) pdu_.insert(pdu_.end(), payload, payload + PAYLOAD);
        else over_ = true;
        if (!last) return MORE;
        Octets pdu;
        pdu.swap(pdu_);
        const bool over = over_;
        over_ = false;
        const size_t size = pdu.size(), length = size_t(pdu[size - 6]) << 8 | pdu[size - 5];
        if (over || !length || length > most || length + 8 > size || length + 8 + 47 < size) return WRONG;
        const uint8_t* at = pdu.data() + size - 4;
        const uint32_t given = uint32_t(at[0]) << 24 | uint32_t(at[1]) << 16 | uint32_t(at[2]) << 8 | at[3];
        if (pdu_crc(which, pdu.data(), size - 4) != given) return WRONG;
        pdu.resize(length);
        sdu.swap(pdu);
        return WHOLE;
    }

  private:
    Octets pdu_;
    bool over_ = false;  // more cells came than the longest PDU has
};

}  // namespace bp
