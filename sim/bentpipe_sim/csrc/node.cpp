#include "node.hpp"

#include <dlfcn.h>
#include <stdexcept>

namespace bp {

namespace {

const uint8_t NOTHING = 0;

void* load(const char* path) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
    throw std::runtime_error(dlerror());
}

const bp_model* find_model(void* library) {
    if (void* model = dlsym(library, "bentpipe_model")) return static_cast<const bp_model*>(model);
    throw std::runtime_error("not a node model");
}

}  // namespace

Node::Node(const char* path, int index, Inbox& inbox, Ledger& ledger)
    : library_(load(path), dlclose),
      model_(find_model(library_.get())),
      instance_(model_->create(), model_->destroy),
      clock_(model_->clock) {
    const Ports ports(*model_, instance_.get());
    time_tick = ports.at<uint8_t>("time_tick");
    time_now = ports.at<uint64_t>("time_now");
    i_valid = ports.at<uint8_t>("i_valid");
    i_hec_error = ports.at<uint8_t>("i_hec_error");
    i_header = ports.at<uint32_t>("i_header");
    i_payload = ports.at<uint32_t>("i_payload");
    o_valid = ports.at<uint8_t>("o_valid");
    o_header = ports.at<uint32_t>("o_header");
    o_payload = ports.at<uint32_t>("o_payload");
    if (ports.has("i_port")) i_port = ports.at<uint8_t>("i_port");
    if (ports.has("o_port")) o_port = ports.at<uint8_t>("o_port");
    if (ports.has("o_hec_error")) o_hec_error = ports.at<uint8_t>("o_hec_error");
    status_due = ports.at<uint64_t>("status_due");
    idle_ = ports.at<uint8_t>("status_idle");
    csr_addr_ = ports.at<uint32_t>("csr_addr");
    csr_w_en_ = ports.at<uint8_t>("csr_w_en");
    csr_w_data_ = ports.at<uint32_t>("csr_w_data");
    csr_r_en_ = ports.at<uint8_t>("csr_r_en");
    csr_r_data_ = ports.at<uint32_t>("csr_r_data");
    told = dropped = own = took = &NOTHING;
    link = ports.has("error");
    if (link) told = ports.at<uint8_t>("error");
    gone_why = ports.has("gone_why") ? ports.at<uint8_t>("gone_why") : &NOTHING;
    if (ports.has("drop")) {
        told = dropped = ports.at<uint8_t>("drop");
        drop_vc = ports.number("drop_vc");
        drop_reason = ports.number("drop_reason");
        drop_accepted = ports.at<uint32_t>("drop_accepted");
        if (ports.has("drop_pti")) drop_pti = ports.at<uint8_t>("drop_pti");
    }
    if (ports.has("tells")) {
        told = ports.at<uint8_t>("tells");
        own = ports.at<uint8_t>("own");
        took = ports.at<uint8_t>("took");
    }
    if (ports.has("post_valid")) nic = std::make_unique<Nic>(ports, index, inbox, ledger);
    std::fill(first, first + PORTS, NEVER);
    *csr_w_en_ = *csr_r_en_ = 0;
    model_->reset(instance_.get(), 1);
    quiet();
    model_->reset(instance_.get(), 0);
}

void Node::quiet() {
    *time_tick = 0;
    *i_valid = 0;
    if (nic) nic->hold();
    clock();
}

void Node::settle() {
    while (!*idle_) quiet();
}

void Node::write(uint32_t addr, uint32_t value) {
    *csr_addr_ = addr;
    *csr_w_data_ = value;
    *csr_w_en_ = 1;
    quiet();
    *csr_w_en_ = 0;
}

uint32_t Node::read(uint32_t addr) {
    *csr_addr_ = addr;
    *csr_r_en_ = 1;
    quiet();
    *csr_r_en_ = 0;
    for (int k = 0; k < 3; ++k) quiet();
    return *csr_r_data_;
}

}  // namespace bp
