#include "nic.hpp"

#include <algorithm>
#include <utility>

#include "pattern.hpp"

namespace bp {

namespace {

uint64_t cells_of(uint32_t length) { return (uint64_t(length) + 8 + 47) / 48; }

}  // namespace

Nic::Nic(const Ports& ports, int node, Inbox& inbox, Ledger& ledger) : node_(node), inbox_(inbox), ledger_(ledger) {
    post_valid_ = ports.at<uint8_t>("post_valid");
    post_vc_ = ports.number("post_vc");
    post_length_ = ports.at<uint16_t>("post_length");
    post_uu_ = ports.at<uint8_t>("post_uu");
    post_taken_ = ports.at<uint8_t>("post_taken");
    fetch_ = ports.at<uint8_t>("fetch");
    fetch_vc_ = ports.number("fetch_vc");
    block_ = ports.at<uint32_t>("block");
    done_ = ports.at<uint8_t>("done");
    done_vc_ = ports.number("done_vc");
    rx_valid_ = ports.at<uint8_t>("rx_valid");
    rx_vc_ = ports.number("rx_vc");
    rx_index_ = ports.at<uint16_t>("rx_index");
    rx_payload_ = ports.at<uint32_t>("rx_payload");
    rx_last_ = ports.at<uint8_t>("rx_last");
    rx_status_ = ports.at<uint8_t>("rx_status");
    rx_efci_ = ports.at<uint8_t>("rx_efci");
    rx_length_ = ports.at<uint16_t>("rx_length");
    *ports.at<uint8_t>("post_cpi") = 0;
    if (ports.has("post_single")) {
        post_single_ = ports.at<uint8_t>("post_single");
        cell_pti_ = ports.at<uint8_t>("cell_pti");
        fetch_single_ = ports.at<uint8_t>("fetch_single");
        done_single_ = ports.at<uint8_t>("done_single");
        oam_full_ = ports.at<uint8_t>("oam_full");
        oam_vc_ = ports.number("oam_vc");
        oam_pti_ = ports.at<uint8_t>("oam_pti");
        oam_tick_ = ports.at<uint64_t>("oam_tick");
        oam_payload_ = ports.at<uint32_t>("oam_payload");
        *ports.at<uint8_t>("oam_take") = 1;  // each is taken in the step in which it comes
    }
    tx_.resize(size_t(1) << post_vc_.width());
    rx_.resize(size_t(1) << rx_vc_.width());
}

// Sending

void Nic::send(uint64_t tick, uint32_t vc, const Sdu& sdu) {
    Pdu made = pdu(sdu);
    for (Capture* capture : captures) capture->sdu(tick, made.octets.data(), made.length);
    queue(vc, std::move(made));
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

Nic::Pdu Nic::pdu(const Sdu& sdu) {
    Pdu made{inbox_.spare(), sdu.head_length + sdu.length, sdu.uu, sdu.notify};
    made.octets.resize((size_t(made.length) + 47) / 48 * 48);
    uint8_t* octets = made.octets.data();
    if (sdu.head_length) std::memcpy(octets, sdu.head, sdu.head_length);
    pattern_fill(octets + sdu.head_length, sdu.key, sdu.offset, sdu.length);
    if (sdu.checksum_at >= 0) {
        const uint32_t length = made.length - uint32_t(sdu.checksum_start);
        uint32_t sum = ~internet_sum(octets + sdu.checksum_start, length) & 0xFFFF;
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
    if (tx.place >= 0) ledger_.enqueue(tx.place, pdu.length, cells);
    tx.queue.push_back(std::move(pdu));
    list(tx, vc);
}

void Nic::list(TxVc& tx, uint32_t vc) {
    if (tx.listed) return;
    tx.listed = true;
    to_post_.push_back({vc, false});
}

// The VC has one at the NIC at a time.
void Nic::send_single(uint32_t vc, const Single& cell) {
    TxVc& tx = tx_[vc];
    ++tx.cells;
    tx.singles.push_back(cell);
    if (tx.singles.size() == 1) to_post_.push_back({vc, true});
}

// What has been fetched of the VC's PDUs has been sent before.
void Nic::sent_single(uint32_t vc) {
    TxVc& tx = tx_[vc];
    if (tx.place >= 0) ledger_.single(tx.place, user_cells(vc));
    tx.singles.pop_front();
    if (!tx.singles.empty()) to_post_.push_back({vc, true});
}

void Nic::sent(uint64_t tick, uint32_t vc) {
    TxVc& tx = tx_[vc];
    Pdu& pdu = tx.queue.front();
    tx.whole += cells_of(pdu.length);
    tx.fetched = 0;
    if (pdu.notify) inbox_.tell(tick, node_, vc, SENT, pdu.length);
    inbox_.give_back(std::move(pdu.octets));
    tx.queue.pop_front();
    tx.listed = false;
    if (!tx.queue.empty()) list(tx, vc);
    else if (tx.source_length) send_next(vc);
}

// Receiving

void Nic::sink(uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length, uint32_t every) {
    RxVc& rx = rx_[vc];
    rx.sink = true;
    rx.sink_key = key;
    rx.reply_vc = reply_vc;
    rx.reply_length = reply_length;
    rx.every = every;
}

void Nic::grow(Octets& octets, size_t least) { octets.resize(std::max(least, 4 * 48 + octets.size() * 2)); }

void Nic::received(uint64_t tick, uint32_t vc, uint16_t status, uint32_t length, bool congested) {
    RxVc& rx = rx_[vc];
    if (rx.place >= 0) ledger_.ended(rx.place, status, length);
    if (rx.sink) {
        check(rx, status, length);
        return;
    }
    inbox_.tell(tick, node_, vc, status, status ? 0 : length, congested);
    if (status) return;
    for (Capture* capture : captures) capture->sdu(tick, rx.octets.data(), length);
    inbox_.hand_over(rx.octets);
}

void Nic::check(RxVc& rx, uint32_t status, uint32_t length) {
    if (status == 0 && pattern_equal(rx.octets.data(), rx.sink_key, rx.sink_offset, length)) ++rx.good;
    else ++rx.bad;
    rx.sink_offset += length;
    if (rx.every && (rx.good + rx.bad) % rx.every == 0) {
        Pdu reply{inbox_.spare(), rx.reply_length, 0, false};
        reply.octets.assign((size_t(reply.length) + 47) / 48 * 48, 0);
        queue(rx.reply_vc, std::move(reply));
    }
}

}  // namespace bp
