// The ports of a node's model, by name.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "model.h"

namespace bp {

// A port whose width is the node's own: a VC's number.
class Number {
  public:
    Number() = default;
    explicit Number(const bp_port& port) : data_(port.data), width_(port.width) {}
    uint32_t width() const { return width_; }
    uint32_t get() const {
        if (width_ <= 8) return *static_cast<uint8_t*>(data_);
        if (width_ <= 16) return *static_cast<uint16_t*>(data_);
        return *static_cast<uint32_t*>(data_);
    }
    void set(uint32_t value) const {
        if (width_ <= 8) *static_cast<uint8_t*>(data_) = uint8_t(value);
        else if (width_ <= 16) *static_cast<uint16_t*>(data_) = uint16_t(value);
        else *static_cast<uint32_t*>(data_) = value;
    }

  private:
    void* data_ = nullptr;
    uint32_t width_ = 0;
};

class Ports {
  public:
    Ports(const bp_model& model, void* instance) {
        uint32_t count = 0;
        const bp_port* first = model.ports(instance, &count);
        ports_.assign(first, first + count);
    }

    bool has(const char* name) const { return find(name) != nullptr; }
    Number number(const char* name) const { return Number(need(name)); }

    // Where a port's value lies. std::runtime_error: there is no such port, or it is of another type.
    template <class Word>
    Word* at(const char* name) const {
        const bp_port& port = need(name);
        const uint32_t bits = port.width > 64 ? 32 : port.width;
        if (bits > 8 * sizeof(Word) || (sizeof(Word) > 1 && bits <= 4 * sizeof(Word)))
            throw std::runtime_error(std::string("the node model's port ") + name + " has " + std::to_string(port.width) +
                                     " bits, which is another type than the event loop takes");
        return static_cast<Word*>(port.data);
    }

  private:
    const bp_port* find(const char* name) const {
        for (const bp_port& port : ports_)
            if (!std::strcmp(port.name, name)) return &port;
        return nullptr;
    }
    const bp_port& need(const char* name) const {
        if (const bp_port* port = find(name)) return *port;
        throw std::runtime_error(std::string("the node model has no port ") + name);
    }
    std::vector<bp_port> ports_;
};

}  // namespace bp
