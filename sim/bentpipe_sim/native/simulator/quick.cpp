// The fast path of test benches: `ctx.set` of a whole input, and `await ctx.tick()` (quick.py).
//
// Two classes from which those of quick.py inherit. Each handles the common case, and leaves all others to the method
// of Python that it covers. Members of Python's objects are read and written where their slots are.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using Function = void (*)(void*);

PyObject*& member(PyObject* object, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

void assign(PyObject* object, Py_ssize_t offset, PyObject* value) {
    PyObject* old = member(object, offset);
    Py_INCREF(value);
    member(object, offset) = value;
    Py_XDECREF(old);
}

uint64_t load(const void* address, int size) {
    uint64_t value = 0;
    std::memcpy(&value, address, size_t(size));  // x86 and Arm store the low octet first
    return value;
}

// Where the slots of Python's classes are in their objects; the results of a tick; names of other members.
struct Layout {
    PyObject_HEAD
    Py_ssize_t curr, next, wakers, is_eager, direct, stale, edge, clock, half, horizon, at, fire, state, timeline;
    PyObject *hit, *reset, *name_of_now, *name_of_curr;
};

// An expression that is set.
struct Known {
    PyObject* key = nullptr;   // the expression
    PyObject* slot = nullptr;  // its signal's
    PyObject* call = nullptr;  // sets it in all other cases
    void* address = nullptr;   // of the input in the state; nullptr: always another case
    uint64_t mask = 0;         // the greatest value
    int size = 0;
};

class Table {
  public:
    ~Table() { clear(); }
    Known* find(PyObject* key) {
        if (places_.empty()) return nullptr;
        for (size_t at = first(key);; at = (at + 1) & (places_.size() - 1)) {
            if (places_[at].key == key) return &places_[at];
            if (!places_[at].key) return nullptr;
        }
    }
    void add(const Known& known) {  // one that is not there; its references become the table's
        if (used_ * 2 >= places_.size()) grow();
        ++used_;
        put(known);
    }
    void clear() {
        std::vector<Known> old;
        old.swap(places_);
        used_ = 0;
        for (Known& each : old)
            for (PyObject* object : {each.key, each.slot, each.call}) Py_XDECREF(object);
    }
    size_t size() const { return used_; }
    int visit(visitproc visit, void* arg) {
        for (Known& each : places_)
            for (PyObject* object : {each.key, each.slot, each.call}) Py_VISIT(object);
        return 0;
    }

  private:
    size_t first(PyObject* key) const { return (reinterpret_cast<uintptr_t>(key) >> 4) & (places_.size() - 1); }
    void put(const Known& known) {
        size_t at = first(known.key);
        while (places_[at].key) at = (at + 1) & (places_.size() - 1);
        places_[at] = known;
    }
    void grow() {
        std::vector<Known> old(places_.empty() ? 64 : places_.size() * 2);
        old.swap(places_);
        for (Known& each : old)
            if (each.key) put(each);
    }
    std::vector<Known> places_;
    size_t used_ = 0;
};

constexpr size_t MOST = 5000;  // expressions that are remembered

struct Context {
    PyObject_HEAD
    PyObject *layout, *engine, *pending, *compiled, *default_tick, *other_tick, *other_set;
    Table* writes;
};

struct Tick {
    PyObject_HEAD
    PyObject *layout, *engine, *edge, *reset, *compiled, *other_await, *once;
};

// An awaitable that is over at once.
struct Once {
    PyObject_HEAD
    PyObject* result;
};

// Layout

Py_ssize_t offset_of(PyObject* owner, const char* name) {
    PyObject* found = PyObject_GetAttrString(owner, name);
    if (!found) return -1;
    const bool is_slot = Py_TYPE(found) == &PyMemberDescr_Type;
    const Py_ssize_t offset = is_slot ? reinterpret_cast<PyMemberDescrObject*>(found)->d_member->offset : -1;
    Py_DECREF(found);
    if (!is_slot) PyErr_Format(PyExc_TypeError, "%s is no slot", name);
    return offset;
}

int layout_init(PyObject* self, PyObject* args, PyObject*) {
    Layout& made = *reinterpret_cast<Layout*>(self);
    PyObject *signal, *engine, *state, *single, *clock, *hit, *reset;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &signal, &engine, &state, &single, &clock, &hit, &reset)) return -1;
    const struct {
        Py_ssize_t& offset;
        PyObject* owner;
        const char* name;
    } all[] = {
        {made.curr, signal, "curr"},       {made.next, signal, "next"},     {made.wakers, signal, "wakers"},
        {made.is_eager, engine, "is_eager"}, {made.direct, engine, "direct"}, {made.stale, state, "stale"},
        {made.edge, single, "edge"},       {made.clock, single, "clock"},   {made.half, single, "half"},
        {made.horizon, single, "horizon"}, {made.fire, single, "function"}, {made.state, single, "address"},
        {made.timeline, single, "timeline"}, {made.at, clock, "at"},
    };
    for (const auto& each : all)
        if ((each.offset = offset_of(each.owner, each.name)) < 0) return -1;
    made.hit = Py_NewRef(hit);
    made.reset = Py_NewRef(reset);
    made.name_of_now = PyUnicode_InternFromString("now");
    made.name_of_curr = PyUnicode_InternFromString("curr");
    return made.name_of_now && made.name_of_curr ? 0 : -1;
}

void layout_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    const Layout& old = *reinterpret_cast<Layout*>(self);
    for (PyObject* each : {old.hit, old.reset, old.name_of_now, old.name_of_curr}) Py_XDECREF(each);
    type->tp_free(self);
    Py_DECREF(type);
}

// Context

Context& context(PyObject* self) { return *reinterpret_cast<Context*>(self); }
const Layout& layout_of(PyObject* layout) { return *reinterpret_cast<Layout*>(layout); }

// Begin with an engine: (layout, engine, set of what is pending, state, Python's `tick`, Python's `set`).
PyObject* context_begin(PyObject* self, PyObject* args) {
    Context& made = context(self);
    PyObject *layout, *engine, *pending, *compiled, *tick, *set;
    if (!PyArg_ParseTuple(args, "OOO!OOO", &layout, &engine, &PySet_Type, &pending, &compiled, &tick, &set)) return nullptr;
    Py_XSETREF(made.layout, Py_NewRef(layout));
    Py_XSETREF(made.engine, Py_NewRef(engine));
    Py_XSETREF(made.pending, Py_NewRef(pending));
    Py_XSETREF(made.compiled, Py_NewRef(compiled));
    Py_XSETREF(made.other_tick, Py_NewRef(tick));
    Py_XSETREF(made.other_set, Py_NewRef(set));
    if (!made.writes) made.writes = new Table;
    Py_RETURN_NONE;
}

// Remember an expression that is written: (expression, slot, function, address or 0, octets, greatest value).
PyObject* context_add(PyObject* self, PyObject* args) {
    Context& made = context(self);
    PyObject *key, *slot, *call;
    unsigned long long address, mask;
    int size;
    if (!made.writes || !PyArg_ParseTuple(args, "OOOKiK", &key, &slot, &call, &address, &size, &mask)) return nullptr;
    if (made.writes->size() >= MOST) made.writes->clear();
    Known known;
    known.key = Py_NewRef(key);
    known.slot = Py_NewRef(slot);
    known.call = Py_NewRef(call);
    known.address = reinterpret_cast<void*>(uintptr_t(address));
    known.mask = mask;
    known.size = size;
    made.writes->add(known);
    Py_RETURN_NONE;
}

bool write_at_once(const Context& made, const Known& known, PyObject* value) {
    const Layout& layout = layout_of(made.layout);
    if (!known.address || !PyLong_CheckExact(value)) return false;
    if (member(made.engine, layout.is_eager) != Py_False || PySet_GET_SIZE(made.pending)) return false;
    if (PyList_GET_SIZE(member(known.slot, layout.wakers))) return false;
    int overflow = 0;
    const long long given = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || given < 0 || uint64_t(given) > known.mask) return false;
    if (uint64_t(given) == load(known.address, known.size)) return true;
    std::memcpy(known.address, &given, size_t(known.size));
    assign(known.slot, layout.curr, value);
    assign(known.slot, layout.next, value);
    if (member(made.compiled, layout.stale) != Py_True) assign(made.compiled, layout.stale, Py_True);
    return true;
}

PyObject* passed_on(PyObject* method, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    std::vector<PyObject*> all{self};
    all.insert(all.end(), args, args + count + (names ? PyTuple_GET_SIZE(names) : 0));
    return PyObject_Vectorcall(method, all.data(), size_t(count + 1), names);
}

PyObject* context_set(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    Context& made = context(self);
    if (count != 2 || names) return passed_on(made.other_set, self, args, count, names);
    Known* known = made.writes->find(args[0]);
    if (!known) {
        PyObject* done = PyObject_CallMethod(self, "_prepare", "O", args[0]);
        if (!done) return nullptr;
        Py_DECREF(done);
        known = made.writes->find(args[0]);
        if (!known) return passed_on(made.other_set, self, args, count, names);
    }
    if (write_at_once(made, *known, args[1])) Py_RETURN_NONE;
    PyObject* call = Py_NewRef(known->call);
    PyObject* done = PyObject_CallOneArg(call, args[1]);
    Py_DECREF(call);
    return done;
}

PyObject* context_tick(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    Context& made = context(self);
    if (!count && !names && made.default_tick && made.default_tick != Py_None) return Py_NewRef(made.default_tick);
    return passed_on(made.other_tick, self, args, count, names);
}

int context_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Context& made = context(self);
    for (PyObject* each :
         {made.layout, made.engine, made.pending, made.compiled, made.default_tick, made.other_tick, made.other_set})
        Py_VISIT(each);
    return made.writes ? made.writes->visit(visit, arg) : 0;
}

int context_clear(PyObject* self) {
    Context& made = context(self);
    if (made.writes) made.writes->clear();
    Py_CLEAR(made.default_tick);
    Py_CLEAR(made.other_tick);
    Py_CLEAR(made.other_set);
    Py_CLEAR(made.layout);
    Py_CLEAR(made.engine);
    Py_CLEAR(made.pending);
    Py_CLEAR(made.compiled);
    return 0;
}

void context_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    context_clear(self);
    delete context(self).writes;
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef context_members[] = {
    {"default_tick", T_OBJECT, offsetof(Context, default_tick), 0, "What tick() gives; None: not made yet."},
    {},
};

PyMethodDef context_methods[] = {
    {"begin", context_begin, METH_VARARGS, nullptr},
    {"add", context_add, METH_VARARGS, nullptr},
    {"set", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(context_set)), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"tick", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(context_tick)), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {},
};

// Tick

Tick& tick(PyObject* self) { return *reinterpret_cast<Tick*>(self); }

// Begin: (layout, engine, edge, slot of the reset or None, state, Python's `__await__`, an Once).
PyObject* tick_begin(PyObject* self, PyObject* args) {
    Tick& made = tick(self);
    PyObject* given[7];
    if (!PyArg_ParseTuple(args, "OOOOOOO", given, given + 1, given + 2, given + 3, given + 4, given + 5, given + 6))
        return nullptr;
    PyObject** kept[] = {&made.layout, &made.engine, &made.edge, &made.reset, &made.compiled, &made.other_await, &made.once};
    for (int k = 0; k < 7; ++k) Py_XSETREF(*kept[k], Py_NewRef(given[k]));
    Py_RETURN_NONE;
}

// Make the next edge of the clock within the test bench. 1: it is made, 0: it cannot be made here, -1: an error.
int pass(Tick& made, PyObject*& result) {
    const Layout& layout = layout_of(made.layout);
    PyObject* single = member(made.engine, layout.direct);
    if (!single || single == Py_None || member(single, layout.edge) != made.edge) return 0;
    PyObject *clock = member(single, layout.clock), *horizon = member(single, layout.horizon);
    int overflow = 0, too_wide = 0;
    const long long half = PyLong_AsLongLongAndOverflow(member(single, layout.half), &too_wide);
    const long long at = PyLong_AsLongLongAndOverflow(member(clock, layout.at), &overflow) + half;
    if (overflow || too_wide || at > (1ll << 62)) return 0;
    if (PyLong_CheckExact(horizon)) {
        const long long end = PyLong_AsLongLongAndOverflow(horizon, &overflow);
        if (overflow < 0 || (!overflow && at >= end)) return 0;
    } else if (!PyFloat_CheckExact(horizon) || !std::isinf(PyFloat_AS_DOUBLE(horizon))) return 0;
    result = layout.hit;
    if (made.reset != Py_None) {
        PyObject* level = PyObject_GetAttr(made.reset, layout.name_of_curr);
        const int in_reset = level ? PyObject_IsTrue(level) : -1;
        Py_XDECREF(level);
        if (in_reset < 0) return -1;
        if (in_reset) result = layout.reset;
    }
    PyObject *now = PyLong_FromLongLong(at), *next = PyLong_FromLongLong(at + half);
    const int failed = !now || !next || PyObject_SetAttr(member(single, layout.timeline), layout.name_of_now, now);
    if (!failed) assign(clock, layout.at, next);
    Py_XDECREF(now);
    Py_XDECREF(next);
    if (failed) return -1;
    reinterpret_cast<Function>(PyLong_AsVoidPtr(member(single, layout.fire)))(PyLong_AsVoidPtr(member(single, layout.state)));
    if (member(made.compiled, layout.stale) != Py_True) assign(made.compiled, layout.stale, Py_True);
    return 1;
}

PyObject* tick_await(PyObject* self) {
    Tick& made = tick(self);
    PyObject* result = nullptr;
    if (made.layout && Py_REFCNT(made.once) == 1) {
        const int passed = pass(made, result);
        if (passed < 0) return nullptr;
        if (passed) {
            Py_XSETREF(reinterpret_cast<Once*>(made.once)->result, Py_NewRef(result));
            return Py_NewRef(made.once);
        }
    }
    return PyObject_CallOneArg(made.other_await, self);
}

int tick_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Tick& made = tick(self);
    for (PyObject* each : {made.layout, made.engine, made.edge, made.reset, made.compiled, made.other_await, made.once})
        Py_VISIT(each);
    return 0;
}

int tick_clear(PyObject* self) {
    Tick& made = tick(self);
    for (PyObject** each : {&made.layout, &made.engine, &made.edge, &made.reset, &made.compiled, &made.other_await, &made.once})
        Py_CLEAR(*each);
    return 0;
}

void tick_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    tick_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef tick_methods[] = {{"begin", tick_begin, METH_VARARGS, nullptr}, {}};

// Once

PySendResult once_send(PyObject* self, PyObject*, PyObject** result) {
    Once& made = *reinterpret_cast<Once*>(self);
    *result = made.result ? made.result : Py_NewRef(Py_None);
    made.result = nullptr;
    return PYGEN_RETURN;
}

PyObject* once_next(PyObject* self) {
    PyObject* result = nullptr;
    once_send(self, nullptr, &result);
    PyObject* stop = PyObject_CallOneArg(PyExc_StopIteration, result);
    Py_DECREF(result);
    if (stop) PyErr_SetObject(PyExc_StopIteration, stop);
    Py_XDECREF(stop);
    return nullptr;
}

void once_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Py_XDECREF(reinterpret_cast<Once*>(self)->result);
    type->tp_free(self);
    Py_DECREF(type);
}

// The module

template <class Made>
void* slot(Made made) { return reinterpret_cast<void*>(made); }

int add_types(PyObject* module) {
    static PyType_Slot layout_slots[] = {
        {Py_tp_new, slot(PyType_GenericNew)}, {Py_tp_init, slot(layout_init)}, {Py_tp_dealloc, slot(layout_dealloc)}, {}};
    static PyType_Slot context_slots[] = {
        {Py_tp_new, slot(PyType_GenericNew)}, {Py_tp_dealloc, slot(context_dealloc)}, {Py_tp_traverse, slot(context_traverse)},
        {Py_tp_clear, slot(context_clear)}, {Py_tp_members, context_members}, {Py_tp_methods, context_methods}, {}};
    static PyType_Slot tick_slots[] = {
        {Py_tp_new, slot(PyType_GenericNew)}, {Py_tp_dealloc, slot(tick_dealloc)}, {Py_tp_traverse, slot(tick_traverse)},
        {Py_tp_clear, slot(tick_clear)}, {Py_am_await, slot(tick_await)}, {Py_tp_methods, tick_methods}, {}};
    static PyType_Slot once_slots[] = {
        {Py_tp_new, slot(PyType_GenericNew)}, {Py_tp_dealloc, slot(once_dealloc)}, {Py_tp_iter, slot(PyObject_SelfIter)},
        {Py_tp_iternext, slot(once_next)}, {Py_am_send, slot(once_send)}, {}};
    const unsigned base = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
    static PyType_Spec specs[] = {
        {"bentpipe_quick.Layout", sizeof(Layout), 0, Py_TPFLAGS_DEFAULT, layout_slots},
        {"bentpipe_quick.Context", sizeof(Context), 0, base, context_slots},
        {"bentpipe_quick.Tick", sizeof(Tick), 0, base, tick_slots},
        {"bentpipe_quick.Once", sizeof(Once), 0, Py_TPFLAGS_DEFAULT, once_slots},
    };
    const char* names[] = {"Layout", "Context", "Tick", "Once"};
    for (int k = 0; k < 4; ++k) {
        PyObject* type = PyType_FromSpec(&specs[k]);
        if (!type || PyModule_AddObject(module, names[k], type)) return -1;
    }
    return 0;
}

PyModuleDef_Slot module_slots[] = {{Py_mod_exec, slot(add_types)}, {}};
PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, "bentpipe_quick", nullptr, 0, nullptr, module_slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_bentpipe_quick(void) { return PyModuleDef_Init(&module_definition); }
