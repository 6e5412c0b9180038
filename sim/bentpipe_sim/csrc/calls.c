/* The calls that hosts make for each PDU and turn, as a module of Python. cffi converts arguments one by one and releases Python's lock
   in each call, which takes longer than most of these calls. BP_PS picoseconds are BP_TICKS ticks (bentpipe_sim.bindings). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "network.h"

enum { FIELDS = 9 }; /* of a PduEvent (interface.py), a tuple */

static int is_wrong(Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted) return 0;
    PyErr_Format(PyExc_TypeError, "%zd arguments in place of %zd", given, wanted);
    return 1;
}

/* The first picosecond of a tick: up to 66 bits. */
static PyObject* time_of(uint64_t tick) {
    const unsigned __int128 time = ((unsigned __int128)tick * BP_PS + BP_TICKS - 1) / BP_TICKS;
    if (time <= INT64_MAX) return PyLong_FromLongLong((long long)time);
    PyObject *high = PyLong_FromUnsignedLongLong((uint64_t)(time >> 32)), *low = PyLong_FromUnsignedLong((uint32_t)time);
    PyObject *bits = PyLong_FromLong(32), *shifted = high && bits ? PyNumber_Lshift(high, bits) : NULL;
    PyObject* const found = shifted && low ? PyNumber_Or(shifted, low) : NULL;
    Py_XDECREF(high);
    Py_XDECREF(low);
    Py_XDECREF(bits);
    Py_XDECREF(shifted);
    return found;
}

static PyObject* event_of(const bp_event* event, PyTypeObject* type) {
    PyObject* const made = type->tp_alloc(type, FIELDS);
    if (!made) return NULL;
    PyObject* const fields[FIELDS] = {
        time_of(event->tick),
        PyLong_FromUnsignedLong(event->nic),
        PyLong_FromUnsignedLong(event->vc),
        PyLong_FromUnsignedLong(event->status),
        PyLong_FromUnsignedLong(event->length),
        PyBytes_FromStringAndSize((const char*)event->head, event->head_length),
        PyLong_FromUnsignedLong(event->handle),
        PyBool_FromLong(event->congested),
        PyLong_FromUnsignedLong(event->sum),
    };
    for (int k = 0; k < FIELDS; ++k) PyTuple_SET_ITEM(made, k, fields[k]);
    for (int k = 0; k < FIELDS; ++k)
        if (!fields[k]) {
            Py_DECREF(made);
            return NULL;
        }
    return made;
}

/* The address of a network, a tick, the class PduEvent: run, and return a list of events. */
static PyObject* run(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
    if (is_wrong(count, 3)) return NULL;
    bp_net* const net = PyLong_AsVoidPtr(arguments[0]);
    const uint64_t until = PyLong_AsUnsignedLongLong(arguments[1]);
    if (PyErr_Occurred()) return NULL;
    PyTypeObject* const type = (PyTypeObject*)arguments[2];
    if (!PyType_Check(type) || !PyType_IsSubtype(type, &PyTuple_Type) || type->tp_basicsize != PyTuple_Type.tp_basicsize)
        return PyErr_Format(PyExc_TypeError, "events are tuples");
    int found;
    if (bp_is_short(net, until)) {
        found = bp_run(net, until);
    } else {
        Py_BEGIN_ALLOW_THREADS
        found = bp_run(net, until);
        Py_END_ALLOW_THREADS
    }
    PyObject* const list = PyList_New(found);
    if (!list) return NULL;
    const bp_event* const events = bp_events(net);
    for (int k = 0; k < found; ++k) {
        PyObject* const made = event_of(&events[k], type);
        if (!made) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, k, made);
    }
    return list;
}

/* The address of a network; a bp_post with its head, as octets: send it. */
static PyObject* send(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
    if (is_wrong(count, 2)) return NULL;
    bp_net* const net = PyLong_AsVoidPtr(arguments[0]);
    char* post;
    Py_ssize_t length;
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(arguments[1], &post, &length)) return NULL;
    bp_send(net, (const uint8_t*)post);
    Py_RETURN_NONE;
}

/* The address of a network, and the arguments of bp_check: whether a part of an SDU has the pattern. */
static PyObject* check(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
    if (is_wrong(count, 6)) return NULL;
    bp_net* const net = PyLong_AsVoidPtr(arguments[0]);
    uint64_t given[6];
    for (int k = 1; k < 6; ++k) given[k] = PyLong_AsUnsignedLongLong(arguments[k]);
    if (PyErr_Occurred()) return NULL;
    if (given[1] > UINT32_MAX || given[2] > UINT32_MAX || given[3] > UINT32_MAX || given[5] > UINT32_MAX)
        return PyErr_Format(PyExc_OverflowError, "more than 32 bits");
    return PyBool_FromLong(bp_check(net, (uint32_t)given[1], (uint32_t)given[2], (uint32_t)given[3], given[4], (uint32_t)given[5]));
}

static PyMethodDef functions[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"send", (PyCFunction)(void (*)(void))send, METH_FASTCALL, NULL},
    {"check", (PyCFunction)(void (*)(void))check, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_bentpipe_calls", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__bentpipe_calls(void) { return PyModule_Create(&module); }
