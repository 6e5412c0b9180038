// A queue in one block of memory, which grows as needed.
#pragma once
#include <cstdint>
#include <vector>

#include "archive.hpp"

namespace bp {

template <class Item>
class Ring {
  public:
    bool empty() const { return head_ == tail_; }
    uint64_t size() const { return tail_ - head_; }
    Item& operator[](uint64_t k) { return items_[(head_ + k) & mask_]; }
    const Item& operator[](uint64_t k) const { return items_[(head_ + k) & mask_]; }
    Item& front() { return (*this)[0]; }
    void pop_front() { ++head_; }
    Item& push_back() {  // as some item before left it
        if (size() == items_.size()) grow();
        return items_[tail_++ & mask_];
    }
    void erase(uint64_t k) {
        for (; k > 0; --k) (*this)[k] = (*this)[k - 1];
        ++head_;
    }
    void archive(Archive& a) {
        uint64_t count = size();
        a(count);
        if (a.gives()) {
            head_ = tail_ = 0;
            for (; count; --count) a(Ring::push_back());
        } else {
            for (uint64_t k = 0; k < count; ++k) a((*this)[k]);
        }
    }

  private:
    void grow() {
        std::vector<Item> larger(items_.size() * 2);
        for (uint64_t k = 0; k < size(); ++k) larger[k] = (*this)[k];
        tail_ -= head_;
        head_ = 0;
        items_.swap(larger);
        mask_ = items_.size() - 1;
    }

    std::vector<Item> items_ = std::vector<Item>(64);
    uint64_t mask_ = 63, head_ = 0, tail_ = 0;
};

}  // namespace bp
