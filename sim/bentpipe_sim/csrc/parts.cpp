#include "parts.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace bp {

namespace {

using Clock = std::chrono::steady_clock;

// A thread without work looks for some so long, and sleeps then. To sleep and be woken takes about as long. Longer spinning takes
// the time of the thread that it waits for where other processes use the cores.
constexpr auto SPIN = std::chrono::microseconds(60);

// A thread takes a part of another thread after it has waited so long: its nodes move from caches to caches.
constexpr auto PATIENCE = std::chrono::microseconds(15);

// A run shorter than this many ticks (0.1 ms) takes as long as its threads take to start.
constexpr uint64_t SHORT = 566;

// A run goes in stretches of so many ticks at first (1 ms), and then of SOON to LATE in real time. After each, all reports are
// entered; no more than MANY of them are to come at once.
constexpr uint64_t STRETCH = 5651;
constexpr double SOON = 4e-3, LATE = 16e-3;
constexpr size_t MANY = size_t(1) << 16;

// Each of several threads has so many turns in a stretch at least. Five parts without channels would take two threads as long as
// three of them take one, if each part had one turn. Shorter turns than needed would fill caches again too often.
constexpr uint64_t TURNS = 16;

}  // namespace

Parts::Parts(Loop& whole, const uint32_t* part_of, size_t threads) : whole_(whole), choice_(threads), stretch_(STRETCH) {
    const size_t nodes = whole.nodes_.size();
    const size_t count = nodes ? *std::max_element(part_of, part_of + nodes) + 1 : 0;
    choice_ = ThreadChoice(std::max<size_t>(1, std::min(threads, count)));
    for (size_t k = 0; k < count; ++k) {
        parts_.push_back(std::make_unique<Part>(whole.ledger));
        parts_.back()->number = uint32_t(k);
    }
    for (uint32_t k = 0; k < nodes; ++k) parts_[part_of[k]]->nodes.push_back(k);
    for (auto& part : parts_) {
        std::vector<Node*> held;
        for (uint32_t k : part->nodes) held.push_back(whole.nodes_[k].get());
        part->loop.hold(std::move(held));
    }
    for (uint32_t k = 0; k < nodes; ++k) {
        if (whole.nodes_[k]->nic) nics_.push_back(&*whole.nodes_[k]->nic);
        for (uint32_t p = 0; p < Node::PORTS; ++p) connect(part_of, k, p);
    }
}

Parts::~Parts() = default;

void Parts::connect(const uint32_t* part_of, uint32_t node, uint32_t port) {
    Output& output = whole_.nodes_[node]->out(port);
    if (!output.to || part_of[node] == part_of[output.to->index]) return;
    if (output.delay == 0 || output.to->link || output.wire->merged())
        throw std::runtime_error("a wire without delay, into a link or on which cells overtake others cannot be cut");
    channels_.push_back(std::make_unique<Channel>());
    Channel& made = *channels_.back();
    made.output = &output;
    made.to = output.to;
    made.port = output.to_port;
    made.ahead = 1 + output.delay;
    made.mail.push_back();
    Part &from = *parts_[part_of[node]], &to = *parts_[part_of[output.to->index]];
    from.out.push_back(&made);
    to.in.push_back(&made);
    for (auto& [source, ahead] : to.sources)
        if (source == &from) {
            ahead = std::min(ahead, made.ahead);
            return;
        }
    to.sources.push_back({&from, made.ahead});
}

Share Parts::share(size_t threads) const {
    std::vector<uint64_t> nodes;
    for (const auto& part : parts_) nodes.push_back(part->nodes.size());
    return Sharing(nodes, dependences()).among(threads);
}

std::vector<bp_dependence> Parts::dependences() const {
    std::vector<bp_dependence> found;
    for (const auto& part : parts_)
        for (const auto& [source, ahead] : part->sources) found.push_back({part->number, source->number, ahead});
    return found;
}

// The rules: which networks and runs are of one event loop. All of them stand here, and in docs/engine-internals.md.

void Parts::classify() { rule_ = rule(); }

const char* Parts::rule() const {
    const Loop& loop = whole_;
    if (parts_.size() < 2) return "the network has one part";
    if (loop.monitor_) return "a queue monitor can end the run at any tick";
    if (loop.ledger.most_recorded()) return "a record is kept of each lost cell";
    if (loop.ledger.without_pdus()) return "a VC carries test cells, whose account needs counters of both ends";
    if (!loop.arrivals_.empty()) return "the delay variation of a VC is measured where it arrives";
    if (!loop.impaired_.empty()) return "an interface loses, repeats or holds frames";
    for (const auto& node : loop.nodes_) {
        if (node->extras) return "a link makes cells of its own";
        if (!node->saves()) return "the models are Verilator's";
        if (node->line) return "there is a SONET line";
        if (node->recording) return "the clocks of a node are recorded";
    }
    // Taps of one capture write one file.
    std::vector<std::pair<const Capture*, const Part*>> taps;
    for (const auto& part : parts_)
        for (uint32_t k : part->nodes)
            for (const Tap& tap : loop.nodes_[k]->taps) {
                for (const auto& [capture, owner] : taps)
                    if (capture == tap.capture && owner != part.get()) return "a capture has both ends of a line that is cut";
                taps.push_back({tap.capture, part.get()});
            }
    return "";
}

const char* Parts::rule_of_run(uint64_t until) {
    if (*rule_) return rule_;
    if (whole_.acts_after_) return "hosts act as on a board, after each run";
    if (until - whole_.now_ < SHORT) return "the run is too short";
    for (size_t k = 0; k < nics_.size(); ++k) {
        const size_t which = (noisy_ + k) % nics_.size();
        if (nics_[which]->silent()) continue;
        noisy_ = which;
        return "an interface has a host, whose events end a run";
    }
    return "";
}

// A run

bool Parts::run(uint64_t until) {
    why_whole_ = rule_of_run(until);
    if (*why_whole_) return false;
    if (all_.first.empty()) alone_ = share(1), all_ = share(threads());
    split();
    advance_all(until);
    whole_.now_ = until;
    join();
    return true;
}

void Parts::advance_all(uint64_t until) {
    std::vector<LedgerFeed*> feeds;
    for (auto& part : parts_) feeds.push_back(&part->loop.feed);
    for (uint64_t at = whole_.now_; at < until;) {
        const uint64_t ticks = std::min(until - at, stretch_);
        at += ticks;
        threads_ = records_ ? 1 : choice_.next();
        const auto begin = Clock::now();
        go(at);
        const double took = std::chrono::duration<double>(Clock::now() - begin).count();
        // The first stretches, whose length is being found, take as long as their threads take to start.
        const bool counts = ticks < stretch_ ? ticks >= SHORT : took >= SOON;
        if (counts) choice_.took(took / double(ticks));
        const size_t entered = LedgerFeed::enter(feeds);
        if (took > LATE || entered > MANY) stretch_ = std::max(SHORT, stretch_ / 2);
        else if (took < SOON && ticks == stretch_) stretch_ = std::min(NEVER / 4, stretch_ * 2);
    }
}

void Parts::split() {
    EventQueue& queue = whole_.queue_;
    for (auto& part : parts_) {
        std::vector<uint64_t> due;
        for (uint32_t k : part->nodes) due.push_back(std::min(queue.due(whole_.nodes_[k]->ports().ticket), NEVER));
        part->loop.signs_ = whole_.signs_;
        part->loop.inbox.clear();
        part->loop.feed.keep_log(true);
        part->loop.begin(due, whole_.now_);
        part->next = whole_.now_;
        part->done.store(part->next, std::memory_order_relaxed);
    }
    for (auto& channel : channels_) channel->output->wire = &channel->mail;
}

void Parts::join() {
    for (auto& part : parts_)
        for (Channel* channel : part->in) collect(*channel, part->loop, part->next);
    std::vector<uint64_t> due(whole_.nodes_.size());
    for (auto& part : parts_) {
        if (!part->loop.inbox.events().empty()) throw std::logic_error("an event in a part of a network without hosts");
        part->loop.undeliver_all();
        part->loop.feed.keep_log(false);
        for (uint32_t k : part->nodes) due[k] = std::min(part->loop.queue_.due(whole_.nodes_[k]->ports().ticket), NEVER);
    }
    for (auto& channel : channels_) channel->output->wire = &channel->to->in(channel->port);
    whole_.begin(due, whole_.now_);
}

// Run all parts to the end of this tick.
void Parts::go(uint64_t until) {
    const uint64_t turns = threads_ == 1 ? 1 : (TURNS * threads_ + parts_.size() - 1) / parts_.size();
    turn_ = (until - parts_.front()->next) / turns + 1;  // all of them are at the same tick
    std::vector<std::thread> others;
    try {
        for (size_t k = 1; k < threads_; ++k) others.emplace_back([this, k, until] { work(k, until); });
    } catch (const std::system_error&) {}  // there are no more: those that run take all parts
    work(0, until);
    for (std::thread& other : others) other.join();
    for (auto& part : parts_) {
        windows_ += part->windows;
        part->windows = 0;
    }
}

// A thread has parts of its own, whose nodes are in its caches. When none of them can go on it takes one of another thread.
void Parts::work(size_t thread, uint64_t until) {
    const std::vector<size_t>& firsts = share_of_stretch().first;
    const size_t count = parts_.size(), first = firsts[thread], end = firsts[thread + 1];
    bool waits = false;
    Clock::time_point patient;  // until then
    for (;;) {
        const uint64_t seen = progress_.load(std::memory_order_acquire);
        if (look_at(first, end - first, until, false)) {
            waits = false;
            continue;
        }
        if (threads_ > 1) {
            if (!waits) patient = Clock::now() + PATIENCE;
            waits = true;
            if (progresses(seen, patient)) continue;
            if (look_at(end, count - (end - first), until, true)) continue;
        }
        const bool all = std::all_of(parts_.begin(), parts_.end(), [until](const auto& part) {
            return part->done.load(std::memory_order_acquire) > until;
        });
        if (all) return;
        wait(seen);
    }
}

// Give each of these parts that can go on its turn, or the first one; whether there was any.
bool Parts::look_at(size_t first, size_t count, uint64_t until, bool one) {
    bool any = false;
    for (size_t k = 0; k < count && !(any && one); ++k) {
        Part& part = *parts_[(first + k) % parts_.size()];
        if (part.done.load(std::memory_order_relaxed) > until) continue;
        if (part.taken.exchange(true, std::memory_order_acquire)) continue;
        any |= take_turn(part, until);
        part.taken.store(false, std::memory_order_release);
    }
    return any;
}

// Run a part as far as it may go now; whether it could.
bool Parts::take_turn(Part& part, uint64_t until) {
    uint64_t last = std::min(until, part.next + std::min(turn_, share_of_stretch().turn[part.number]) - 1);
    for (const auto& [source, ahead] : part.sources)
        last = std::min(last, source->done.load(std::memory_order_acquire) + ahead - 1);
    if (last < part.next) return false;
    const auto begin = records_ ? Clock::now() : Clock::time_point();
    for (Channel* channel : part.in) collect(*channel, part.loop, part.next);
    part.loop.advance_to(last);
    for (Channel* channel : part.out) hand_over(*channel);
    if (records_) {
        const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
        recorded_.push_back({part.number, uint32_t(spent), part.next, last});
    }
    part.next = last + 1;
    ++part.windows;
    part.done.store(part.next, std::memory_order_release);
    publish();
    return true;
}

void Parts::hand_over(Channel& channel) {
    const uint64_t count = channel.mail.size();
    if (count == 1) return;
    {
        const std::lock_guard<std::mutex> held(channel.lock);
        for (uint64_t k = 1; k < count; ++k) channel.given.push_back(channel.mail[k]);
    }
    channel.mail.keep_first();
}

void Parts::collect(Channel& channel, Loop& loop, uint64_t next) {
    {
        const std::lock_guard<std::mutex> held(channel.lock);
        channel.arriving.swap(channel.given);
    }
    for (const CellInFlight& cell : channel.arriving) {
        if (cell.tick < next) throw std::logic_error("a cell came to a part after its tick");
        loop.arrive(*channel.to, channel.port, cell);
        while (!channel.recent.empty() && channel.recent.front() + channel.ahead <= cell.tick) channel.recent.pop_front();
        channel.recent.push_back() = cell.tick;
    }
    if (!channel.arriving.empty()) channel.to->in(channel.port).count_most(channel.recent.size());
    channel.arriving.clear();
}

// Waiting

void Parts::publish() {
    if (threads_ == 1) return;
    progress_.fetch_add(1);
    if (!sleeping_.load()) return;
    const std::lock_guard<std::mutex> held(lock_);
    wake_.notify_all();
}

// Whether a window ends before this time, since there were so many.
bool Parts::progresses(uint64_t seen, std::chrono::steady_clock::time_point end) const {
    while (Clock::now() < end)
        if (progress_.load(std::memory_order_acquire) != seen) return true;
    return false;
}

// Wait until a window has ended since there were so many.
void Parts::wait(uint64_t seen) {
    if (progresses(seen, Clock::now() + SPIN)) return;
    std::unique_lock<std::mutex> held(lock_);
    ++sleeping_;
    wake_.wait(held, [&] { return progress_.load() != seen; });
    --sleeping_;
}

}  // namespace bp
