#include "attachment.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bp {

namespace {

constexpr char MAGIC[16] = "bentpipe-come-1";
constexpr size_t MOST_UNDER_WAY = size_t(1) << 20;

uint64_t hash_of(const uint8_t* octets, size_t length) {
    uint64_t hash = length;
    for (size_t k = 0; k < length; k += 8) {
        uint64_t word = 0;
        std::memcpy(&word, octets + k, std::min<size_t>(8, length - k));
        hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

uint64_t address(const uint8_t* at) {
    uint64_t found = 0;
    std::memcpy(&found, at, 6);
    return found;
}

}  // namespace

Attachment::Attachment(Loop& loop, int64_t computing, int64_t lag, Late late)
    : loop_(loop), computing_(computing), lag_(lag), late_(late), io_(std::make_unique<NullIo>()) {}

Attachment::~Attachment() {
    close();
    if (replay_) std::fclose(replay_);
}

uint32_t Attachment::add(const bp_end& given) {
    by_nic_[given.nic] = uint32_t(ends.size());
    ends.push_back(std::make_unique<End>(given));
    return uint32_t(ends.size()) - 1;
}

void Attachment::vc(const bp_attached_vc& vc) {
    ends[vc.from]->out.push_back({vc.vc, vc.to, vc.vpi, vc.vci, int64_t(vc.delay), vc.vlan});
    ends[vc.to]->in.push_back({vc.vc, vc.from, vc.vpi_there, vc.vci, int64_t(vc.delay), vc.vlan_there});
}

void Attachment::begin(int64_t at, int32_t threads[2]) {
    auto host_io = std::make_unique<HostIo>(ends);
    host_io->begin(at, threads);
    io_ = std::move(host_io);
}

void Attachment::by_hand() {
    auto made = std::make_unique<ScriptedIo>(ends);
    hand = made.get();
    io_ = std::move(made);
}

// A record is what it says it is, then entries with their octets.
void Attachment::record(const char* path) {
    record_ = std::fopen(path, "wb");
    if (!record_) throw std::runtime_error(std::strerror(errno));
    std::setvbuf(record_, nullptr, _IOFBF, 1 << 20);
    std::fwrite(MAGIC, 1, sizeof MAGIC, record_);
}

void Attachment::replay(const char* path) {
    replay_ = std::fopen(path, "rb");
    if (!replay_) throw std::runtime_error(std::strerror(errno));
    char magic[sizeof MAGIC];
    if (std::fread(magic, 1, sizeof magic, replay_) != sizeof magic || std::memcmp(magic, MAGIC, sizeof MAGIC))
        throw std::runtime_error("it is no record of arrivals");
}

int Attachment::close() {
    io_->close();
    if (record_ && std::fclose(record_)) failed_ = errno;
    record_ = nullptr;
    return failed_;
}

void Attachment::run(uint64_t until) {
    for (;;) {
        uint64_t front = until;
        if (!replay_) {
            const int64_t now = io_->now() - computing_;
            front = std::min(until, last_tick(now));
            behind_ = std::max<int64_t>(now - begins(loop_.now()), 0);
            most_behind_ = std::max(most_behind_, behind_);
            collect();
        }
        if (pass(std::max(front, loop_.now()))) return;
        if (loop_.now() >= until) return;
        io_->wait(std::min(io_->now() + STEP, begins(until) + computing_));
    }
}

// Frames go in at the first tick that begins at or after their arrival, never before.
void Attachment::collect() {
    io_->collect(arrived_);
    for (ReceivedSdu& each : arrived_) {
        const uint64_t tick = first_tick(each.at);
        waiting_.emplace(tick, std::move(each));
    }
    arrived_.clear();
}

// The next entry of a record waits.
void Attachment::fetch() {
    Entry entry;
    if (std::fread(&entry, sizeof entry, 1, replay_) != 1) return;
    ReceivedSdu arrival{begins(entry.tick), entry.end, entry.vc, {}};
    arrival.sdu.resize(std::min<uint32_t>(entry.length, 65535));
    if (entry.end >= ends.size() || std::fread(arrival.sdu.data(), 1, arrival.sdu.size(), replay_) != entry.length) {
        failed_ = EIO;
        return;
    }
    waiting_.emplace(entry.tick, std::move(arrival));
}

// Up to a tick, with all that arrives until then; true: a host inside has events.
bool Attachment::pass(uint64_t front) {
    for (;;) {
        if (replay_ && waiting_.empty()) fetch();
        const auto first = waiting_.begin();
        const bool comes = first != waiting_.end() && first->first <= front;
        const uint64_t to = comes ? std::max(first->first, loop_.now()) : front;
        loop_.run(to);
        if (take_events()) return true;
        if (loop_.now() < to) continue;
        if (!comes) return false;
        const uint64_t tick = first->first;
        const ReceivedSdu arrival = std::move(first->second);
        waiting_.erase(first);
        inject(tick, arrival);
    }
}

// Time does not go back: what was read too late goes in now, and that is said.
void Attachment::inject(uint64_t tick, const ReceivedSdu& arrival) {
    End& end = *ends[arrival.end];
    if (tick < loop_.now()) {
        std::lock_guard<std::mutex> held(io_->lock);
        ++end.counts.late;
        end.late.add(begins(loop_.now()) - arrival.at);
        aborted_ |= late_ == ABORT;
        if (late_ == DROP) {
            ++end.counts.late_dropped;
            return;
        }
    }
    for (uint32_t vc : vcs_for(arrival.end, arrival)) send(arrival.end, vc, arrival.sdu, arrival.at);
}

// A frame goes where its address was seen, one for all or for an unknown one on every VC, as a bridge does.
std::vector<uint32_t> Attachment::vcs_for(uint32_t number, const ReceivedSdu& arrival) const {
    if (arrival.vc != BY_ADDRESS) return {arrival.vc};
    const End& end = *ends[number];
    const uint8_t* frame = arrival.sdu.data() + sizeof BRIDGED;
    if (end.is.carries == End::FRAMES && end.out.size() > 1) {
        const auto known = learned_.find({number, address(frame)});
        if (!(frame[0] & 1) && known != learned_.end()) return {known->second};
    }
    std::vector<uint32_t> all;
    for (const End::Vc& each : end.out) all.push_back(each.vc);
    return all;
}

void Attachment::send(uint32_t number, uint32_t vc, const Octets& sdu, int64_t at) {
    End& end = *ends[number];
    if (record_) {
        const Entry entry{loop_.now(), number, vc, uint32_t(sdu.size()), 0};
        if (std::fwrite(&entry, sizeof entry, 1, record_) != 1 ||
            std::fwrite(sdu.data(), 1, sdu.size(), record_) != sdu.size()) {
            failed_ = errno;
            std::fclose(record_);
            record_ = nullptr;
        }
    }
    Nic& nic = loop_.nic(int(end.is.nic));
    uint64_t queued = 0;
    for (const End::Vc& each : end.out) queued += nic.backlog(each.vc);
    std::lock_guard<std::mutex> held(io_->lock);
    if (queued >= end.is.queue) {
        ++end.counts.refused;
        ++end.refused[vc];
        return;
    }
    ++end.counts.injected;
    end.counts.injected_octets += sdu.size();
    auto& sent = under_way_[{number, vc}];
    if (sent.size() == MOST_UNDER_WAY) sent.pop_front();
    sent.push_back({hash_of(sdu.data(), sdu.size()), at});
    nic.send(loop_.now(), vc, {sdu.data(), uint32_t(sdu.size()), 0, 0, 0, 0, -1, 0, false});
    loop_.wake(int(end.is.nic));
}

// Takes the events of NICs whose hosts are outside; true: there are others.
bool Attachment::take_events() {
    bool others = false;
    for (const bp_event& event : loop_.inbox.events()) {
        const auto own = by_nic_.find(event.nic);
        if (own == by_nic_.end()) others = true;
        else came(own->second, event);
    }
    return others;
}

void Attachment::came(uint32_t number, const bp_event& event) {
    End& end = *ends[number];
    OutgoingSdu leaving{begins(event.tick) + lag_, -1, number, {}};
    const bool whole = event.status == 0;
    const uint8_t* sdu = whole ? loop_.inbox.sdu(event.handle).data() : nullptr;
    if (whole) leaving.least = to_be(end, event.vc, sdu, event.length);
    const bool right = whole && end.give(sdu, event.length, event.vc, leaving.octets);
    const int64_t late = replay_ ? 0 : io_->now() - leaving.due;
    {
        std::lock_guard<std::mutex> held(io_->lock);
        if (!whole) {
            ++end.counts.wrong[event.status & 7];
            return;
        }
        ++end.counts.received;
        if (event.congested) ++end.congested[event.vc];
        if (!right) {
            ++end.counts.not_ours;
            return;
        }
        if (late > 0) {
            ++end.counts.out_late;
            end.computed_late.add(late);
            aborted_ |= late_ == ABORT;
            if (late_ == DROP) {
                ++end.counts.out_late_dropped;
                return;
            }
        }
    }
    if (end.is.carries == End::FRAMES && end.out.size() > 1) learn(number, event.vc, leaving.octets);
    io_->release(std::move(leaving));
}

// The time at which an SDU leaves if it takes the VC's delay and no more; SDUs of a VC stay in order. -1: unknown.
int64_t Attachment::to_be(const End& end, uint32_t vc, const uint8_t* sdu, size_t length) {
    const auto own = std::find_if(end.in.begin(), end.in.end(), [&](const End::Vc& it) { return it.vc == vc; });
    if (own == end.in.end()) return -1;
    std::deque<Sent>& sent = under_way_[{own->other, vc}];
    const uint64_t hash = hash_of(sdu, length);
    const auto found = std::find_if(sent.begin(), sent.end(), [&](const Sent& it) { return it.hash == hash; });
    if (found == sent.end()) return -1;
    const int64_t at = found->at + own->delay;
    sent.erase(sent.begin(), found + 1);
    return at;
}

void Attachment::learn(uint32_t number, uint32_t vc, const Octets& frame) {
    const End& end = *ends[number];
    const auto from = std::find_if(end.in.begin(), end.in.end(), [&](const End::Vc& it) { return it.vc == vc; });
    if (from == end.in.end() || frame[6] & 1) return;
    for (const End::Vc& to : end.out)
        if (to.other == from->other) learned_[{number, address(frame.data() + 6)}] = to.vc;
}

}  // namespace bp
