#include "nic.hpp"

#include <algorithm>
#include <utility>

#include "pattern.hpp"

namespace bp {

Nic::Nic(bp_nic& ports, uint32_t vc_bits, bool singles, bool oam, int node, Inbox& inbox, LedgerFeed& feed)
    : ports_(ports),
      sending_(size_t(1) << vc_bits),
      receiving_(size_t(1) << vc_bits),
      takes_singles_(singles),
      oam_(oam),
      node_(node),
      inbox_(&inbox),
      feed_(&feed),
      tx_(size_t(1) << vc_bits),
      rx_(size_t(1) << vc_bits) {
    ports.sending = sending_.data();
    ports.receiving = receiving_.data();
    ports.oam_take = 1;  // each is taken in the step in which it comes
}

// Sending

void Nic::send(uint64_t tick, uint32_t vc, const Sdu& sdu) {
    Pdu made = pdu(sdu);
    if (!captures.empty()) made.make(whole_, made.head.data(), made.own());
    for (Capture* capture : captures) capture->sdu(tick, whole_.data(), made.length);
    if (frames.on()) impair(tick, vc, std::move(made));
    else queue(vc, std::move(made));
}

void Nic::impair(uint64_t tick, uint32_t vc, Pdu&& pdu) {
    TxVc& tx = tx_[vc];
    const FrameImpairments::Fate fate = frames.draw();
    if (fate == FrameImpairments::LOSE) {
        ++tx.lost;
        if (pdu.notify) lost_notices_.push_back({vc, pdu.length});
        return;
    }
    if (fate == FrameImpairments::REORDER && tx.held.empty()) {
        ++tx.reordered;
        tx.held.push_back(std::move(pdu));
        tx.held_until = tick + frames.wait;
        held_until_ = std::min(held_until_, tx.held_until);
        return;
    }
    if (fate == FrameImpairments::DUPLICATE) {
        ++tx.duplicated;
        Pdu copy = pdu;
        copy.notify = false;
        queue(vc, std::move(copy));
    }
    queue(vc, std::move(pdu));
    if (tx.held.empty()) return;
    tx.held_until = 0;
    release(tick);
}

void Nic::release(uint64_t tick) {
    held_until_ = ~0ull;
    for (uint32_t vc = 0; vc < tx_.size(); ++vc) {
        TxVc& tx = tx_[vc];
        if (tx.held.empty()) continue;
        if (tx.held_until <= tick) {
            Pdu pdu = std::move(tx.held.front());
            tx.held.pop_front();
            queue(vc, std::move(pdu));
        } else {
            held_until_ = std::min(held_until_, tx.held_until);
        }
    }
}

bool Nic::report_lost(uint64_t tick) {
    if (lost_notices_.empty()) return false;
    for (const Lost& each : lost_notices_) inbox_->tell(tick, node_, each.vc, SENT, each.length);
    lost_notices_.clear();
    return true;
}

void Nic::source(uint32_t vc, uint32_t length, uint32_t key) {
    tx_[vc].source_length = length;
    tx_[vc].source_key = key;
    send_next(vc);
}

void Nic::send_next(uint32_t vc) {
    TxVc& tx = tx_[vc];
    queue(vc, pdu({nullptr, 0, tx.source_key, tx.source_offset, tx.source_length, 0, -1, 0, false}));
    tx.source_offset += tx.source_length;
}

Pdu Nic::pdu(const Sdu& sdu) {
    Pdu made{{}, sdu.head_length + sdu.length, sdu.key, sdu.offset, sdu.uu, sdu.notify};
    if (ports_.many) {
        made.head.assign(sdu.head, sdu.head + sdu.head_length);
    } else {
        made.head = inbox_->sent.get(padded(made.length));
        made.make(made.head, sdu.head, sdu.head_length);
    }
    if (sdu.checksum_at >= 0) {
        uint8_t* const octets = made.head.data();
        const uint32_t own = made.own() - uint32_t(sdu.checksum_start);
        const uint32_t rest = pattern_sum(sdu.key, sdu.offset, made.length - made.own());
        const uint64_t both = uint64_t(sum_of(octets + sdu.checksum_start, own)) + (own % 2 ? swapped(rest) : rest);
        uint32_t sum = ~swapped(folded(both)) & 0xFFFF;
        // Octets 6 and 7 of a transport header are UDP's checksum, where zero says that there is none (RFC 768).
        if (sum == 0 && sdu.checksum_at - sdu.checksum_start == 6) sum = 0xFFFF;
        octets[sdu.checksum_at] = uint8_t(sum >> 8);
        octets[sdu.checksum_at + 1] = uint8_t(sum);
    }
    return made;
}

void Nic::queue(uint32_t vc, Pdu&& pdu) {
    TxVc& tx = tx_[vc];
    const uint64_t cells = cells_of(pdu.length);
    tx.cells += cells;
    use(tx.used);
    if (tx.place >= 0) feed_->enqueue(now(), tx.place, pdu.key, pdu.length, cells, pdu.offset);
    tx.queue.push_back(std::move(pdu));
    if (tx.queue.size() == 1) look_at_first(vc);
    notices_ += tx.queue.back().notify;
    list(tx, vc);
}

void Nic::list(TxVc& tx, uint32_t vc) {
    if (tx.listed) return;
    tx.listed = true;
    post({vc, false});
}

void Nic::post(Post what) {
    to_post_.push_back(what);
    if (to_post_.size() == 1) ask();
}

void Nic::cells(bp_nic& ports) {
    if (ports.fetch && ports.fetch_single) {
        const Single& cell = tx_[ports.fetch_vc].singles.front();
        std::memcpy(&ports.block, cell.octets, 48);
        ports.cell_pti = cell.pti;
    } else if (ports.fetch) {
        fetch(ports);
    }
    if (ports.rx_valid) take(ports);
}

// PDUs begin and end around the cells of a clock.
void Nic::seldom(uint64_t tick) {
    if (ports_.post_taken | ports_.done) begin_or_end(tick);
    cells(ports_);
    finish(ports_);
    if (ports_.rx_last | ports_.oam_full) came(tick);
}

// The NIC has begun with a PDU or single cell, or is done with one.
void Nic::begin_or_end(uint64_t tick) {
    if (ports_.post_taken) {
        if (!to_post_.front().single) sending_[to_post_.front().vc].fetched = 0;
        to_post_.pop_front();
        ask();
    }
    if (!ports_.done) return;
    if (ports_.done_single) sent_single(ports_.done_vc);
    else sent(tick, ports_.done_vc);
}

// A PDU has ended, or an OAM cell has come.
void Nic::came(uint64_t tick) {
    if (ports_.oam_full)
        inbox_->tell(ports_.oam_tick, node_, ports_.oam_vc, uint16_t(OAM + ports_.oam_pti), &ports_.oam_payload);
    if (ports_.rx_last) received(tick, ports_.rx_vc, ports_.rx_status, ports_.rx_length, ports_.rx_efci);
}

// The VC has one at the NIC at a time.
void Nic::send_single(uint32_t vc, const Single& cell) {
    TxVc& tx = tx_[vc];
    ++tx.cells;
    tx.singles.push_back(cell);
    if (tx.singles.size() == 1) post({vc, true});
}

// Cells that were fetched of the VC's PDUs before have been sent.
void Nic::sent_single(uint32_t vc) {
    TxVc& tx = tx_[vc];
    if (tx.place >= 0) feed_->single(now(), tx.place, user_cells(vc));
    tx.singles.pop_front();
    if (!tx.singles.empty()) post({vc, true});
}

void Nic::sent(uint64_t tick, uint32_t vc) {
    TxVc& tx = tx_[vc];
    Pdu& pdu = tx.queue.front();
    tx.whole += cells_of(pdu.length);
    sending_[vc].fetched = 0;
    if (pdu.notify) {
        --notices_;
        inbox_->tell(tick, node_, vc, SENT, pdu.length);
    }
    if (!ports_.many) inbox_->sent.put(std::move(pdu.head));
    tx.queue.pop_front();
    look_at_first(vc);
    tx.listed = false;
    if (!tx.queue.empty()) list(tx, vc);
    else if (tx.source_length) send_next(vc);
}

// Receiving

void Nic::sink(uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length, uint32_t every) {
    RxVc& rx = rx_[vc];
    hosted_ -= rx.place >= 0 && !rx.sink;
    rx.sink = std::make_unique<Sink>();
    rx.sink->key = key;
    rx.sink->base = pattern_base(key);
    rx.sink->reply_vc = reply_vc;
    rx.sink->reply_length = reply_length;
    rx.sink->every = every;
    look_at_octets(vc);
}

void Nic::count_hosted() {
    hosted_ = notices_ = 0;
    for (const RxVc& rx : rx_) hosted_ += rx.place >= 0 && !rx.sink;
    for (const TxVc& tx : tx_)
        for (const Pdu& pdu : tx.queue) notices_ += pdu.notify;
}

void Nic::grow(uint32_t vc, size_t least) {
    Octets& octets = rx_[vc].octets;
    use(rx_[vc].used);
    octets.resize(std::max(least, 4 * 48 + octets.size() * 2));
    look_at_octets(vc);
}

void Nic::received(uint64_t tick, uint32_t vc, uint16_t status, uint32_t length, bool congested) {
    RxVc& rx = rx_[vc];
    if (rx.place >= 0) feed_->ended(now(), rx.place, status, length);
    if (rx.sink) {
        if (receiving_[vc].sink) rx.sink->end(status, length);
        else rx.sink->end(status, length, rx.octets);
        look_at_octets(vc);
        answer(*rx.sink);
        return;
    }
    inbox_->tell(tick, node_, vc, status, status ? 0 : length, congested);
    if (status) return;
    for (Capture* capture : captures) capture->sdu(tick, rx.octets.data(), length);
    inbox_->deliver(rx.octets);
    look_at_octets(vc);
}

void Nic::answer(const Sink& sink) {
    if (!sink.every || (sink.good + sink.bad) % sink.every) return;
    Pdu reply{inbox_->sent.get(padded(sink.reply_length)), sink.reply_length, 0, 0, 0, false};
    reply.head.assign(padded(reply.length), 0);
    queue(sink.reply_vc, std::move(reply));
}

}  // namespace bp
