// The state of a network as octets, out and in by the same declaration: each class has a template `archive` that names its
// members in order. What is laid when a network is made (nodes, wires, paths, captures) is no state: octets go into a network
// that is made alike.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace bp {

class Archive {
  public:
    Archive() = default;                                                      // takes state
    Archive(const uint8_t* octets, size_t length) : from_(octets), left_(length) {}  // gives it; it isn't copied

    bool gives() const { return from_ != nullptr; }
    std::vector<uint8_t> taken() { return std::move(to_); }

    // std::runtime_error: these are not the octets of such a network.
    template <class... Each>
    void operator()(Each&... each) {
        (value(each), ...);
    }
    void octets(void* data, size_t length) {
        if (!gives()) {
            const auto* begin = static_cast<const uint8_t*>(data);
            to_.insert(to_.end(), begin, begin + length);
            return;
        }
        if (length > left_) wrong();
        if (length) std::memcpy(data, from_, length);
        from_ += length;
        left_ -= length;
    }
    // Values that have to be the same in both networks.
    void same(uint64_t what) {
        uint64_t there = what;
        octets(&there, sizeof there);
        if (there != what) wrong();
    }
    void end() {
        if (left_) wrong();
    }

  private:
    template <class T>
    void value(T& each) {
        if constexpr (std::is_trivially_copyable_v<T>) {
            static_assert(!std::is_pointer_v<T>, "a pointer is no state");
            octets(&each, sizeof each);
        } else {
            each.archive(*this);
        }
    }
    template <class T>
    void value(std::vector<T>& list) {
        list.resize(size(list));
        if constexpr (std::is_trivially_copyable_v<T>) octets(list.data(), list.size() * sizeof(T));
        else for (T& each : list) value(each);
    }
    template <class T>
    void value(std::deque<T>& list) {
        list.resize(size(list));
        for (T& each : list) value(each);
    }
    template <class Key, class T>
    void value(std::map<Key, T>& map) {
        uint64_t count = size(map);
        if (gives()) {
            for (map.clear(); count; --count) {
                Key key{};
                value(key);
                value(map[key]);
            }
        } else {
            for (auto& [key, each] : map) {
                Key own = key;
                value(own);
                value(each);
            }
        }
    }
    template <class A, class B>
    void value(std::pair<A, B>& both) {
        value(both.first);
        value(both.second);
    }
    template <class List>
    uint64_t size(const List& list) {
        uint64_t count = list.size();
        octets(&count, sizeof count);
        if (gives() && count > left_) wrong();  // each item has an octet and more
        return count;
    }
    [[noreturn]] static void wrong() { throw std::runtime_error("the state is damaged, or of another network"); }

    std::vector<uint8_t> to_;
    const uint8_t* from_ = nullptr;
    size_t left_ = 0;
};

}  // namespace bp
