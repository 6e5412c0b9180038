// Captures: pcap files with nanoseconds of simulated time, written as the simulation goes.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "archive.hpp"

namespace bp {

constexpr uint32_t LINK_RFC1483 = 100, LINK_RAW = 101, LINK_SUNATM = 123, LINK_ERF = 197;  // tcpdump.org/linktypes

// The CRC-32 of AAL5 over whole PDUs, trailer included, is this (I.363.5).
constexpr uint32_t AAL5_RESIDUE = 0xC704DD7B;

inline uint32_t aal5_crc(const uint8_t* data, size_t length) {
    static const std::vector<uint32_t> table = [] {
        std::vector<uint32_t> made(256);
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t r = i << 24;
            for (int k = 0; k < 8; ++k) r = r << 1 ^ (r >> 31 ? 0x04C11DB7 : 0);
            made[i] = r;
        }
        return made;
    }();
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; ++i) crc = crc << 8 ^ table[crc >> 24 ^ data[i]];
    return crc;
}

class Capture {
  public:
    // The file's octets up to `from`, if that is not 0, are kept.
    Capture(const char* path, uint32_t link, uint64_t from) : link_(link), file_(std::fopen(path, from ? "r+b" : "wb")) {
        if (!file_) {
            failed_ = errno;
            return;
        }
        std::setvbuf(file_, nullptr, _IOFBF, 1 << 18);
        if (from) {
            if (ftruncate(fileno(file_), off_t(from)) || fseeko(file_, off_t(from), SEEK_SET)) failed_ = errno;
            return;
        }
        const uint32_t head[6] = {0xA1B23C4D, 2 | 4 << 16, 0, 0, 262144, link};
        put(head, sizeof head);
    }
    Capture(const Capture&) = delete;
    ~Capture() { close(); }

    // Ends the file; the error number of the first write that failed, 0 if none did.
    int close() {
        if (file_ && std::fclose(file_) && !failed_) failed_ = errno;
        file_ = nullptr;
        return failed_;
    }

    // Octets of the file so far.
    uint64_t length() {
        if (file_ && std::fflush(file_) && !failed_) failed_ = errno;
        return file_ ? uint64_t(ftello(file_)) : 0;
    }
    void archive(Archive& a) { a(failed_, partial_); }

    // An SDU that a host sends or receives: its IP packet, routed or in an Ethernet frame that is bridged (RFC 2684).
    void sdu(uint64_t tick, const uint8_t* octets, uint32_t length) {
        static const uint8_t routed[6] = {0xAA, 0xAA, 3, 0, 0, 0}, bridged[8] = {0xAA, 0xAA, 3, 0, 0x80, 0xC2, 0, 7};
        uint32_t type = 0;  // where the EtherType is
        if (length > 8 && !std::memcmp(octets, routed, sizeof routed)) type = 6;
        else if (length > 24 && !std::memcmp(octets, bridged, sizeof bridged)) type = 22;
        if (!type) return;
        const auto at = [&] { return uint32_t(octets[type] << 8 | octets[type + 1]); };
        while (type >= 22 && (at() == 0x8100 || at() == 0x88A8) && length > type + 6) type += 4;  // tags (802.1Q)
        const uint32_t is = at();
        if (is == 0x0800 || is == 0x86DD) record(tick, nullptr, 0, octets + type + 2, length - type - 2);
    }

    // A cell on a line; `back` is the way from the line's second end to its first.
    void cell(uint64_t tick, uint32_t header, const uint8_t* payload, bool hec_error, bool back) {
        if (link_ == LINK_ERF) {
            const uint64_t time = seconds_and_fraction(tick);
            uint8_t head[20];
            std::memcpy(head, &time, 8);
            const uint8_t rest[12] = {3, uint8_t(4 | (hec_error ? 16 : 0) | (back ? 1 : 0)), 0, 68, 0, 0, 0, 52,
                                      uint8_t(header >> 24), uint8_t(header >> 16), uint8_t(header >> 8), uint8_t(header)};
            std::memcpy(head + 8, rest, 12);
            record(tick, head, sizeof head, payload, 48);
            return;
        }
        if (hec_error || header & 8) return;  // not a user cell
        std::vector<uint8_t>& pdu = partial_[uint64_t(back) << 32 | header >> 4];
        pdu.insert(pdu.end(), payload, payload + 48);
        if (header & 2) {
            complete(tick, header, back, pdu);
            pdu.clear();
        } else if (pdu.size() > 65535 + 8 + 47) {
            pdu.clear();
        }
    }

  private:
    void complete(uint64_t tick, uint32_t header, bool back, const std::vector<uint8_t>& pdu) {
        const size_t size = pdu.size();
        const uint32_t length = uint32_t(pdu[size - 6] << 8 | pdu[size - 5]);
        if (!length || length + 8 > size || length + 8 + 47 < size || aal5_crc(pdu.data(), size) != AAL5_RESIDUE) return;
        const bool llc = length >= 3 && pdu[0] == 0xAA && pdu[1] == 0xAA && pdu[2] == 3;
        const uint8_t head[4] = {uint8_t((back ? 0 : 0x80) | (llc ? 2 : 0)), uint8_t(header >> 20), uint8_t(header >> 12),
                                 uint8_t(header >> 4)};
        if (link_ == LINK_SUNATM) record(tick, head, 4, pdu.data(), length);
        else if (llc) record(tick, nullptr, 0, pdu.data(), length);
    }

    void record(uint64_t tick, const uint8_t* head, uint32_t head_length, const uint8_t* data, uint32_t length) {
        // A tick is 53/299520000 s.
        const unsigned __int128 ns = static_cast<unsigned __int128>(tick) * 165625 / 936;
        const uint32_t size = head_length + length;
        const uint32_t line[4] = {uint32_t(ns / 1000000000), uint32_t(ns % 1000000000), size, size};
        put(line, sizeof line);
        put(head, head_length);
        put(data, length);
    }

    static uint64_t seconds_and_fraction(uint64_t tick) {  // with 32 bits of fraction
        return uint64_t((static_cast<unsigned __int128>(tick) * 53 << 32) / 299520000);
    }

    void put(const void* data, size_t length) {
        if (length && file_ && !failed_ && std::fwrite(data, 1, length, file_) != length) failed_ = errno;
    }

    uint32_t link_;
    FILE* file_;
    int failed_ = 0;
    std::map<uint64_t, std::vector<uint8_t>> partial_;  // PDUs under way by direction, VPI and VCI
};

}  // namespace bp
