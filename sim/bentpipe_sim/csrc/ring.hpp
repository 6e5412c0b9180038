// A queue in one block of memory, which grows as needed. One that has become empty begins at the block's start again: few
// items stay in few cache lines.
#pragma once
#include <cstdint>
#include <memory>

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
    Item& back() { return (*this)[size() - 1]; }
    void pop_front() {
        if (++head_ == tail_) head_ = tail_ = 0;
    }
    void pop_back() { --tail_; }
    Item& push_back() {  // as some item before left it
        if (__builtin_expect(size() > mask_, 0)) grow();
        return items_[tail_++ & mask_];
    }
    void erase(uint64_t k) {
        for (; k > 0; --k) (*this)[k] = (*this)[k - 1];
        pop_front();
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
    [[gnu::noinline]] void grow() {
        const uint64_t count = size(), room = 2 * (mask_ + 1);
        std::unique_ptr<Item[]> larger(new Item[room]);
        for (uint64_t k = 0; k < count; ++k) larger[k] = (*this)[k];
        items_.swap(larger);
        mask_ = room - 1;
        head_ = 0;
        tail_ = count;
    }

    std::unique_ptr<Item[]> items_{new Item[4]};
    uint64_t mask_ = 3, head_ = 0, tail_ = 0;
};

}  // namespace bp
