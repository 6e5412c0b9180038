// A queue in one block of memory, which grows as needed; before its first item there is none. One that has become empty
// begins at the block's start again: few items stay in few cache lines.
#pragma once
#include <cstdint>
#include <memory>

#include "archive.hpp"

namespace bp {

template <class Item>
class Ring {
  public:
    bool empty() const { return count_ == 0; }
    uint64_t size() const { return count_; }
    Item& operator[](uint64_t k) { return *at(k); }
    const Item& operator[](uint64_t k) const { return *at(k); }
    Item& front() { return *front_; }
    const Item& front() const { return *front_; }
    const Item& back() const { return *before(back_); }
    void pop_front() { pop_front(count_ > 1 ? behind(front_) : nullptr); }
    void pop_back() {
        back_ = before(back_);
        --count_;
    }
    Item& push_back() {  // as some item before left it
        if (__builtin_expect(count_ == room_, 0)) grow();
        return push_back_within();
    }
    Item& push_front() {
        if (empty()) return Ring::push_back();
        if (count_ == room_) grow();
        front_ = before(front_);
        ++count_;
        return *front_;
    }
    void keep_first() {  // all others go
        back_ = behind(front_);
        count_ = 1;
    }
    void erase(uint64_t k) {
        for (; k > 0; --k) (*this)[k] = (*this)[k - 1];
        pop_front();
    }
    void archive(Archive& a) {
        uint64_t count = size();
        a(count);
        if (a.gives()) {
            front_ = back_ = items_.get();
            for (count_ = 0; count_ < count;) a(Ring::push_back());
        } else {
            for (uint64_t k = 0; k < count; ++k) a((*this)[k]);
        }
    }

  protected:
    // The place behind an item, and that before it.
    Item* behind(const Item* item) const { return item + 1 == end_ ? items_.get() : const_cast<Item*>(item) + 1; }
    Item* before(Item* item) const { return (item == items_.get() ? end_ : item) - 1; }
    // By one who has looked up the second item; none: there was one.
    void pop_front(Item* second) {
        --count_;
        if (second) front_ = second;
        else front_ = back_ = items_.get();
    }
    void make_room(uint64_t count) {
        while (room_ < count) grow();
    }
    Item& push_back_within() {  // there is room
        Item& item = *back_;
        back_ = behind(back_);
        ++count_;
        return item;
    }

  private:
    Item* at(uint64_t k) const {
        Item* const item = front_ + k;
        return item < end_ ? item : item - room_;
    }
    [[gnu::noinline]] void grow() {
        const uint64_t room = room_ ? 2 * room_ : 4;
        std::unique_ptr<Item[]> larger(new Item[room]);
        for (uint64_t k = 0; k < count_; ++k) larger[k] = (*this)[k];
        items_.swap(larger);
        room_ = room;
        front_ = items_.get();
        back_ = front_ + count_;
        end_ = front_ + room_;
    }

    uint64_t count_ = 0, room_ = 0;
    std::unique_ptr<Item[]> items_;
    Item *front_ = nullptr, *back_ = nullptr, *end_ = nullptr;  // the next one is put at `back_`
};

}  // namespace bp
