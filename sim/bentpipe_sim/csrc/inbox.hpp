// Events for the hosts, and the SDUs that some of them are about, until the next run begins.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "network.h"
#include "pdu.hpp"

namespace bp {

// Memory of SDUs that was used before. Short and long ones are apart, so that none has to grow, which would write zeros.
class SpareOctets {
  public:
    Octets get(size_t size) {  // of about this size, or none
        std::vector<Octets>& spare = spare_[size > SHORT];
        if (spare.empty()) return {};
        Octets octets = std::move(spare.back());
        spare.pop_back();
        return octets;
    }
    void put(Octets&& octets) {
        std::vector<Octets>& spare = spare_[octets.size() > SHORT];
        if (spare.size() < MOST) spare.push_back(std::move(octets));
    }

  private:
    static constexpr size_t MOST = 256, SHORT = 512;
    std::vector<Octets> spare_[2];
};

class Inbox {
  public:
    SpareOctets sent;  // of PDUs that were sent

    const std::vector<bp_event>& events() const { return events_; }
    const Octets& sdu(uint32_t handle) const { return sdus_[handle]; }

    // The other one gets the events and SDUs, and this one what the other had.
    void exchange(Inbox& other) {
        events_.swap(other.events_);
        sdus_.swap(other.sdus_);
    }

    // Get the other one's events and SDUs, which gets other SDUs in their stead. The events stay in one place.
    void take(Inbox& other) {
        events_ = other.events_;
        sdus_.swap(other.sdus_);
    }

    void clear() {
        events_.clear();
        for (Octets& octets : sdus_) received_.put(std::move(octets));
        sdus_.clear();
    }

    void tell(uint64_t tick, int nic, uint32_t vc, uint16_t status, uint32_t length, bool congested = false) {
        events_.push_back({tick, uint32_t(nic), vc, status, congested, length, uint32_t(sdus_.size()), 0, {}, 0});
    }

    // A cell: its 48 octets are the event's head.
    void tell(uint64_t tick, int nic, uint32_t vc, uint16_t status, const void* payload) {
        tell(tick, nic, vc, status, 48);
        bp_event& event = events_.back();
        event.head_length = 48;
        std::memcpy(event.head, payload, 48);
    }

    // The last event is about this SDU; `octets` gets others of its size in its stead.
    void deliver(Octets& octets) {
        bp_event& event = events_.back();
        event.head_length = std::min<uint32_t>(event.length, sizeof event.head);
        std::memcpy(event.head, octets.data(), event.head_length);
        event.sum = internet_sum(octets.data(), event.length);
        const size_t size = octets.size();
        sdus_.push_back(received_.get(size));
        sdus_.back().swap(octets);
        if (octets.size() < size) octets.resize(size);
    }

  private:
    std::vector<bp_event> events_;
    std::vector<Octets> sdus_;  // by handle
    SpareOctets received_;
};

}  // namespace bp
