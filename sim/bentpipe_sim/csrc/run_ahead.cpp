#include "run_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "loop.hpp"

namespace bp {

namespace {

using RealTime = std::chrono::steady_clock;

// A thread that waits looks so long for what it waits for, and sleeps then: to be woken takes about as long.
constexpr auto LOOK = std::chrono::microseconds(30);

// The network's thread tells how far it has come in steps of this part of the hosts' reaction.
constexpr uint64_t STEPS = 4;

}  // namespace

void RunAhead::Signal::raise() {
    number.fetch_add(1);
    if (!is_awaited.load()) return;
    const std::lock_guard<std::mutex> held(lock);
    raised.notify_one();
}

void RunAhead::Signal::wait(uint64_t seen) {
    for (const auto end = RealTime::now() + LOOK; RealTime::now() < end;)
        for (unsigned k = 0; k < 16; ++k)
            if (number.load(std::memory_order_acquire) != seen) return;
    std::unique_lock<std::mutex> held(lock);
    is_awaited.store(true);
    raised.wait(held, [&] { return number.load() != seen; });
    is_awaited.store(false);
}

RunAhead::RunAhead(Loop& loop) : loop_(loop) {}

RunAhead::~RunAhead() {
    is_over_.store(true);
    asked_.raise();
    if (thread_.joinable()) thread_.join();
}

// The hosts' thread

void RunAhead::send(const uint8_t* post) {
    if (is_on_) act();
    loop_.send(post);
}

void RunAhead::send_at(uint64_t tick, const uint8_t* post) {
    Later given{tick, {post, post + Loop::octets_of(post)}};
    const std::lock_guard<std::mutex> held(lock_);
    const auto after = [](uint64_t tick, const Later& other) { return tick < other.tick; };
    later_.insert(std::upper_bound(later_.begin(), later_.end(), tick, after), std::move(given));
}

void RunAhead::run_alone(uint64_t until) {
    if (__builtin_expect(later_.empty(), 1)) {
        loop_.run(until);
        return;
    }
    for (;;) {
        bool any = false;
        const uint64_t next = send_due(loop_.now(), any);
        loop_.run(std::min(until, next));
        if (!loop_.inbox.events().empty() || loop_.now() < next) return;
    }
}

void RunAhead::begin() {
    now_ = loop_.now();
    until_.store(now_);
    done_.store(now_);  // before the limit: see go_on()
    limit_.store(now_);
    acted_ = is_on_ = true;  // registers may have been written
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void RunAhead::act() {
    if (done_.load(std::memory_order_acquire) != now_ || limit_.load() != now_)
        throw std::logic_error("the network is ahead of its hosts");
    acted_ = true;
}

void RunAhead::end(bool is_whole) {
    is_on_ = false;
    if (is_whole) {
        act();
        return;
    }
    limit_.store(0);
    const uint64_t acts = acts_.fetch_add(1) + 1;
    asked_.raise();
    for (;;) {
        const uint64_t seen = progress_.number.load(std::memory_order_acquire);
        if (acted_upon_.load(std::memory_order_acquire) == acts) break;
        progress_.wait(seen);
    }
    later_.clear();
}

size_t RunAhead::run(uint64_t until, uint64_t limit, uint64_t reaction) {
    // The limit first: the network's thread reads it last.
    reaction_.store(reaction);
    until_.store(until);
    limit_.store(limit, std::memory_order_release);
    handled_.store(taken_, std::memory_order_release);
    if (acted_) acts_.fetch_add(1);
    acted_ = false;
    asked_.raise();
    const uint64_t acts = acts_.load();
    for (;;) {
        const uint64_t seen = progress_.number.load(std::memory_order_acquire);
        const bool is_seen = acted_upon_.load(std::memory_order_acquire) == acts;
        const uint64_t done = done_.load(std::memory_order_acquire);
        if (take(until)) return given_.events().size();
        if (is_seen && done >= until) {
            now_ = until;
            return 0;
        }
        progress_.wait(seen);
    }
}

// Take the next events, if they are not after this tick.
bool RunAhead::take(uint64_t until) {
    const std::lock_guard<std::mutex> held(lock_);
    if (groups_.empty() || groups_.front().tick > until) return false;
    Group& first = groups_.front();
    now_ = first.tick;
    given_.take(first.inbox);
    empty_.push_back(std::move(first.inbox));
    groups_.pop_front();
    ++taken_;
    return true;
}

// The network's thread

void RunAhead::work() {
    for (;;) {
        const uint64_t seen = asked_.number.load(std::memory_order_acquire);
        if (is_over_.load()) return;
        if (!go_on()) asked_.wait(seen);
    }
}

// Give the PDUs that are due; return the tick of the next one.
uint64_t RunAhead::send_due(uint64_t now, bool& any) {
    const std::lock_guard<std::mutex> held(lock_);
    for (; !later_.empty() && later_.front().tick <= now; later_.pop_front()) {
        if (later_.front().tick < now) throw std::logic_error("a PDU is given to the network too late");
        loop_.send(later_.front().post.data());
        any = true;
    }
    return later_.empty() ? NEVER : later_.front().tick;
}

// Run a step, if the hosts allow one.
bool RunAhead::go_on() {
    for (const uint64_t handled = handled_.load(std::memory_order_acquire); closed_ < handled; ++closed_) open_.pop_front();
    const uint64_t limit = limit_.load(std::memory_order_acquire), until = until_.load(), reaction = reaction_.load();
    const uint64_t acts = acts_.load(), now = done_.load();  // not loop_.now(): between end() and begin() others run it
    uint64_t end = open_.empty() ? limit : std::min(limit, open_.front() + reaction);
    bool acted = acts != acted_upon_.load(std::memory_order_relaxed);
    if (now < end || acted || now == limit) end = std::min(end, send_due(now, acted));  // after the limit is read
    if (now >= end && !acted) return false;
    end = std::min(end, until > now ? until : now + std::max<uint64_t>(1, reaction / STEPS));
    loop_.run(end);
    if (!loop_.inbox.events().empty()) {
        const std::lock_guard<std::mutex> held(lock_);
        open_.push_back(loop_.now());
        groups_.emplace_back();
        groups_.back().tick = loop_.now();
        if (!empty_.empty()) {
            groups_.back().inbox = std::move(empty_.back());
            empty_.pop_back();
        }
        loop_.inbox.exchange(groups_.back().inbox);
    }
    done_.store(loop_.now(), std::memory_order_release);
    acted_upon_.store(acts, std::memory_order_release);
    progress_.raise();
    return true;
}

}  // namespace bp
