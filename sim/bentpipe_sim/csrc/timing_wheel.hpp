// The event queue of more than 8 nodes: a hierarchical timing wheel (Varghese and Lauck 1987) with a bitmap of nodes in each slot.
// The first wheel has a slot for each of the next 64 ticks. A slot of each further wheel is a block of ticks, as long as the whole
// wheel before it. When a block begins, its nodes cascade to the wheels before.
//
// As in the small queue, the next event is known before the current node is evaluated, so that the CPU can speculate on it.
//
// A node that is rescheduled leaves its old bit: stale bits are allowed, and the tick in the node's ticket decides (due()).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "event_key.hpp"

namespace bp {

class TimingWheel {
    struct First {  // the next event: a node, or one of the two numbers after all nodes
        uint64_t tick, node;
    };

  public:
    explicit TimingWheel(const std::vector<Ticket*>& tickets) : tickets_(tickets) {}

    // The tickets have changed: build the wheels from them again.
    void forget(uint64_t now = 0) {  // no node is due before it
        laid_ = 0;
        base_ = now;
    }
    // Only between runs, and not before the end of the last one.
    void set(Ticket& ticket, uint64_t tick) {
        ticket.due = tick;
        if (laid_ != tickets_.size()) return;
        Cursor cursor(*this);
        cursor.put(ticket, tick, base_);
        ticks_ = cursor.ticks_;
    }

    // The position of a run, which the compiler keeps in registers: the next event, the bitmap of ticks that have nodes, and the
    // rest of the present word of nodes. What every evaluation calls is inlined: calls would spill these registers.
    class Cursor {
      public:
        // The run ends at the end of this tick, after all nodes.
        Cursor(TimingWheel& wheel, uint64_t tick) : Cursor(wheel.laid()) {
            stop(tick);
            find_from(wheel_.base_);
        }
        void stop(uint64_t tick) {
            wheel_.stop_ = tick;
            wheel_.look_at_limit();
            consider(wheel_.special());
        }
        void assign(const Cursor& apart) {
            first_ = apart.first_;
            ticks_ = apart.ticks_;
            word_ = apart.word_;
            groups_ = apart.groups_;
            at_ = apart.at_;
        }
        uint64_t tick() const { return first_.tick; }
        size_t node() const { return first_.node; }
        bool ends(size_t node) const { return node == wheel_.tickets_.size(); }  // else begin_block() is due
        // Returns whether the node is due in this tick, and its bit is not stale.
        static bool due(const Ticket& ticket, uint64_t tick) { return ticket.due == tick; }

        // Take the first node out of the queue, to evaluate it.
        void pop() {
            if (!word_) begin();
            word_ &= word_ - 1;
            if (word_) first_.node = at_ + lowest(word_);
            else find_behind_word();
        }
        // Put the popped node back.
        [[gnu::always_inline]] void reschedule(Ticket& ticket, uint64_t due, uint64_t now) {
            ticket.due = due;
            put(ticket, due, now);
        }
        void schedule_earlier(Ticket& ticket, uint64_t tick, uint64_t now) {  // only if it is due later
            if (tick < ticket.due) reschedule(ticket, tick, now);
        }
        // A block of ticks begins.
        void begin_block() {
            wheel_.ticks_ = ticks_;
            wheel_.cascade();
            ticks_ = wheel_.ticks_;
            find_from(wheel_.base_);
        }
        void finish(uint64_t tick) {
            wheel_.ticks_ = ticks_;
            wheel_.base_ = tick;
        }

      private:
        friend class TimingWheel;
        explicit Cursor(TimingWheel& wheel) : wheel_(wheel), ticks_(wheel.ticks_) {}

        static uint64_t lowest(uint64_t word) { return uint32_t(__builtin_ctzll(word)); }
        // Insert a node that is due at `tick`, which is not before `now`.
        [[gnu::always_inline]] void put(const Ticket& ticket, uint64_t tick, uint64_t now) {
            if (__builtin_expect(tick - now < SLOTS, 1)) {
                const uint64_t node = ticket.node;
                wheel_.bits_[place(node, tick)] |= 1ull << node % 64;
                if (__builtin_expect(wheel_.grouped_, 0)) wheel_.with_[tick % SLOTS] |= 1ull << (node / 64 >> wheel_.group_);
                ticks_ |= 1ull << tick % SLOTS;
                consider({tick, node});
            } else if (tick < NEVER) {
                wheel_.insert_far(ticket, tick, now);
                consider(wheel_.special());
            }
        }
        // Take an event as the next one if it is earlier: a branch, as in the small queue.
        [[gnu::always_inline]] void consider(First other) {
            if (__builtin_expect(other.tick > first_.tick, 1)) return;
            if (other.tick == first_.tick && other.node >= first_.node) return;
            asm volatile("" : "+r"(other.tick));
            first_ = other;
        }
        // The first node's tick.
        void begin() {
            const uint64_t slot = first_.tick % SLOTS;
            ticks_ &= ~(1ull << slot);
            if (wheel_.grouped_) groups_ = std::exchange(wheel_.with_[slot], 0);
            at_ = first_.node / 64 * 64;
            word_ = std::exchange(wheel_.bits_[at_ + slot], 0);
        }
        // Find the next event after the present word, whose nodes are all done: in the next words of this tick, or in later ticks.
        void find_behind_word() {
            const uint64_t slot = first_.tick % SLOTS;
            for (;;) {
                at_ += 64;
                if (wheel_.grouped_ && at_ / 64 % (1ull << wheel_.group_) == 0) {
                    groups_ &= groups_ - 1;
                    if (!groups_) break;
                    at_ = lowest(groups_) << wheel_.group_ << 6;
                }
                if (at_ >= wheel_.bits_of_all_) break;
                word_ = std::exchange(wheel_.bits_[at_ + slot], 0);
                if (!word_) continue;
                first_.node = at_ + lowest(word_);
                return;
            }
            find_from(first_.tick + 1);
        }
        // Find the first event in this tick or later.
        void find_from(uint64_t tick) {
            const uint64_t from = ticks_ >> tick % SLOTS | ticks_ << -tick % SLOTS;
            if (!from) {
                first_ = wheel_.special();
                return;
            }
            first_.tick = tick + lowest(from);
            const uint64_t slot = first_.tick % SLOTS;
            uint64_t at = 0;
            if (wheel_.grouped_) at = lowest(wheel_.with_[slot]) << wheel_.group_ << 6;
            while (!wheel_.bits_[at + slot]) at += 64;
            first_.node = at + lowest(wheel_.bits_[at + slot]);
            if (__builtin_expect(first_.tick >= wheel_.limit_, 0)) consider(wheel_.special());
        }

        TimingWheel& wheel_;
        First first_{~0ull, 0};
        uint64_t ticks_;
        uint64_t word_ = 0, groups_ = 0;  // the bits that are left, and such words or groups of them
        uint64_t at_ = 0;                 // the number of the word's first node
    };

  private:
    static constexpr uint64_t SLOTS = 64, WHEELS = 8;  // six bits of a tick each
    static constexpr uint64_t MOST_SEARCHED = 8;       // words of a tick; of more a bit says which have nodes
    static_assert(NEVER >> 6 * WHEELS == 0, "the last wheel has all ticks");

    TimingWheel& laid() {
        if (laid_ != tickets_.size()) lay();
        return *this;
    }
    void lay() {
        words_ = (tickets_.size() + 63) / 64;
        bits_of_all_ = words_ * 64;
        grouped_ = words_ > MOST_SEARCHED;
        for (group_ = 0; (words_ - 1) >> group_ >= 64;) ++group_;
        bits_.assign(WHEELS * words_ * SLOTS, 0);
        std::fill_n(with_, SLOTS, 0);
        std::fill_n(far_, WHEELS, 0);
        ticks_ = 0;
        next_block_ = NEVER;
        laid_ = tickets_.size();
        for (Ticket* ticket : tickets_) set(*ticket, ticket->due);
    }
    // The end of the run, or the start of a block: the latter comes after all nodes of the tick before it.
    First special() const {
        if (next_block_ <= stop_ && next_block_ < NEVER) return {next_block_ - 1, tickets_.size() + 1};
        return {stop_, tickets_.size()};
    }
    // In the first wheel.
    static uint64_t place(uint64_t node, uint64_t tick) { return (node & ~63ull) + tick % SLOTS; }
    void look_at_limit() { limit_ = std::min(stop_ + 1, next_block_); }

    uint64_t* block_of(uint64_t wheel, uint64_t slot) { return &bits_[(wheel * SLOTS + slot) * words_]; }  // not of the first
    // Insert a node that is due after the 64 ticks from `base` on.
    [[gnu::noinline]] void insert_far(const Ticket& ticket, uint64_t due, uint64_t base) {
        uint64_t wheel = 1;
        while ((due >> 6 * wheel) - (base >> 6 * wheel) >= SLOTS) ++wheel;
        const uint64_t block = due >> 6 * wheel;
        block_of(wheel, block % SLOTS)[ticket.node / 64] |= 1ull << ticket.node % 64;
        far_[wheel] |= 1ull << block % SLOTS;
        next_block_ = std::min(next_block_, block << 6 * wheel);
        look_at_limit();
    }
    // The first block that has nodes begins: move its nodes to the wheels before.
    [[gnu::noinline]] void cascade() {
        base_ = std::exchange(next_block_, NEVER);
        Cursor cursor(*this);
        for (uint64_t wheel = 1; wheel < WHEELS && base_ % (1ull << 6 * wheel) == 0; ++wheel) {
            const uint64_t slot = (base_ >> 6 * wheel) % SLOTS;
            if (!(far_[wheel] >> slot & 1)) continue;
            far_[wheel] &= ~(1ull << slot);
            uint64_t* const words = block_of(wheel, slot);
            for (size_t at = 0; at < words_; ++at)
                for (uint64_t left = std::exchange(words[at], 0); left; left &= left - 1) {
                    const Ticket& ticket = *tickets_[at * 64 + Cursor::lowest(left)];
                    cursor.put(ticket, ticket.due, base_);
                }
        }
        ticks_ = cursor.ticks_;
        for (uint64_t wheel = 1; wheel < WHEELS; ++wheel) {
            if (!far_[wheel]) continue;
            const uint64_t block = base_ >> 6 * wheel;
            const uint64_t from = far_[wheel] >> block % SLOTS | far_[wheel] << -block % SLOTS;
            next_block_ = std::min(next_block_, (block + Cursor::lowest(from)) << 6 * wheel);
        }
        look_at_limit();
    }

    const std::vector<Ticket*>& tickets_;
    uint64_t ticks_ = 0;             // which of the ticks from `base_` on have nodes, at their places in the first wheel
    uint64_t base_ = 0;             // no node is due before it
    uint64_t stop_ = 0, limit_ = 0;
    uint64_t next_block_ = NEVER;       // where the first block begins that has nodes
    size_t laid_ = 0;               // for so many nodes all this is
    size_t words_ = 1;              // of 64 nodes each
    uint64_t bits_of_all_ = 64;     // in these
    bool grouped_ = false;
    unsigned group_ = 0;            // so many words, as a power of two, are a bit in `with_`
    uint64_t with_[SLOTS]{};        // which words of a tick, or groups of them, have nodes, if there are many
    uint64_t far_[WHEELS]{};      // which blocks of a wheel have
    // By wheels: of the first by words, in these by ticks; of the others by blocks, in these by words
    std::vector<uint64_t> bits_;
};

}  // namespace bp
