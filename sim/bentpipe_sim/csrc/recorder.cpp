// Records values of a state as a value change dump (IEEE 1364-2005 clause 18): what is another one than at the time before.
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
struct Piece {  // so many bits from a bit on of what begins at an octet; or, without an octet, a constant
    const uint8_t* octets;
    uint32_t low, width;
    bool bit(uint32_t k) const { return octets ? octets[(low + k) / 8] >> (low + k) % 8 & 1 : low >> k & 1; }
};
struct Variable {
    std::string code;
    std::vector<Piece> pieces;  // the lowest bits first
    std::map<uint64_t, std::string> names;
    uint32_t width = 0;
    std::string last;
};
struct Recorder {
    std::vector<Variable> variables;
    std::string text;
};
Recorder& of(void* p) { return *static_cast<Recorder*>(p); }

// From the highest 1 on, as viewers take it.
void put(const Variable& variable, std::string& bits) {
    bits.clear();
    for (size_t k = variable.pieces.size(); k--;) {
        const Piece& piece = variable.pieces[k];
        for (uint32_t bit = piece.width; bit--;) {
            const bool is_one = piece.bit(bit);
            if (is_one || !bits.empty()) bits += is_one ? '1' : '0';
        }
    }
    if (bits.empty()) bits = "0";
}
void write(Recorder& recorder, Variable& variable) {
    if (!variable.names.empty()) {
        const uint64_t value = std::stoull(variable.last, nullptr, 2);
        const auto name = variable.names.find(value);
        recorder.text += "s" + (name == variable.names.end() ? "[unknown]" : name->second) + " ";
    } else if (variable.width == 1) {
        recorder.text += variable.last;
    } else {
        recorder.text += "b" + variable.last + " ";
    }
    recorder.text += variable.code + "\n";
}
}  // namespace

EXPORT void* recorder_new() { return new Recorder; }
EXPORT void recorder_delete(void* p) { delete &of(p); }
EXPORT void recorder_variable(void* p, const char* code) { of(p).variables.push_back({code, {}, {}, 0, "?"}); }
EXPORT void recorder_piece(void* p, const void* octets, uint32_t low, uint32_t width) {
    Variable& variable = of(p).variables.back();
    variable.pieces.push_back({static_cast<const uint8_t*>(octets), low, width});
    variable.width += width;
}
EXPORT void recorder_name(void* p, uint64_t value, const char* name) { of(p).variables.back().names[value] = name; }
// Octets of text so far.
EXPORT uint64_t recorder_sample(void* p, uint64_t time) {
    Recorder& recorder = of(p);
    std::string bits;
    bool is_first = true;
    for (Variable& variable : recorder.variables) {
        put(variable, bits);
        if (bits == variable.last) continue;
        if (is_first) recorder.text += "#" + std::to_string(time) + "\n";
        is_first = false;
        variable.last = bits;
        write(recorder, variable);
    }
    return recorder.text.size();
}
EXPORT const char* recorder_text(void* p) { return of(p).text.c_str(); }
EXPORT void recorder_clear(void* p) { of(p).text.clear(); }
