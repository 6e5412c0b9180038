// A wire to a node's input: cells in order of arrival, the first of them those that have arrived and wait at the input.
#pragma once
#include <algorithm>
#include <cstdint>

#include <map>
#include <memory>

#include "cell.hpp"
#include "ring.hpp"

namespace bp {

constexpr uint64_t NEVER = (1ull << 48) - 1;  // a tick: nodes know 48 bits of them, and call it never, too

// Cells of two paths on one wire, each in the order of its arrival. The wire itself has the first two cells of both, and those
// that were put before them since; so whoever takes cells from it finds them in the order of their arrival.
struct MergedPaths {
    struct Sent {  // a cell with a good header, in the order in which the cells of its VC were sent
        uint64_t tick;
        bool last;
        void archive(Archive& a) { a(tick, last); }
    };
    struct Vc {
        Ring<Sent> sent;
        uint64_t lasts = 0;  // of them; as many ends are still to come
        void archive(Archive& a) { a(sent, lasts); }
    };

    static uint32_t key(uint32_t header) { return header >> 4 | (CellHead::rm(header) ? CellHead::NOT_RM : 0); }
    // On a path the number of a cell stands above `hec_error`, so that of two cells of one tick that which was sent first comes first.
    void sent(const CellInFlight& cell) {
        if (cell.hec_error) return;
        Vc& vc = vcs[key(cell.header)];
        vc.lasts += CellHead::last(cell.header);
        vc.sent.push_back() = {cell.tick, CellHead::last(cell.header)};
    }
    uint64_t count(uint32_t of, uint32_t mask, bool last) const {
        uint64_t found = 0;
        for (const auto& [key, vc] : vcs)
            if (((key ^ of) & mask & ~CellHead::NOT_RM) == 0 && !(mask & key & CellHead::NOT_RM)) found += last ? vc.lasts : vc.sent.size();
        return found;
    }
    // The path whose first cell arrives first; none: there is none.
    Ring<CellInFlight>* first() {
        if (path[0].empty()) return path[1].empty() ? nullptr : &path[1];
        if (path[1].empty()) return &path[0];
        const CellInFlight &one = path[0].front(), &other = path[1].front();
        if (one.tick != other.tick) return one.tick < other.tick ? &path[0] : &path[1];
        return int32_t((other.hec_error & ~1u) - (one.hec_error & ~1u)) > 0 ? &path[0] : &path[1];
    }
    uint64_t size() const { return path[0].size() + path[1].size(); }
    void archive(Archive& a) { a(number, most, path[0], path[1], vcs); }

    uint32_t number = 0;
    uint64_t most = 0;  // cells on the wire at once
    Ring<CellInFlight> path[2];
    std::map<uint32_t, Vc> vcs;
};

class alignas(64) Wire : public Ring<CellInFlight> {
  public:
    static constexpr uint64_t PLACES = 8;  // for cells that wait while the node takes those of other inputs

    bool connected = false;  // it comes from a node's output

    // The next cell, to be filled in. There is room for as many as there ever were.
    CellInFlight& push_back() {
        if (__builtin_expect(size() >= most_, 0)) at_most(size() + 1);
        return push_back_within();
    }

    // A cell that another part has given some time ago, or will give: it counts for most() by those who know when (count_most).
    void append(const CellInFlight& cell) { Ring::push_back() = cell; }
    void count_most(uint64_t at_once) {
        if (at_once > most_) at_most(at_once);
    }

    CellInFlight& push_front() {
        at_most(size() + 1);
        return Ring::push_front();
    }

    uint64_t most() const { return merged_ ? merged_->most : most_; }  // that there ever were at once
    void had_one() { at_most(1); }           // a cell came and went
    // The second cell, or none.
    CellInFlight* second() {
        if (size() > 1) return behind(&front());
        return __builtin_expect(merged_ != nullptr, 0) ? fetch_merged() : nullptr;
    }
    void pop_front() {
        if (merged_) second();
        Ring::pop_front();
    }

    // Cells come to it that overtake others.
    void merges() { merged_ = std::make_unique<MergedPaths>(); }
    MergedPaths* merged() const { return merged_.get(); }
    // Put a cell onto the wire; return whether it is the first one now.
    bool merge(const CellInFlight& cell) {
        merged_->sent(cell);
        merged_->most = std::max(merged_->most, size() + merged_->size() + 1);
        if (size() < 2 && !merged_->size() && (empty() || cell.tick >= Ring::back().tick)) {
            push_back() = cell;
            return size() == 1;
        }
        if (cell.tick >= Ring::back().tick) {
            Ring<CellInFlight>*one = &merged_->path[0], *other = &merged_->path[1];
            if (!other->empty() && (one->empty() || other->back().tick > one->back().tick)) std::swap(one, other);
            CellInFlight& put = (one->empty() || one->back().tick <= cell.tick ? one : other)->push_back();  // nearest to its end
            put = cell;
            put.hec_error = (cell.hec_error != 0) | merged_->number;
            merged_->number += 2;
            return false;
        }
        push_back() = Ring::back();
        uint64_t k = size() - 1;
        for (; k > 0 && (*this)[k - 1].tick > cell.tick; --k) (*this)[k] = (*this)[k - 1];
        (*this)[k] = cell;
        return k == 0;
    }
    uint64_t in_all() const { return size() + (merged_ ? merged_->size() : 0); }
    void pop_front(CellInFlight* second) { Ring::pop_front(second); }
    // Into the cache, from a long delay line: the one after that behind the first.
    void fetch_ahead() const { __builtin_prefetch(&front() + 2); }

    // Cells that have arrived by this tick: as many as there are places, and one more, which is in none.
    uint64_t waiting(uint64_t tick) {
        if (merged_)
            while (!empty() && size() <= PLACES && Ring::back().tick <= tick && fetch_merged()) {}
        uint64_t count = 0;
        while (count <= PLACES && count < size() && (*this)[count].tick <= tick) ++count;
        return count;
    }

    // Cells with a good header of this VPI/VCI; with `last`, only those that end a PDU.
    uint64_t count(uint32_t key, uint32_t mask, bool last = false) const {
        if (merged_) return merged_->count(key, mask, last);
        uint64_t found = 0;
        for (uint64_t k = 0; k < size(); ++k)
            found += (*this)[k].good(key, mask) && (!last || CellHead::last((*this)[k].header));
        return found;
    }
    void archive(Archive& a) {
        Ring::archive(a);
        uint64_t most = most_;
        a(most);
        most_ = 0;
        at_most(most);
        a.same(merged_ != nullptr);
        if (merged_) a(*merged_);
    }

  private:
    [[gnu::noinline]] void at_most(uint64_t count) {
        most_ = uint32_t(std::max(uint64_t(most_), count));
        make_room(most_);
    }

    // The next cell of both paths, behind the only one that is here.
    [[gnu::noinline]] CellInFlight* fetch_merged() {
        Ring<CellInFlight>* const from = merged_->first();
        if (!from) return nullptr;
        CellInFlight& cell = push_back();
        cell = from->front();
        cell.hec_error &= 1;
        from->pop_front();
        return &cell;
    }

    uint32_t most_ = 0;
    std::unique_ptr<MergedPaths> merged_;
};
static_assert(sizeof(Wire) == 64, "a wire is a cache line");

}  // namespace bp
