// The values of a node's ports at each clock, for a wave of it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model.h"

namespace bp {

// It stands where the event loop has a model's clock; the model is as it would be without.
class Recording {
  public:
    // `now` is the event loop's.
    Recording(const bp_model& model, void* instance, const uint64_t& now)
        : model_(model), instance_(instance), now_(now) {
        uint32_t count = 0;
        const bp_port* list = model.ports(instance, &count);
        list_.assign(list, list + count);
        for (const bp_port& port : list_)
            ports_ += (ports_.empty() ? "" : ",") + std::string(port.name) + " " + std::to_string(port.width);
        all()[instance] = this;
    }
    Recording(const Recording&) = delete;
    ~Recording() { all().erase(instance_); }

    static void clock(void* instance) { all().at(instance)->one(); }
    static constexpr bp_clocks CLOCKS{clock, {clock, clock}};

    const std::string& ports() const { return ports_; }
    const std::vector<uint8_t>& octets() const { return octets_; }

  private:
    static std::map<void*, Recording*>& all() {
        static thread_local std::map<void*, Recording*> found;
        return found;
    }

    void one() {
        model_.clocks.whole(instance_);
        put(&now_, sizeof now_);
        for (const bp_port& port : list_) put(port.data, (port.width + 7) / 8);
    }
    void put(const void* data, size_t length) {
        const auto* begin = static_cast<const uint8_t*>(data);
        octets_.insert(octets_.end(), begin, begin + length);
    }

    const bp_model& model_;
    void* instance_;
    const uint64_t& now_;
    std::vector<bp_port> list_;
    std::string ports_;
    std::vector<uint8_t> octets_;
};

}  // namespace bp
