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
  public:
    explicit Many(const std::vector<Ticket*>& tickets) : tickets_(tickets) {}

    // The tickets say something else.
    void forget() { laid_ = 0; }
    // Between runs, not before the last one's end.
    void set(Ticket& its, uint64_t tick) {
        its.due = tick;
        if (laid_ != tickets_.size()) return;
        Run run(*this);
        run.put(its, tick);
        near_ = run.near_;
    }

    // What a run keeps in registers: the first key; which ticks have nodes; which of this tick's are left.
    class Run {
      public:
        uint64_t first = Key::NONE;

        // It ends at the end of this tick, with the key behind all nodes'.
        Run(Many& many, uint64_t tick) : Run(many.laid()) {
            stop(tick);
            first = of_tick_from(base_);
        }
        void stop(uint64_t tick) {
            many_.stop_ = tick;
            many_.look_at_limit();
            first = std::min(first, many_.special());
        }
        void follow(const Run& apart) {
            first = apart.first;
            near_ = apart.near_;
            base_ = apart.base_;
            word_ = apart.word_;
            groups_ = apart.groups_;
            at_ = apart.at_;
        }
        uint64_t tick() const { return Key::tick(first); }
        size_t node() const { return Key::node(first); }
        bool ends(size_t node) const { return node == many_.tickets_.size(); }  // else turn() is due
        // Whether its turn in this tick is more than a bit that was left.
        static bool due(const Ticket& its, uint64_t tick) { return its.due == tick; }

        // The first node is evaluated now.
        void take() {
            if (tick() != base_ || !word_) begin(tick(), node());
            word_ &= word_ - 1;
            first = word_ ? Key::of(base_, at_ * 64 + lowest(word_)) : behind_word();
        }
        void taken(Ticket& its, uint64_t due) {  // of the node that was taken: its work
            its.due = due;
            put(its, due);
        }
        void sooner(Ticket& its, uint64_t tick) {  // than it is, else not
            if (tick < its.due) taken(its, tick);
        }
        // A block of ticks begins.
        void turn() {
            many_.near_ = near_;
            many_.come_nearer();
            near_ = many_.near_;
            base_ = many_.base_;
            first = of_tick_from(base_);
        }
        void leave() {
            many_.near_ = near_;
            many_.base_ = base_;
        }

      private:
        friend class Many;
        explicit Run(Many& many) : many_(many), near_(many.near_), base_(many.base_) {}

        static uint64_t lowest(uint64_t word) { return uint64_t(__builtin_ctzll(word)); }
        void put(const Ticket& its, uint64_t tick) {
            if (__builtin_expect(tick - base_ < SLOTS, 1)) {
                const uint64_t slot = tick % SLOTS;
                many_.bits_[its.node() / 64 * SLOTS + slot] |= 1ull << its.number % 64;
                if (many_.words_ > 1) many_.with_[slot] |= 1ull << (its.node() / 64 >> many_.group_);
                near_ |= 1ull << slot;
                uint64_t key = its.key_in(tick);
                if (key >= first) return;
                asm volatile("" : "+r"(key));  // a branch, as among few
                first = key;
            } else if (tick < NEVER) {
                many_.later(its, tick, base_);
                first = std::min(first, many_.special());
            }
        }
        // The first node's tick, or its next word.
        void begin(uint64_t tick, uint64_t node) {
            const uint64_t slot = tick % SLOTS;
            base_ = tick;
            near_ &= ~(1ull << slot);
            at_ = 0;
            if (many_.words_ > 1) {
                groups_ = std::exchange(many_.with_[slot], 0);
                at_ = node / 64;
            }
            word_ = std::exchange(many_.bits_[at_ * SLOTS + slot], 0);
        }
        // The first key behind those of the word.
        uint64_t behind_word() {
            if (many_.words_ > 1) {
                const size_t each = size_t(1) << many_.group_;
                for (;;) {
                    if (++at_ % each == 0) {
                        groups_ &= groups_ - 1;
                        if (!groups_) break;
                        at_ = lowest(groups_) * each;
                    }
                    if (at_ >= many_.words_) break;
                    word_ = std::exchange(many_.bits_[at_ * SLOTS + base_ % SLOTS], 0);
                    if (word_) return Key::of(base_, at_ * 64 + lowest(word_));
                }
            }
            return of_tick_from(base_ + 1);
        }
        // The first key of this tick and those behind it.
        uint64_t of_tick_from(uint64_t tick) const {
            const uint64_t from = near_ >> tick % SLOTS | near_ << -tick % SLOTS;
            const uint64_t found = from ? tick + lowest(from) : NEVER;
            const uint64_t special = __builtin_expect(found >= many_.limit_, 0) ? many_.special() : Key::NONE;
            if (!from) return special;
            const uint64_t* const of_tick = &many_.bits_[found % SLOTS];
            size_t at = 0;
            if (many_.words_ > 1) {
                at = lowest(many_.with_[found % SLOTS]) << many_.group_;
                while (!of_tick[at * SLOTS]) ++at;
            }
            return std::min(special, Key::of(found, at * 64 + lowest(of_tick[at * SLOTS])));
        }

        Many& many_;
        uint64_t near_, base_;
        uint64_t word_ = 0, groups_ = 0;  // the bits that are left, and such words or groups of them
        size_t at_ = 0;                   // the word
    };

  private:
    static constexpr uint64_t SLOTS = 64, WHEELS = 8;  // six bits of a tick each
    static_assert(NEVER >> 6 * WHEELS == 0, "the last wheel has all ticks");

    Many& laid() {
        if (laid_ != tickets_.size()) lay();
        return *this;
    }
    void lay() {
        words_ = (tickets_.size() + 63) / 64;
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
    uint64_t special() const {
        const uint64_t end = Key::of(stop_, tickets_.size());
        return nearer_ < NEVER ? std::min(end, Key::of(nearer_ - 1, tickets_.size() + 1)) : end;
    }
    void look_at_limit() { limit_ = std::min(stop_ + 1, nearer_); }

    uint64_t* block_of(uint64_t wheel, uint64_t slot) { return &bits_[(wheel * SLOTS + slot) * words_]; }  // not of the first
    // A node is due behind the 64 ticks from `base` on.
    [[gnu::noinline]] void later(const Ticket& its, uint64_t due, uint64_t base) {
        uint64_t wheel = 1;
        while ((due >> 6 * wheel) - (base >> 6 * wheel) >= SLOTS) ++wheel;
        const uint64_t block = due >> 6 * wheel;
        block_of(wheel, block % SLOTS)[its.node() / 64] |= 1ull << its.number % 64;
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
                    run.put(its, its.due);
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
    unsigned group_ = 0;            // so many words, as a power of two, are a bit in `with_`
    uint64_t with_[SLOTS]{};        // which words of a tick, or groups of them, have nodes, if there are several
    uint64_t later_[WHEELS]{};      // which blocks of a wheel have
    // By wheels: of the first by words, in these by ticks; of the others by blocks, in these by words
    std::vector<uint64_t> bits_;
};

}  // namespace bp
