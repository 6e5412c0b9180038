// The agenda of many nodes: of each of the next 64 ticks the nodes that are due, a bit for each. What is due later stands in
// wheels of 64 blocks of ticks, each wheel's block as long as the whole wheel before it; when its block begins, it comes nearer.
// As among few nodes the first key is known while the node before it is evaluated, and what comes sooner is guessed.
//
// A node that is to be due in another tick leaves its bit where it was: what counts is its ticket (due()).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "key.hpp"

namespace bp {

class Many {
    struct First {  // the node, or what comes behind all nodes
        uint64_t tick, node;
    };

  public:
    explicit Many(const std::vector<Ticket*>& tickets) : tickets_(tickets) {}

    // The tickets say something else.
    void forget() { laid_ = 0; }
    // Between runs, not before the last one's end.
    void set(Ticket& its, uint64_t tick) {
        its.due = tick;
        if (laid_ != tickets_.size()) return;
        Run run(*this);
        run.put(its, tick, base_);
        near_ = run.near_;
    }

    // What a run keeps in registers: what is first; which ticks have nodes; which of a word of this tick's are left. What every
    // evaluation calls is in place: calls would save what is in these.
    class Run {
      public:
        // It ends at the end of this tick, behind all nodes.
        Run(Many& many, uint64_t tick) : Run(many.laid()) {
            stop(tick);
            find_from(many_.base_);
        }
        void stop(uint64_t tick) {
            many_.stop_ = tick;
            many_.look_at_limit();
            come_before(many_.special());
        }
        void follow(const Run& apart) {
            first_ = apart.first_;
            near_ = apart.near_;
            word_ = apart.word_;
            groups_ = apart.groups_;
            at_ = apart.at_;
        }
        uint64_t tick() const { return first_.tick; }
        size_t node() const { return first_.node; }
        bool ends(size_t node) const { return node == many_.tickets_.size(); }  // else turn() is due
        // Whether its turn in this tick is more than a bit that was left.
        static bool due(const Ticket& its, uint64_t tick) { return its.due == tick; }

        // The first node is evaluated now, and nothing before it.
        void take() {
            if (!word_) begin();
            word_ &= word_ - 1;
            if (word_) first_.node = at_ + lowest(word_);
            else find_behind_word();
        }
        // The node that was taken, in this tick: its work.
        [[gnu::always_inline]] void taken(Ticket& its, uint64_t due, uint64_t now) {
            its.due = due;
            put(its, due, now);
        }
        void sooner(Ticket& its, uint64_t tick, uint64_t now) {  // than it is, else not
            if (tick < its.due) taken(its, tick, now);
        }
        // A block of ticks begins.
        void turn() {
            many_.near_ = near_;
            many_.come_nearer();
            near_ = many_.near_;
            find_from(many_.base_);
        }
        void leave(uint64_t tick) {
            many_.near_ = near_;
            many_.base_ = tick;
        }

      private:
        friend class Many;
        explicit Run(Many& many) : many_(many), near_(many.near_) {}

        static uint64_t lowest(uint64_t word) { return uint32_t(__builtin_ctzll(word)); }
        // It is due in this tick, none before the one that it is now.
        [[gnu::always_inline]] void put(const Ticket& its, uint64_t tick, uint64_t now) {
            if (__builtin_expect(tick - now < SLOTS, 1)) {
                const uint64_t node = its.node;
                many_.bits_[place(node, tick)] |= 1ull << node % 64;
                if (__builtin_expect(many_.grouped_, 0)) many_.with_[tick % SLOTS] |= 1ull << (node / 64 >> many_.group_);
                near_ |= 1ull << tick % SLOTS;
                come_before({tick, node});
            } else if (tick < NEVER) {
                many_.later(its, tick, now);
                come_before(many_.special());
            }
        }
        // What comes sooner is guessed: a branch, as among few.
        [[gnu::always_inline]] void come_before(First other) {
            if (__builtin_expect(other.tick > first_.tick, 1)) return;
            if (other.tick == first_.tick && other.node >= first_.node) return;
            asm volatile("" : "+r"(other.tick));
            first_ = other;
        }
        // The first node's tick.
        void begin() {
            const uint64_t slot = first_.tick % SLOTS;
            near_ &= ~(1ull << slot);
            if (many_.grouped_) groups_ = std::exchange(many_.with_[slot], 0);
            at_ = first_.node / 64 * 64;
            word_ = std::exchange(many_.bits_[at_ + slot], 0);
        }
        // What is first behind the word's nodes, which are all taken: in this tick's next words, or in those behind it.
        void find_behind_word() {
            const uint64_t slot = first_.tick % SLOTS;
            for (;;) {
                at_ += 64;
                if (many_.grouped_ && at_ / 64 % (1ull << many_.group_) == 0) {
                    groups_ &= groups_ - 1;
                    if (!groups_) break;
                    at_ = lowest(groups_) << many_.group_ << 6;
                }
                if (at_ >= many_.bits_of_all_) break;
                word_ = std::exchange(many_.bits_[at_ + slot], 0);
                if (!word_) continue;
                first_.node = at_ + lowest(word_);
                return;
            }
            find_from(first_.tick + 1);
        }
        // What is first in this tick and those behind it.
        void find_from(uint64_t tick) {
            const uint64_t from = near_ >> tick % SLOTS | near_ << -tick % SLOTS;
            if (!from) {
                first_ = many_.special();
                return;
            }
            first_.tick = tick + lowest(from);
            const uint64_t slot = first_.tick % SLOTS;
            uint64_t at = 0;
            if (many_.grouped_) at = lowest(many_.with_[slot]) << many_.group_ << 6;
            while (!many_.bits_[at + slot]) at += 64;
            first_.node = at + lowest(many_.bits_[at + slot]);
            if (__builtin_expect(first_.tick >= many_.limit_, 0)) come_before(many_.special());
        }

        Many& many_;
        First first_{~0ull, 0};
        uint64_t near_;
        uint64_t word_ = 0, groups_ = 0;  // the bits that are left, and such words or groups of them
        uint64_t at_ = 0;                 // the number of the word's first node
    };

  private:
    static constexpr uint64_t SLOTS = 64, WHEELS = 8;  // six bits of a tick each
    static constexpr uint64_t MOST_SEARCHED = 8;       // words of a tick; of more a bit says which have nodes
    static_assert(NEVER >> 6 * WHEELS == 0, "the last wheel has all ticks");

    Many& laid() {
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
        std::fill_n(later_, WHEELS, 0);
        near_ = base_ = 0;
        nearer_ = NEVER;
        laid_ = tickets_.size();
        for (Ticket* its : tickets_) set(*its, its->due);
    }
    // The end of the run, or that a block begins: behind all nodes of the tick before.
    First special() const {
        if (nearer_ <= stop_ && nearer_ < NEVER) return {nearer_ - 1, tickets_.size() + 1};
        return {stop_, tickets_.size()};
    }
    // In the first wheel.
    static uint64_t place(uint64_t node, uint64_t tick) { return (node & ~63ull) + tick % SLOTS; }
    void look_at_limit() { limit_ = std::min(stop_ + 1, nearer_); }

    uint64_t* block_of(uint64_t wheel, uint64_t slot) { return &bits_[(wheel * SLOTS + slot) * words_]; }  // not of the first
    // A node is due behind the 64 ticks from `base` on.
    [[gnu::noinline]] void later(const Ticket& its, uint64_t due, uint64_t base) {
        uint64_t wheel = 1;
        while ((due >> 6 * wheel) - (base >> 6 * wheel) >= SLOTS) ++wheel;
        const uint64_t block = due >> 6 * wheel;
        block_of(wheel, block % SLOTS)[its.node / 64] |= 1ull << its.node % 64;
        later_[wheel] |= 1ull << block % SLOTS;
        nearer_ = std::min(nearer_, block << 6 * wheel);
        look_at_limit();
    }
    // The first block that has nodes begins: these go to wheels before its own.
    [[gnu::noinline]] void come_nearer() {
        base_ = std::exchange(nearer_, NEVER);
        Run run(*this);
        for (uint64_t wheel = 1; wheel < WHEELS && base_ % (1ull << 6 * wheel) == 0; ++wheel) {
            const uint64_t slot = (base_ >> 6 * wheel) % SLOTS;
            if (!(later_[wheel] >> slot & 1)) continue;
            later_[wheel] &= ~(1ull << slot);
            uint64_t* const words = block_of(wheel, slot);
            for (size_t at = 0; at < words_; ++at)
                for (uint64_t left = std::exchange(words[at], 0); left; left &= left - 1) {
                    const Ticket& its = *tickets_[at * 64 + Run::lowest(left)];
                    run.put(its, its.due, base_);
                }
        }
        near_ = run.near_;
        for (uint64_t wheel = 1; wheel < WHEELS; ++wheel) {
            if (!later_[wheel]) continue;
            const uint64_t block = base_ >> 6 * wheel;
            const uint64_t from = later_[wheel] >> block % SLOTS | later_[wheel] << -block % SLOTS;
            nearer_ = std::min(nearer_, (block + Run::lowest(from)) << 6 * wheel);
        }
        look_at_limit();
    }

    const std::vector<Ticket*>& tickets_;
    uint64_t near_ = 0;             // which of the ticks from `base_` on have nodes, at their places in the first wheel
    uint64_t base_ = 0;             // no node is due before it
    uint64_t stop_ = 0, limit_ = 0;
    uint64_t nearer_ = NEVER;       // where the first block begins that has nodes
    size_t laid_ = 0;               // for so many nodes all this is
    size_t words_ = 1;              // of 64 nodes each
    uint64_t bits_of_all_ = 64;     // in these
    bool grouped_ = false;
    unsigned group_ = 0;            // so many words, as a power of two, are a bit in `with_`
    uint64_t with_[SLOTS]{};        // which words of a tick, or groups of them, have nodes, if there are many
    uint64_t later_[WHEELS]{};      // which blocks of a wheel have
    // By wheels: of the first by words, in these by ticks; of the others by blocks, in these by words
    std::vector<uint64_t> bits_;
};

}  // namespace bp
