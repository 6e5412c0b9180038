#include "host_io.hpp"

#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace bp {

namespace {

enum Transport : uint32_t { PACKET_SOCKET, DEVICE, DATAGRAMS };

int64_t clock_ns(clockid_t which) {
    timespec now;
    clock_gettime(which, &now);
    return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

timespec as_timespec(int64_t ns) { return {time_t(ns / 1000000000), long(ns % 1000000000)}; }

// The kernel takes the outer tag out of a frame before a packet socket gets it, and hands it over beside the frame.
void restore_tag(const tpacket_auxdata& about, uint8_t*& frame, size_t& length) {
    if (!(about.tp_status & TP_STATUS_VLAN_VALID) || length < ADDRESSES) return;
    const bool named = about.tp_status & TP_STATUS_VLAN_TPID_VALID;
    std::memmove(frame - TAG, frame, ADDRESSES);
    frame -= TAG;
    length += TAG;
    put_tag(frame + ADDRESSES, named ? about.tp_vlan_tpid : VLAN, about.tp_vlan_tci);
}

}  // namespace

// An end

bool End::take(const uint8_t* octets, size_t length, Octets& sdu, uint32_t& vc) {
    ++counts.arrived;
    counts.arrived_octets += length;
    if (cells()) return take_cell(octets, length, sdu, vc);
    if (length > is.longest) {
        ++counts.too_long;
        return false;
    }
    if (by_vlan()) return take_tagged(octets, length, sdu, vc);
    vc = BY_ADDRESS;
    if (is.carries == FRAMES ? bridged(octets, length, sdu) : routed(octets, length, sdu)) return true;
    ++counts.malformed;
    return false;
}

// A frame's tag names its VC, and stays here.
bool End::take_tagged(const uint8_t* frame, size_t length, Octets& sdu, uint32_t& vc) {
    if (length < ETHERNET || cut_tag(frame, length)) {
        ++counts.malformed;
        return false;
    }
    const int32_t vlan = vlan_of(frame, length);
    const auto own = std::find_if(out.begin(), out.end(), [&](const Vc& it) { return it.vlan == vlan; });
    if (own == out.end()) {
        ++counts.no_vlan;
        return false;
    }
    vc = own->vc;
    return bridged(frame, length, sdu, has_tag(frame, length));
}

bool End::take_cell(const uint8_t* cell, size_t length, Octets& sdu, uint32_t& vc) {
    if (length != CELL) {
        ++counts.malformed;
        return false;
    }
    if (hec(cell) != cell[4]) {
        ++counts.hec_errors;
        return false;
    }
    const uint32_t header = uint32_t(cell[0]) << 24 | cell[1] << 16 | cell[2] << 8 | cell[3];
    const uint32_t vpi = header >> 20 & 0xFF, vci = header >> 4 & 0xFFFF;  // the GFC above is not looked at
    const auto own = std::find_if(out.begin(), out.end(), [&](const Vc& it) { return it.vpi == vpi && it.vci == vci; });
    if (own == out.end()) {
        ++counts.no_vc;
        return false;
    }
    if (header & 8) {
        ++counts.oam;
        return false;
    }
    vc = own->vc;
    const auto verdict = cells_[vc].take(cell + 5, header & 2, is.longest, crc(), sdu);
    counts.pdu_wrong += verdict == Reassembly::WRONG;
    return verdict == Reassembly::WHOLE;
}

bool End::give(const uint8_t* sdu, size_t length, uint32_t vc, Octets& octets) const {
    if (cells()) {
        const auto own = std::find_if(in.begin(), in.end(), [&](const Vc& it) { return it.vc == vc; });
        if (own == in.end()) return false;
        octets = cells_of(sdu, length, own->vpi, own->vci, crc());
        return true;
    }
    const size_t before = is.carries == FRAMES ? before_frame(sdu, length) : before_packet(sdu, length);
    if (!before) return false;
    octets.assign(sdu + before, sdu + length);
    if (by_vlan()) {
        const auto own = std::find_if(in.begin(), in.end(), [&](const Vc& it) { return it.vc == vc; });
        if (own == in.end()) return false;
        if (own->vlan > 0) add_tag(octets, VLAN, uint16_t(own->vlan));
    }
    return true;
}

// I/O of the machine

void HostIo::begin(int64_t at, int32_t threads[2]) {
    stop_ = eventfd(0, EFD_NONBLOCK);
    buffers_.resize(BATCH * ROOM);
    at_ = at;
    start_ = clock_ns(CLOCK_MONOTONIC) + (at ? std::max<int64_t>(at - clock_ns(CLOCK_REALTIME), 0) : 0);
    releaser_ = std::thread([this] { leave(); });
    reader_ = std::thread([this] { read(); });
    while (!reader_id_ || !releaser_id_) std::this_thread::yield();
    threads[0] = reader_id_;
    threads[1] = releaser_id_;
}

void HostIo::close() {
    if (!reader_.joinable()) return;
    over_ = true;
    const uint64_t one = 1;
    if (::write(stop_, &one, sizeof one) < 0) return;
    {
        std::lock_guard<std::mutex> held(out_);
    }
    more_.notify_all();
    reader_.join();
    releaser_.join();
    ::close(stop_);
}

int64_t HostIo::time() const { return clock_ns(CLOCK_MONOTONIC) - start_; }

// Until the start somebody may set the clock of the day, or the machine may be suspended. Where that takes it past the start, the
// start is now.
int64_t HostIo::now() {
    int64_t now = time();
    if (now < 0) {
        const int64_t here = clock_ns(CLOCK_MONOTONIC);
        start_ = here + std::max<int64_t>(at_ - clock_ns(CLOCK_REALTIME), 0);
        now = here - start_;
    }
    return now;
}

void HostIo::wait(int64_t until) {
    const timespec time = as_timespec(start_ + until);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

// The sockets are read here, too: what came before now has been read then, though the reader had no turn. More than a
// line could ever take is left there, so that a flood doesn't hold the simulation up.
void HostIo::collect(std::deque<ReceivedSdu>& into) {
    {
        std::lock_guard<std::mutex> reading(reading_);
        for (auto& end : ends_)
            if (end->was_down) look_for(*end);
        for (uint32_t k = 0; k < ends_.size(); ++k)
            for (size_t batches = 0; batches < AT_ONCE && ends_[k]->is.transport != DEVICE && read_socket(k);) ++batches;
    }
    std::lock_guard<std::mutex> held(in_);
    for (ReceivedSdu& each : arrivals_) into.push_back(std::move(each));
    arrivals_.clear();
    arrived_octets_ = 0;
}

void HostIo::release(OutgoingSdu&& leaving) {
    bool first;
    {
        std::lock_guard<std::mutex> held(out_);
        if (leaving_octets_ > MOST_OCTETS) {
            std::lock_guard<std::mutex> too(lock);
            ++ends_[leaving.end]->counts.out_full;
            return;
        }
        first = leaving_.empty();
        leaving_octets_ += leaving.octets.size();
        leaving_.push_back(std::move(leaving));
    }
    if (first) more_.notify_one();
}

void HostIo::read() {
    reader_id_ = int32_t(syscall(SYS_gettid));
    prctl(PR_SET_NAME, "bp-in");
    prctl(PR_SET_TIMERSLACK, 1);
    std::vector<pollfd> wanted;
    for (const auto& end : ends_) wanted.push_back({end->is.fd, POLLIN, 0});
    wanted.push_back({stop_, POLLIN, 0});
    // Datagrams of sockets have stamps already: it is read in batches, which costs less than one by one.
    const bool stamps = std::any_of(ends_.begin(), ends_.end(), [](auto& it) { return it->is.transport == DEVICE; });
    while (!over_) {
        if (poll(wanted.data(), wanted.size(), -1) < 0) continue;
        if (!stamps) wait(time() + GATHER);
        std::lock_guard<std::mutex> reading(reading_);
        for (uint32_t k = 0; k < ends_.size(); ++k) {
            if (!wanted[k].revents) continue;
            if (ends_[k]->is.transport == DEVICE) read_device(k);
            else read_socket(k);
            if (ends_[k]->counts.gone) wanted[k].fd = -1;
        }
    }
}

// A TUN or TAP device: what it has is stamped when it is read.
void HostIo::read_device(uint32_t number) {
    for (size_t k = 0; k < BATCH; ++k) {
        const ssize_t length = ::read(ends_[number]->is.fd, buffers_.data(), ROOM);
        if (length < 0) {
            if (errno != EAGAIN && errno != EINTR) lost(*ends_[number], errno);
            return;
        }
        came(number, time(), buffers_.data(), size_t(length));
    }
}

// A socket: the kernel stamped what it has when it came, by the clock of the day. True: it may have more.
bool HostIo::read_socket(uint32_t number) {
    End& end = *ends_[number];
    if (end.counts.gone) return false;
    mmsghdr messages[BATCH]{};
    iovec places[BATCH];
    alignas(cmsghdr) char controls[BATCH][CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(tpacket_auxdata)) + 64];
    for (size_t k = 0; k < BATCH; ++k) {
        places[k] = {buffers_.data() + k * ROOM + TAG, ROOM - TAG};
        messages[k].msg_hdr.msg_iov = &places[k];
        messages[k].msg_hdr.msg_iovlen = 1;
        messages[k].msg_hdr.msg_control = controls[k];
        messages[k].msg_hdr.msg_controllen = sizeof controls[k];
    }
    const int count = recvmmsg(end.is.fd, messages, BATCH, MSG_DONTWAIT, nullptr);
    if (count < 0) {
        // An error of a datagram socket is the peer's, which does not exist yet.
        const bool peers = end.is.transport == DATAGRAMS && errno == ECONNREFUSED;
        if (errno != EAGAIN && errno != EINTR && !peers) lost(end, errno);
        return false;
    }
    const int64_t day = clock_ns(CLOCK_REALTIME), here = time();
    for (int k = 0; k < count; ++k) {
        int64_t at = here;
        uint8_t* octets = static_cast<uint8_t*>(places[k].iov_base);
        size_t count_of = messages[k].msg_len;
        msghdr& message = messages[k].msg_hdr;
        for (cmsghdr* control = CMSG_FIRSTHDR(&message); control; control = CMSG_NXTHDR(&message, control)) {
            if (control->cmsg_level == SOL_PACKET && control->cmsg_type == PACKET_AUXDATA) {
                tpacket_auxdata about;
                std::memcpy(&about, CMSG_DATA(control), sizeof about);
                restore_tag(about, octets, count_of);
            }
            if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS) continue;
            timespec stamp;
            std::memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
            const int64_t age = day - (int64_t(stamp.tv_sec) * 1000000000 + stamp.tv_nsec);
            at = here - std::max<int64_t>(age, 0);
        }
        came(number, at, octets, count_of);
    }
    return count == int(BATCH);
}

void HostIo::came(uint32_t number, int64_t at, const uint8_t* octets, size_t length) {
    ReceivedSdu arrival{std::max<int64_t>(at, 0), number, BY_ADDRESS, {}};
    End& end = *ends_[number];
    {
        std::lock_guard<std::mutex> held(lock);
        if (at < 0 && at_) {
            ++end.counts.arrived;
            end.counts.arrived_octets += length;
            ++end.counts.early;
            return;
        }
        if (!end.take(octets, length, arrival.sdu, arrival.vc)) return;
    }
    std::lock_guard<std::mutex> held(in_);
    if (arrived_octets_ > MOST_OCTETS) {
        std::lock_guard<std::mutex> too(lock);
        ++end.counts.queue_full;
        return;
    }
    arrived_octets_ += arrival.sdu.size();
    arrivals_.push_back(std::move(arrival));
}

// Frames leave at their time and never before.
void HostIo::leave() {
    releaser_id_ = int32_t(syscall(SYS_gettid));
    prctl(PR_SET_NAME, "bp-out");
    prctl(PR_SET_TIMERSLACK, 1);
    std::unique_lock<std::mutex> held(out_);
    while (!over_) {
        if (leaving_.empty()) {
            more_.wait(held);
            continue;
        }
        const int64_t due = leaving_.front().due;
        if (due > time()) {
            held.unlock();
            wait(due);
            held.lock();
            continue;
        }
        OutgoingSdu leaving = std::move(leaving_.front());
        leaving_.pop_front();
        leaving_octets_ -= leaving.octets.size();
        held.unlock();
        send(leaving);
        held.lock();
    }
}

void HostIo::send(OutgoingSdu& leaving) {
    End& end = *ends_[leaving.end];
    const int64_t at = time();
    const size_t piece = end.cells() ? CELL : leaving.octets.size();
    int error = 0;
    for (size_t from = 0; from < leaving.octets.size(); from += piece) {
        const uint8_t* octets = leaving.octets.data() + from;
        const ssize_t done = end.is.transport == DEVICE ? ::write(end.is.fd, octets, piece)
                                                        : ::send(end.is.fd, octets, piece, MSG_DONTWAIT);
        if (done < 0 && errno != ECONNREFUSED) error = errno;
    }
    std::unique_lock<std::mutex> held(lock);
    end.jitter.add(at - leaving.due);
    if (error) {
        ++end.counts.unsent;
    } else {
        ++end.counts.released;
        end.counts.released_octets += leaving.octets.size();
        if (leaving.least >= 0) end.beyond.add(at - leaving.least);
    }
    held.unlock();
    if (error == ENXIO || error == ENODEV || error == ENETDOWN || error == EBADFD) lost(end, error);
}

// An interface that is down may come up again; one that isn't there does not.
void HostIo::lost(End& end, int error) {
    if (error == ENETDOWN && end.is.transport == PACKET_SOCKET) {
        end.was_down = true;
        look_for(end);
        return;
    }
    std::lock_guard<std::mutex> held(lock);
    end.counts.gone = error;
    gone_ = true;
}

// The kernel reports ENETDOWN once: not again when an interface that is down goes away. Its socket is bound to none then.
void HostIo::look_for(End& end) {
    sockaddr_ll bound{};
    socklen_t length = sizeof bound;
    if (!getsockname(end.is.fd, reinterpret_cast<sockaddr*>(&bound), &length) && bound.sll_ifindex > 0) return;
    std::lock_guard<std::mutex> held(lock);
    end.counts.gone = ENETDOWN;
    gone_ = true;
}

// By hand

void ScriptedIo::wait(int64_t until) {
    move(until);
    const auto stall = stalls_.begin();
    if (stall != stalls_.end() && stall->first <= now_) {  // nothing is done until it is over
        now_ += stall->second;
        stalls_.erase(stall);
    }
    move(now_);
}

// Time goes on; what is due leaves.
void ScriptedIo::move(int64_t until) {
    while (!waiting_.empty() && waiting_.front().due <= until) {
        OutgoingSdu& first = waiting_.front();
        End& end = *ends_[first.end];
        const int64_t at = std::max(first.due, now_);
        end.jitter.add(at - first.due);
        if (first.least >= 0) end.beyond.add(at - first.least);
        ++end.counts.released;
        end.counts.released_octets += first.octets.size();
        left.push_back({std::move(first), at});
        waiting_.pop_front();
    }
    now_ = std::max(now_, until);
}

void ScriptedIo::collect(std::deque<ReceivedSdu>& into) {
    while (!coming_.empty() && coming_.begin()->first <= now_) {
        into.push_back(std::move(coming_.begin()->second));
        coming_.erase(coming_.begin());
    }
}

void ScriptedIo::arrive(uint32_t end, int64_t at, int64_t read, const uint8_t* octets, size_t length) {
    ReceivedSdu arrival{at, end, BY_ADDRESS, {}};
    if (ends_[end]->take(octets, length, arrival.sdu, arrival.vc)) coming_.emplace(read, std::move(arrival));
}

}  // namespace bp
