#include "node.hpp"

#include <dlfcn.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace bp {

namespace {

void* load(const char* path) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
    throw std::runtime_error(dlerror());
}

const bp_model& find_model(void* library) {
    if (void* model = dlsym(library, "bentpipe_model")) return *static_cast<const bp_model*>(model);
    throw std::runtime_error("not a node model");
}

// The width of a port in bits; 0 if there is none.
uint32_t port_width(const bp_model& model, void* instance, const char* name) {
    uint32_t count = 0;
    const bp_port* list = model.ports(instance, &count);
    for (uint32_t k = 0; k < count; ++k)
        if (!std::strcmp(list[k].name, name)) return list[k].width;
    return 0;
}

// Pointers into this network: they are no state, and are put aside.
class Laid {
  public:
    Laid(bp_ports& ports, bool nic)
        : ports_(ports),
          nic_(nic ? &static_cast<bp_nic&>(ports) : nullptr),
          ticket_(std::exchange(ports.ticket, {})),
          clocks_(std::exchange(ports.clocks, nullptr)),
          kind_(std::exchange(ports.kind, 0)),
          sending_(nic ? std::exchange(nic_->sending, nullptr) : nullptr),
          receiving_(nic ? std::exchange(nic_->receiving, nullptr) : nullptr) {}
    Laid(const Laid&) = delete;
    ~Laid() {
        ports_.ticket = ticket_;
        ports_.clocks = clocks_;
        ports_.kind = kind_;
        if (nic_) nic_->sending = sending_;
        if (nic_) nic_->receiving = receiving_;
    }

  private:
    bp_ports& ports_;
    bp_nic* nic_;
    bp_ticket ticket_;
    const bp_clocks* clocks_;
    uint8_t kind_;
    Sending* sending_;
    Receiving* receiving_;
};

}  // namespace

Node::Owner Node::make(const char* path, int index, Inbox& inbox, LedgerFeed& feed) {
    constexpr size_t IN_FRONT = PORTS * sizeof(Port) + sizeof(Node);
    static_assert(sizeof(Port) % alignof(Node) == 0 && sizeof(Node) % alignof(bp_ports) == 0, "they lie beside each other");
    Library library(load(path), dlclose);
    const bp_model& model = find_model(library.get());
    std::unique_ptr<void, void (*)(void*)> made(model.create(IN_FRONT), model.destroy);
    bp_ports* const ports = static_cast<bp_ports*>(made.get());
    Owner node(new (&Node::of(*ports)) Node(model, index, inbox, feed));
    made.release();
    node->library_ = std::move(library);  // which has to stay until then
    return node;
}

Node::Node(const bp_model& model, int index, Inbox& inbox, LedgerFeed& feed) : index(uint32_t(index)), model_(model) {
    bp_ports& ports = this->ports();
    ports.clocks = &model.clocks;
    ports.arrive_tick = ports.later_tick = NO_CELL;
    const auto width = [&](const char* name) { return port_width(model, &ports, name); };
    for (const char* name : {"time_now", "i_valid", "i_payload", "o_valid", "o_payload", "status_due", "csr_addr"})
        if (!width(name)) throw std::runtime_error(std::string("the node model has no port ") + name);
    link = width("error");
    makes_cells = width("drop_pti");
    extras = width("o_extra");
    if (width("post_valid")) {
        nic.emplace(static_cast<bp_nic&>(ports), width("post_vc"), width("post_single"), width("oam_full"), index, inbox, feed);
    }
    std::fill(first, first + PORTS, NO_CELL);
    for (uint32_t p = 0; p < PORTS; ++p) new (&before(p)) Port;
    model.reset(&ports, 1);
    quiet();
    model.reset(&ports, 0);
}

Node::~Node() {
    for (uint32_t p = 0; p < PORTS; ++p) before(p).~Port();
}

void Node::End::operator()(Node* node) const {
    const Library library = std::move(node->library_);  // the model's code
    const bp_model& model = node->model_;
    bp_ports& ports = node->ports();
    node->~Node();
    model.destroy(&ports);
}

void Node::quiet() {
    apply_bypassed();
    bp_ports& ports = this->ports();
    ports.time_tick = 0;
    ports.i_valid = 0;
    if (nic) {
        Nic::finish(static_cast<bp_nic&>(ports));
        nic->hold();
    }
    ports.clocks->whole(&ports);
    ports.time_tick = 1;
    if (nic) nic->ask();
    look_at_room();
}

void Node::apply_bypassed() {
    const uint32_t count = bypassed();
    if (!count) return;
    in(0).had_one();
    bypassed_before += count;
    out(0).cells += count;
    out(0).granted = out(0).room;
    bp_ports& ports = this->ports();
    ports.passed = count;
    ports.time_tick = 0;
    ports.i_valid = 0;
    ports.clocks->whole(&ports);
    ports.time_tick = 1;
    ports.passed = 0;
}

void Node::settle() {
    while (!ports().status_idle) quiet();
}

void Node::write(uint32_t addr, uint32_t value) {
    bp_ports& ports = this->ports();
    ports.csr_addr = addr;
    ports.csr_w_data = value;
    ports.csr_w_en = 1;
    quiet();
    ports.csr_w_en = 0;
}

uint32_t Node::read(uint32_t addr) {
    bp_ports& ports = this->ports();
    ports.csr_addr = addr;
    ports.csr_r_en = 1;
    quiet();
    ports.csr_r_en = 0;
    for (int k = 0; k < 3; ++k) quiet();
    return ports.csr_r_data;
}

void* Node::state(uint64_t* length) {
    apply_bypassed();
    if (!model_.state) throw std::runtime_error("the models of this engine give no state");
    return model_.state(&ports(), length);
}

void Node::record(const uint64_t& now) {
    if (recording) throw std::runtime_error("the node is recorded already");
    uint64_t length = 0;
    state(&length);
    tapped = true;
    look_at_room();
    recording = std::make_unique<Recording>(model_, &ports(), now);
    ports().clocks = &Recording::CLOCKS;
}

void Node::archive(Archive& a) {
    if (nic) Nic::finish(static_cast<bp_nic&>(ports()));
    uint64_t length = 0;
    void* octets = state(&length);
    a.same(length);
    {
        const Laid laid(ports(), nic.has_value());
        a.octets(octets, length);
    }
    a(first, turn, bypassed_before, digests, ingress_most, ingress_lost);
    for (uint32_t p = 0; p < PORTS; ++p) {
        a(out(p).traced, out(p).cells);
        a.same(in(p).connected);
        if (in(p).connected) a(in(p));
    }
    if (nic) a(*nic);
    look_at_room();
}

}  // namespace bp
