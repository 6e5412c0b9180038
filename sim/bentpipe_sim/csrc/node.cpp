#include "node.hpp"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace bp {

namespace {

void* load(const char* path) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
    throw std::runtime_error(dlerror());
}

const bp_model* find_model(void* library) {
    if (void* model = dlsym(library, "bentpipe_model")) return static_cast<const bp_model*>(model);
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

Node::Node(const char* path, int index, Inbox& inbox, Ledger& ledger)
    : Turn{nullptr},
      index(uint32_t(index)),
      library_(load(path), dlclose),
      model_(find_model(library_.get())),
      instance_(model_->create(), model_->destroy) {
    face = static_cast<bp_face*>(instance_.get());
    clock_ = model_->clock;
    short_clock[0] = model_->turn;
    short_clock[1] = model_->cell;
    const auto width = [&](const char* name) { return port_width(*model_, instance_.get(), name); };
    for (const char* name : {"time_now", "i_valid", "i_payload", "o_valid", "o_payload", "status_due", "csr_addr"})
        if (!width(name)) throw std::runtime_error(std::string("the node model has no port ") + name);
    link = width("error");
    makes_cells = width("drop_pti");
    if (width("post_valid")) {
        bp_nic& its = static_cast<bp_nic&>(*face);
        nic_ = std::make_unique<Nic>(its, width("post_vc"), width("post_single"), index, inbox, ledger);
        nic = nic_.get();
    }
    std::fill(first, first + PORTS, NO_CELL);
    model_->reset(face, 1);
    quiet();
    model_->reset(face, 0);
}

void Node::quiet() {
    catch_up();
    face->time_tick = 0;
    face->i_valid = 0;
    if (nic) {
        nic->finish(static_cast<bp_nic&>(*face));
        nic->hold();
    }
    clock_(face);
    face->time_tick = 1;
    if (nic) nic->ask();
    look_at_room();
}

void Node::catch_up() {
    const uint32_t count = passed();
    if (!count) return;
    in[0].had_one();
    cells_in += count;
    cells_out += count;
    face->passed = count;
    granted = room;
    face->time_tick = 0;
    face->i_valid = 0;
    clock_(face);
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
    if (!model_->state) throw std::runtime_error("the models of this engine give no state");
    return model_->state(instance_.get(), length);
}

void Node::record(const uint64_t& now) {
    uint64_t length = 0;
    state(&length);
    tapped = true;
    look_at_room();
    recording = std::make_unique<Recording>(*model_, instance_.get(), now);
    clock_ = short_clock[0] = short_clock[1] = Recording::clock;
}

void Node::archive(Archive& a) {
    if (nic) nic->finish(static_cast<bp_nic&>(*face));
    uint64_t length = 0;
    void* octets = state(&length);
    a.same(length);
    a.octets(octets, length);
    uint64_t came = arrive.as_key();
    a(came, first, turn, evaluations, cells_in, cells_out, ingress_most, ingress_lost);
    arrive = Arrival::of(came);
    for (Output& output : out) a(output.traced, output.digest);
    for (Wire& wire : in) {
        a.same(wire.connected);
        if (wire.connected) a(wire);
    }
    if (nic) a(*nic);
    look_at_room();
}

}  // namespace bp
