// The border in C of attached ends (attach.h).
#include "attach.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <memory>

#include "net.hpp"

int bp_attach(bp_net* net, uint64_t computing, uint64_t lag, uint32_t late) {
    net->attachment = std::make_unique<bp::Attachment>(net->loop, int64_t(computing), int64_t(lag), bp::Attachment::Late(late));
    return 0;
}

int bp_attach_end(bp_net* net, const bp_end* end) { return int(net->attachment->add(*end)); }

void bp_attach_vc(bp_net* net, const bp_attached_vc* vc) { net->attachment->vc(*vc); }

int bp_attach_record(bp_net* net, const char* path) {
    return net->attempt([&] {
        net->attachment->record(path);
        return 0;
    });
}

int bp_attach_replay(bp_net* net, const char* path) {
    return net->attempt([&] {
        net->attachment->replay(path);
        return 0;
    });
}

int bp_attach_close(bp_net* net) { return net->attachment->close(); }

int bp_attach_failed(bp_net* net) { return net->attachment->failed(); }

int bp_attach_begin(bp_net* net, uint64_t at, int32_t threads[2]) {
    return net->attempt([&] {
        net->attachment->begin(int64_t(at), threads);
        return 0;
    });
}

int64_t bp_attach_now(bp_net* net) { return net->attachment->clock(); }

void bp_attach_by_hand(bp_net* net) { net->attachment->by_hand(); }

void bp_attach_stall(bp_net* net, uint64_t at, uint64_t length) {
    net->attachment->hand->stall(int64_t(at), int64_t(length));
}

void bp_attach_arrive(bp_net* net, uint32_t end, uint64_t at, uint64_t read, const uint8_t* octets, uint32_t length) {
    net->attachment->hand->arrive(end, int64_t(at), int64_t(read), octets, length);
}

int bp_attach_released(bp_net* net, uint32_t number, bp_release* release) {
    const auto& left = net->attachment->hand->left;
    if (number >= left.size()) return 0;
    const auto& [what, at] = left[number];
    *release = {what.end, uint32_t(what.octets.size()), uint64_t(what.due), uint64_t(at), what.octets.data()};
    return 1;
}

void bp_attach_counts(bp_net* net, uint32_t number, bp_end_counts* counts) {
    bp::Attachment& attachment = *net->attachment;
    bp::End& end = *attachment.ends[number];
    std::lock_guard<std::mutex> held(attachment.lock());
    tpacket_stats stats{};
    socklen_t length = sizeof stats;  // the kernel's count begins anew with each look
    if (end.is.transport == 0 && !getsockopt(end.is.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length))
        end.counts.kernel_full += stats.tp_drops;
    *counts = end.counts;
}

uint64_t bp_attach_refused(bp_net* net, uint32_t end, uint32_t vc) { return net->attachment->ends[end]->refused[vc]; }
uint64_t bp_attach_congested(bp_net* net, uint32_t end, uint32_t vc) {
    return net->attachment->ends[end]->congested[vc];
}

void bp_attach_histogram(bp_net* net, uint32_t what, uint32_t number, bp_histogram* histogram) {
    bp::Attachment& attachment = *net->attachment;
    const bp::End& end = *attachment.ends[number];
    std::lock_guard<std::mutex> held(attachment.lock());
    const bp::Histogram* const each[] = {&end.late, &end.computed_late, &end.jitter, &end.beyond};
    *histogram = each[what]->all();
}

uint64_t bp_attach_behind(bp_net* net, int most) {
    return uint64_t(most ? net->attachment->most_behind() : net->attachment->behind());
}

int bp_attach_over(bp_net* net) { return net->attachment->gone() ? 2 : net->attachment->aborted() ? 1 : 0; }
