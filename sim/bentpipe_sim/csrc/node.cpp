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

// Of a port in bits; 0 if there is none.
uint32_t port_width(const bp_model& model, void* instance, const char* name) {
    uint32_t count = 0;
    const bp_port* ports = model.ports(instance, &count);
    for (uint32_t k = 0; k < count; ++k)
        if (!std::strcmp(ports[k].name, name)) return ports[k].width;
    return 0;
}

}  // namespace

Node::Owner Node::make(const char* path, int index, Inbox& inbox, Ledger& ledger) {
    constexpr size_t IN_FRONT = PORTS * sizeof(Port) + sizeof(Node);
    static_assert(sizeof(Port) % alignof(Node) == 0 && sizeof(Node) % alignof(bp_face) == 0, "they lie beside each other");
    Library library(load(path), dlclose);
    const bp_model& model = find_model(library.get());
    std::unique_ptr<void, void (*)(void*)> made(model.create(IN_FRONT), model.destroy);
    bp_face* const face = static_cast<bp_face*>(made.get());
    Owner node(new (&Node::of(*face)) Node(model, face, index, inbox, ledger));
    made.release();
    node->library_ = std::move(library);  // which has to stay until then
    return node;
}

Node::Node(const bp_model& model, bp_face* face, int index, Inbox& inbox, Ledger& ledger)
    : face(face), index(uint32_t(index)), model_(model) {
    clocks = &model.clocks;
    const auto width = [&](const char* name) { return port_width(model, face, name); };
    for (const char* name : {"time_now", "i_valid", "i_payload", "o_valid", "o_payload", "status_due", "csr_addr"})
        if (!width(name)) throw std::runtime_error(std::string("the node model has no port ") + name);
    link = width("error");
    makes_cells = width("drop_pti");
    if (width("post_valid")) {
        bp_nic& its = static_cast<bp_nic&>(*face);
        nic.emplace(its, width("post_vc"), width("post_single"), index, inbox, ledger);
    }
    std::fill(first, first + PORTS, NO_CELL);
    for (uint32_t p = 0; p < PORTS; ++p) new (&before(p)) Port;
    model.reset(face, 1);
    quiet();
    model.reset(face, 0);
}

Node::~Node() {
    for (uint32_t p = 0; p < PORTS; ++p) before(p).~Port();
}

void Node::End::operator()(Node* node) const {
    const Library library = std::move(node->library_);  // the model's code
    const bp_model& model = node->model_;
    bp_face* const face = node->face;
    node->~Node();
    model.destroy(face);
}

void Node::quiet() {
    catch_up();
    face->time_tick = 0;
    face->i_valid = 0;
    if (nic) {
        nic->finish(static_cast<bp_nic&>(*face));
        nic->hold();
    }
    clocks->whole(face);
    face->time_tick = 1;
    if (nic) nic->ask();
    look_at_room();
}

void Node::catch_up() {
    const uint32_t count = passed();
    if (!count) return;
    in(0).had_one();
    cells_in += count;
    out(0).cells += count;
    face->passed = count;
    out(0).granted = out(0).room;
    face->time_tick = 0;
    face->i_valid = 0;
    clocks->whole(face);
    face->time_tick = 1;
    face->passed = 0;
}

void Node::settle() {
    while (!face->status_idle) quiet();
}

void Node::write(uint32_t addr, uint32_t value) {
    face->csr_addr = addr;
    face->csr_w_data = value;
    face->csr_w_en = 1;
    quiet();
    face->csr_w_en = 0;
}

uint32_t Node::read(uint32_t addr) {
    face->csr_addr = addr;
    face->csr_r_en = 1;
    quiet();
    face->csr_r_en = 0;
    for (int k = 0; k < 3; ++k) quiet();
    return face->csr_r_data;
}

void* Node::state(uint64_t* length) {
    catch_up();
    if (!model_.state) throw std::runtime_error("the models of this engine give no state");
    return model_.state(face, length);
}

void Node::record(const uint64_t& now) {
    uint64_t length = 0;
    state(&length);
    tapped = true;
    look_at_room();
    recording = std::make_unique<Recording>(model_, face, now);
    clocks = &Recording::CLOCKS;
}

void Node::archive(Archive& a) {
    if (nic) nic->finish(static_cast<bp_nic&>(*face));
    uint64_t length = 0;
    void* octets = state(&length);
    a.same(length);
    a.octets(octets, length);
    uint64_t came = arrive().as_key();
    a(came, first, turn, evaluations, cells_in, digests, ingress_most, ingress_lost);
    arrive(Arrival::of(came));
    for (uint32_t p = 0; p < PORTS; ++p) {
        a(out(p).traced, out(p).cells);
        a.same(in(p).connected);
        if (in(p).connected) a(in(p));
    }
    if (nic) a(*nic);
    look_at_room();
}

}  // namespace bp
